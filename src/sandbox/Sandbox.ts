import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import { readFile } from "node:fs/promises"
import { Effect, Schema, type Scope } from "effect"
import { Account } from "./Account.ts"
import { callOf, type Call, refuse, sendJson, type Shared } from "./Call.ts"
import { completeChat } from "./ChatCompletions.ts"
import { BadRequest } from "./ChatRequest.ts"
import { Faults } from "./coder/Faults.ts"
import { embed } from "./Embeddings.ts"
import { fromEntry, isJsonObject, type SandboxModel } from "./SandboxModel.ts"
import { sandboxModels } from "./SandboxModels.ts"

export interface SandboxOptions {
  /** on loopback; 0 (the default) for any free one */
  readonly port?: number | undefined
  /** a list in OpenRouter's shape, in place of the sandbox's own models; all of them answer as its echo does */
  readonly modelsFile?: string | undefined
  /** between two words of a stream; 15 where absent, 0 for all at once */
  readonly wordMillis?: number | undefined
}

export interface RunningSandbox {
  /** the API's root, `http://127.0.0.1:<port>/api/v1` */
  readonly url: string
  readonly models: ReadonlyArray<SandboxModel>
}

/** The port is taken, or the file of models is invalid. */
export class SandboxFailed extends Schema.TaggedError<SandboxFailed>()("SandboxFailed", {
  problem: Schema.String
}) {
  override get message(): string {
    return this.problem
  }
}

/** Longer bodies are answered 413. */
const bodyBytesMax = 64 * 1024 * 1024

const wordMillisDefault = 15

/**
 * A stand-in for OpenRouter on loopback: the same wire protocol, made-up models, nothing leaves the machine. The same
 * request has the same answer. Stops when its scope closes, with the calls in flight. Source: contract/llm#upstream.
 */
export const start = (
  options: SandboxOptions = {}
): Effect.Effect<RunningSandbox, SandboxFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const models = yield* modelsOf(options.modelsFile)
    const shared: Shared = {
      models: new Map(models.map((model) => [model.id, model])),
      account: new Account(),
      faults: new Faults(),
      wordMillis: options.wordMillis ?? wordMillisDefault
    }
    // Node's own server: the front's care for slow clients would cut off one that stalls on purpose.
    const server = createServer(answering(shared))
    // A stream may be idle for minutes, and a pooled connection between two calls.
    server.requestTimeout = 0
    server.keepAliveTimeout = 120_000
    const port = yield* Effect.acquireRelease(listening(server, options.port ?? 0), () => closed(server))
    return { url: `http://127.0.0.1:${port}/api/v1`, models }
  })

const listening = (server: Server, port: number): Effect.Effect<number, SandboxFailed> =>
  Effect.callback((resume) => {
    server.once("error", (error) =>
      resume(Effect.fail(new SandboxFailed({ problem: `The sandbox cannot listen: ${error.message}` })))
    )
    server.listen({ port, host: "127.0.0.1", backlog: 1_024 }, () => {
      const address = server.address()
      resume(Effect.succeed(typeof address === "object" && address !== null ? address.port : port))
    })
  })

const closed = (server: Server): Effect.Effect<void> =>
  Effect.callback((resume) => {
    server.close(() => resume(Effect.void))
    server.closeAllConnections()
  })

const modelsOf = (file: string | undefined): Effect.Effect<ReadonlyArray<SandboxModel>, SandboxFailed> => {
  if (file === undefined) return Effect.succeed(sandboxModels)
  return Effect.tryPromise({
    try: async () => {
      const json: unknown = JSON.parse(await readFile(file, "utf8"))
      const list = isJsonObject(json) ? json["data"] : json
      const models = Array.isArray(list) ? list.flatMap((entry) => fromEntry(entry) ?? []) : []
      if (models.length === 0) throw new Error("it holds no list of models")
      return models
    },
    catch: (error) =>
      new SandboxFailed({
        problem: `${file} cannot be served: ${error instanceof Error ? error.message : error}`
      })
  })
}

type Answering = (shared: Shared, call: Call) => void

const endpoints: ReadonlyMap<string, Answering> = new Map([
  ["POST /api/v1/chat/completions", completeChat],
  ["POST /api/v1/embeddings", embed]
])

const answering = (shared: Shared) => {
  const list = JSON.stringify({ data: Array.from(shared.models.values(), ({ entry }) => entry) })
  return (request: IncomingMessage, response: ServerResponse): void => {
    const route = `${request.method} ${request.url?.split("?")[0]}`
    const endpoint = endpoints.get(route)
    if (endpoint !== undefined)
      return withBody(request, response, (bytes) => run(shared, endpoint, bytes, response))
    request.resume()
    if (route === "GET /api/v1/models") return sendJson(response, 200, list)
    if (route === "GET /api/v1/account") return sendJson(response, 200, shared.account.json())
    refuse(response, { status: 404, message: "Not Found" })
  }
}

const withBody = (
  request: IncomingMessage,
  response: ServerResponse,
  then: (bytes: Buffer) => void
): void => {
  const chunks: Array<Buffer> = []
  let bytes = 0
  request.on("data", (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes <= bodyBytesMax) chunks.push(chunk)
  })
  request.once("end", () => {
    if (bytes > bodyBytesMax) return refuse(response, { status: 413, message: "The body is too long" })
    then(Buffer.concat(chunks, bytes))
  })
}

const run = (shared: Shared, endpoint: Answering, bytes: Buffer, response: ServerResponse): void => {
  try {
    endpoint(shared, callOf(bytes, response))
  } catch (error) {
    const isTheirs = error instanceof BadRequest
    const message = error instanceof Error ? error.message : String(error)
    if (response.headersSent) return void response.destroy()
    refuse(response, {
      status: isTheirs ? 400 : 500,
      message: isTheirs ? message : `The sandbox failed: ${message}`
    })
  }
}
