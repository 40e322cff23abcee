import { readFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { Context, Effect, Layer, Predicate, Runtime, Schema } from "effect"
import { CliError } from "effect/cli"
import { FetchHttpClient, HttpClient, HttpClientError, HttpClientRequest } from "effect/http"
import { HttpApiClient } from "effect/http-api"
import { Problem } from "#schemas/core/Problem.ts"
import { PublishedApi } from "#src/PublishedApi.ts"
import { exitCodes } from "#src/clients/ExitCodes.ts"
import { fieldFault } from "#schemas/core/FieldFault.ts"

/** No server is known: EX_CONFIG of sysexits.h. */
export class ServerUnknown extends Schema.TaggedError<ServerUnknown>()("ServerUnknown", {
  problem: Schema.String
}) {
  override readonly [Runtime.errorExitCode] = exitCodes.configuration
  override get [CliError.userMessage](): string {
    return `${this.problem} Start a server with \`npm start\`, or set SIGNALBOX_URL and SIGNALBOX_KEY.`
  }
}

/** The server did not answer: EX_UNAVAILABLE. */
export class ServerUnreachable extends Schema.TaggedError<ServerUnreachable>()("ServerUnreachable", {
  url: Schema.String,
  problem: Schema.String
}) {
  override readonly [Runtime.errorExitCode] = exitCodes.serverAway
  override get [CliError.userMessage](): string {
    return `No answer from ${this.url}: ${this.problem}`
  }
}

/** The server does not take the key: EX_NOPERM. */
export class KeyRefused extends Schema.TaggedError<KeyRefused>()("KeyRefused", {
  text: Schema.String
}) {
  override readonly [Runtime.errorExitCode] = exitCodes.keyRefused
  override get [CliError.userMessage](): string {
    return this.text
  }
}

/** The server answered with an error, which is shown in its own words. */
export class RequestRefused extends Schema.TaggedError<RequestRefused>()("RequestRefused", {
  text: Schema.String
}) {
  override readonly [Runtime.errorExitCode] = exitCodes.failed
  override get [CliError.userMessage](): string {
    return this.text
  }
}

export interface Target {
  /** origin, without a trailing slash */
  readonly url: string
  readonly key: string
}

const AdminFile = Schema.fromJsonString(
  Schema.Struct({ url: Schema.String, adminKey: Schema.optionalKey(Schema.String) })
)

const readAdminFile = (file: string): string | undefined => {
  try {
    return readFileSync(file, "utf8")
  } catch (error) {
    if (Predicate.hasProperty(error, "code") && error.code === "ENOENT") return undefined
    throw error
  }
}

/** SIGNALBOX_URL and SIGNALBOX_KEY, else the values in DATA_DIR/admin.json from the server's last start. */
const findTarget: Effect.Effect<Target, ServerUnknown> = Effect.gen(function* () {
  const { SIGNALBOX_URL: url, SIGNALBOX_KEY: key, DATA_DIR: dataDir } = process.env
  const file = join(resolve(dataDir ?? join(import.meta.dirname, "../../.data")), "admin.json")
  const content = yield* Effect.try({
    try: () => readAdminFile(file),
    catch: (error) => new ServerUnknown({ problem: `${file} cannot be read: ${String(error)}` })
  })
  const written =
    content === undefined
      ? undefined
      : yield* Effect.mapError(
          Schema.decodeEffect(AdminFile)(content),
          () => new ServerUnknown({ problem: `${file} is not what a server writes` })
        )
  const target = { url: url ?? written?.url, key: key ?? written?.adminKey }
  if (target.url === undefined || target.key === undefined) {
    const problem =
      written === undefined
        ? `There is no ${file}.`
        : `${file} names no key that works; \`signalbox admin key --new\` makes one.`
    return yield* new ServerUnknown({ problem })
  }
  if (!/^https?:$/.test(URL.parse(target.url)?.protocol ?? "")) {
    return yield* new ServerUnknown({ problem: `${target.url} is not the address of a server.` })
  }
  return { url: target.url.replace(/\/+$/, ""), key: target.key }
})

const makeClient = (target: Target) =>
  HttpApiClient.make(PublishedApi, {
    baseUrl: target.url,
    transformClient: HttpClient.mapRequest(HttpClientRequest.bearerToken(target.key))
  })

export type Client = Effect.Success<ReturnType<typeof makeClient>>

/** The root cause of an error: `fetch failed` alone explains nothing. */
export const rootOf = (error: unknown): string => {
  if (Predicate.hasProperty(error, "cause") && error.cause !== undefined) return rootOf(error.cause)
  if (!(error instanceof Error)) return String(error)
  // An AggregateError (a name with several addresses) has a code but no message.
  return error.message === "" && Predicate.hasProperty(error, "code") ? String(error.code) : error.message
}

const explain = (target: Target, error: unknown): Exclude<ConnectionFailure, ServerUnknown> => {
  if (error instanceof Problem) {
    const text = error.message
    return error.status === 401 ? new KeyRefused({ text }) : new RequestRefused({ text })
  }
  if (HttpClientError.isHttpClientError(error)) {
    return error.response === undefined
      ? new ServerUnreachable({ url: target.url, problem: rootOf(error) })
      : new RequestRefused({ text: `The server answered ${error.response.status}` })
  }
  if (Schema.isSchemaError(error)) {
    const { field, text } = fieldFault({ cause: error })
    return new RequestRefused({ text: `${field}: ${text}` })
  }
  return new RequestRefused({ text: `The answer was not understood: ${String(error)}` })
}

/** Why the server's answer is not there. */
export type ConnectionFailure = ServerUnknown | ServerUnreachable | KeyRefused | RequestRefused

/** The server of the command line. It is looked for at the first request, so that help needs none. */
export class Connection extends Context.Service<
  Connection,
  {
    readonly target: Effect.Effect<Target, ServerUnknown>
    readonly ask: <A, E>(request: (client: Client) => Effect.Effect<A, E>) => Effect.Effect<A, ConnectionFailure>
  }
>()("signalbox/cli/Connection") {
  static readonly layer = Layer.effect(
    Connection,
    Effect.gen(function* () {
      const target = yield* Effect.cached(findTarget)
      const http = yield* HttpClient.HttpClient
      return {
        target,
        ask: (request) =>
          Effect.flatMap(target, (found) =>
            makeClient(found).pipe(
              Effect.provideService(HttpClient.HttpClient, http),
              Effect.flatMap(request),
              Effect.mapError((error) => explain(found, error))
            )
          )
      }
    })
  ).pipe(Layer.provide(FetchHttpClient.layer))
}
