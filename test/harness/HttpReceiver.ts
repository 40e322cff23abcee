import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import type { AddressInfo, Socket } from "node:net"
import { buffer } from "node:stream/consumers"
import { setTimeout as sleep } from "node:timers/promises"

/** An answer, or a part of one: with `cutAfterBytes` the connection is reset after so many bytes of the body. */
export interface Answered {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
  readonly afterMillis?: number
  readonly cutAfterBytes?: number
}

/**
 * The reaction to a request: an answer, a redirection (302 unless another status is given), none for as long as the
 * client waits, a connection that is reset without one, or a function's own.
 */
export type Reaction =
  | Answered
  | { readonly redirectTo: string; readonly status?: 301 | 302 | 303 | 307 | 308 }
  | "hang"
  | "cut"
  | ((request: Received, response: ServerResponse) => void | Promise<void>)

export interface Received {
  readonly method: string
  /** with its query */
  readonly path: string
  readonly headers: IncomingMessage["headers"]
  readonly body: Buffer
  /** by the monotonic clock */
  readonly atMillis: number
}

/**
 * A server on loopback that keeps its requests and reacts as the test says; it can go away and come back on its port.
 */
export class HttpReceiver {
  /** how requests are answered for which no reaction was ordered */
  otherwise: Reaction
  /** all requests so far, each kept when its body has come */
  readonly received: Array<Received> = []
  readonly #ordered: Array<Reaction> = []
  readonly #sockets = new Set<Socket>()
  #server: Server | undefined
  #port = 0

  constructor(otherwise: Reaction = { status: 204 }) {
    this.otherwise = otherwise
  }

  static async start(otherwise?: Reaction): Promise<HttpReceiver> {
    const receiver = new HttpReceiver(otherwise)
    await receiver.open()
    return receiver
  }

  get origin(): string {
    return `http://127.0.0.1:${this.#port}`
  }

  /** Orders the reactions to the next requests, one each. */
  next(...reactions: ReadonlyArray<Reaction>): void {
    this.#ordered.push(...reactions)
  }

  /** Takes back what was ordered and not used. */
  forget(): void {
    this.#ordered.length = 0
  }

  /** Listens, on the port that it had before. */
  async open(): Promise<void> {
    const server = createServer((request, response) => {
      // Any failure here is a broken connection for the client.
      this.#take(request, response).catch(() => response.destroy())
    })
    server.on("connection", (socket) => {
      this.#sockets.add(socket)
      socket.once("close", () => this.#sockets.delete(socket))
    })
    this.#server = server
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject)
      server.listen(this.#port, "127.0.0.1", resolve)
    })
    this.#port = (server.address() as AddressInfo).port
  }

  /** Resets all connections and refuses new ones. */
  async close(): Promise<void> {
    const server = this.#server
    this.#server = undefined
    for (const socket of this.#sockets) socket.destroy()
    await new Promise<void>((resolve) => (server === undefined ? resolve() : server.close(() => resolve())))
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { headers, method = "", url: path = "" } = request
    const reaction = this.#ordered.shift() ?? this.otherwise
    const received = { method, path, headers, body: await buffer(request), atMillis: performance.now() }
    this.received.push(received)
    if (reaction === "hang") return
    if (reaction === "cut") return void request.socket.resetAndDestroy()
    if (typeof reaction === "function") return reaction(received, response)
    if ("redirectTo" in reaction) {
      response.writeHead(reaction.status ?? 302, { location: reaction.redirectTo }).end()
      return
    }
    await answer(response, reaction)
  }
}

const answer = async (
  response: ServerResponse,
  { afterMillis = 0, body = "", cutAfterBytes, headers, status }: Answered
): Promise<void> => {
  if (afterMillis > 0) await sleep(afterMillis)
  const bytes = Buffer.from(body)
  // 204 and 304 have no body, and say no length.
  const hasBody = bytes.length > 0 || (status !== 204 && status !== 304)
  response.writeHead(status, { ...(hasBody ? { "content-length": String(bytes.length) } : {}), ...headers })
  if (cutAfterBytes === undefined) return void response.end(bytes)
  response.flushHeaders()
  response.write(bytes.subarray(0, cutAfterBytes), () => response.socket?.resetAndDestroy())
}

/** Hands a request on, as a proxy does; with `isLost` the answer is not given back, and the connection is reset. */
export const passesOn =
  (target: string, isLost = false): Reaction =>
  async ({ body, headers, method, path }, response) => {
    const { authorization = "" } = headers
    const hasBody = method !== "GET" && method !== "HEAD"
    const passed = await fetch(`${target}${path}`, {
      method,
      headers: { authorization },
      body: hasBody ? new Uint8Array(body) : null
    })
    const bytes = Buffer.from(await passed.arrayBuffer())
    if (isLost) return void response.socket?.resetAndDestroy()
    const type = passed.headers.get("content-type")
    response.writeHead(passed.status, type === null ? {} : { "content-type": type }).end(bytes)
  }
