import { Effect } from "effect"
import { createServer, type Server, type ServerResponse } from "node:http"
import type { AddressInfo, Socket } from "node:net"

/** What the upstream does with a request for its list. */
export type Answering = (response: ServerResponse) => void

/** A whole list. */
export const sends =
  (body: string, status = 200): Answering =>
  (response) => {
    response.writeHead(status, {
      "content-type": "application/json",
      "content-length": Buffer.byteLength(body)
    })
    response.end(body)
  }

/** A list that breaks off: the connection is cut after so many bytes of the body that the head has promised. */
export const breaksOff =
  (body: string, afterBytes: number): Answering =>
  (response) => {
    response.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(body) })
    response.write(Buffer.from(body).subarray(0, afterBytes), () => response.destroy())
  }

/** A list in pieces without a length, as long as it is read. */
export const sendsWithoutEnd: Answering = (response) => {
  response.writeHead(200, { "content-type": "application/json" })
  const piece = Buffer.alloc(64 * 1024, " ")
  const more = (): void => {
    while (!response.destroyed && response.write(piece)) continue
  }
  response.on("drain", more)
  more()
}

export const staysSilent: Answering = () => undefined

/** An upstream over real sockets, that answers as the test says and can go away and come back on its port. */
export class ListServer {
  answering: Answering = sends("{}", 404)
  /** method and path of each request */
  readonly requests: Array<string> = []
  readonly #sockets = new Set<Socket>()
  #server: Server | undefined
  #port = 0

  /** the API's root, as `UPSTREAM_URL` has it */
  get url(): string {
    return `http://127.0.0.1:${this.#port}/api/v1`
  }

  async open(): Promise<void> {
    const server = createServer((request, response) => {
      this.requests.push(`${request.method} ${request.url}`)
      this.answering(response)
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

  async close(): Promise<void> {
    const server = this.#server
    this.#server = undefined
    for (const socket of this.#sockets) socket.destroy()
    await new Promise<void>((resolve) => (server === undefined ? resolve() : server.close(() => resolve())))
  }

  /** Open until the scope closes. */
  static readonly make = Effect.acquireRelease(
    Effect.promise(async () => {
      const server = new ListServer()
      await server.open()
      return server
    }),
    (server) => Effect.promise(() => server.close())
  )
}
