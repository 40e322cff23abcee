import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import { Effect } from "effect"
import { sandboxLimits as limits } from "./Limits.ts"
import { type SandboxAnswer, SandboxRefusal } from "./SandboxRequest.ts"
import type { Parts } from "./SandboxParts.ts"
import { routeOf } from "./SandboxRoutes.ts"

/** In every answer, so that none is taken for a real service's. */
const label = { server: "signalbox-sandbox-channels", "x-content-type-options": "nosniff" }

/** Node's own server: the front's care for slow clients would cut off one that is kept waiting on purpose. */
export const make = (parts: Parts): Server => {
  const server = createServer({ requestTimeout: 30_000, keepAliveTimeout: 120_000 }, (request, response) => {
    // A client that goes away is no fault of the sandbox.
    response.on("error", () => response.destroy())
    answer(parts, request, response).catch((error: unknown) => send(response, refusalOf(error).answer))
  })
  server.maxConnections = limits.connections
  return server
}

/** A mistake of the sandbox's own is told to those who ask it: it must not end the server around it. */
const refusalOf = (error: unknown): SandboxRefusal =>
  error instanceof SandboxRefusal
    ? error
    : new SandboxRefusal(500, `The sandbox failed: ${error instanceof Error ? error.message : String(error)}`)

export const listening = (server: Server, port: number): Effect.Effect<number, Error> =>
  Effect.callback((resume) => {
    // Later ones are of connections that could not be taken; the others go on.
    server.on("error", (error) => resume(Effect.fail(error)))
    server.listen({ port, host: "127.0.0.1", backlog: 1_024 }, () => {
      const address = server.address()
      resume(Effect.succeed(typeof address === "object" && address !== null ? address.port : port))
    })
  })

export const closed = (server: Server): Effect.Effect<void> =>
  Effect.callback((resume) => {
    server.close(() => resume(Effect.void))
    server.closeAllConnections()
  })

const answer = async (parts: Parts, request: IncomingMessage, response: ServerResponse): Promise<void> => {
  refuseStrangers(request, parts.origin())
  const method = request.method ?? ""
  const url = new URL(`${parts.origin()}${pathOf(request.url ?? "")}`)
  const { handle, isChannel, parts: names } = routeOf(method, url.pathname)
  if (!isChannel) refuseMessages(request)
  const body = await bodyOf(request, response)
  if (body === undefined) return
  const gone = new AbortController()
  response.once("close", () => gone.abort())
  const { headers } = request
  const asked = { method, url, parts: names, headers, body, nowMillis: parts.nowMillis() }
  const answered = await handle(parts, asked, gone.signal)
  if (answered === undefined) return void request.socket.resetAndDestroy()
  send(response, answered)
}

/** A target that is not a path would name another host. */
const pathOf = (target: string): string => {
  if (!/^\/(?!\/)/u.test(target) && target !== "/") throw new SandboxRefusal(404, "there is nothing here")
  return target
}

/**
 * A page of another site cannot ask: neither by a name that leads here (`Host`), nor across origins. It would read what
 * others were sent, and make programs believe in it.
 */
const refuseStrangers = ({ headers: { host, origin } }: IncomingMessage, own: string): void => {
  const { port } = new URL(own)
  const hosts = [`127.0.0.1:${port}`, `localhost:${port}`]
  if (!hosts.includes(host ?? "")) throw new SandboxRefusal(403, `host: expected ${hosts.join(" or ")}`)
  if (origin !== undefined && !hosts.some((one) => origin === `http://${one}`))
    throw new SandboxRefusal(403, "origin: pages of other servers may not ask")
}

/** The server sends messages where strangers tell it to: they must not order faults, or make subscriptions, with them. */
const refuseMessages = ({ headers, method }: IncomingMessage): void => {
  const name = ["webhook-id", "ttl"].find((one) => headers[one] !== undefined)
  if (name !== undefined) throw new SandboxRefusal(403, `${name}: this address takes no messages`)
  // Messages of chats have no header of their own.
  if (method !== "GET" && /^signalbox\b/u.test(headers["user-agent"] ?? ""))
    throw new SandboxRefusal(403, "user-agent: this address takes no messages")
}

/** undefined where the client went away before its end. */
const bodyOf = (request: IncomingMessage, response: ServerResponse): Promise<Buffer | undefined> =>
  new Promise((resolve, reject) => {
    const chunks: Array<Buffer> = []
    let bytes = 0
    const tooLong = (): void => {
      request.pause()
      // The rest of that body would be taken for another request.
      response.shouldKeepAlive = false
      reject(new SandboxRefusal(413, `body: at most ${limits.bodyBytes} bytes`))
    }
    if (Number(request.headers["content-length"] ?? 0) > limits.bodyBytes) return tooLong()
    request.on("data", (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > limits.bodyBytes) return tooLong()
      chunks.push(chunk)
    })
    request.once("end", () => resolve(Buffer.concat(chunks)))
    // Node says it once more after the end.
    request.once("close", () => resolve(undefined))
    request.on("error", () => resolve(undefined))
  })

const send = (response: ServerResponse, { headers = {}, json, status, text }: SandboxAnswer): void => {
  if (response.headersSent || response.destroyed) return
  const body = text?.body ?? (json === undefined ? "" : JSON.stringify(json))
  const contentType = text?.contentType ?? "application/json"
  const length = status === 204 || status === 304 ? {} : { "content-length": Buffer.byteLength(body) }
  const type = body === "" ? {} : { "content-type": contentType }
  response.writeHead(status, { ...label, "cache-control": "no-store", ...type, ...length, ...headers })
  response.end(body)
}
