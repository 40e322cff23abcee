import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { text } from "node:stream/consumers"

/**
 * What becomes of one request: it is passed on, its answer is lost on the way back, it is never answered, or something
 * else than the server answers.
 */
export type Fate =
  | "pass"
  | "lose"
  | "stall"
  | { readonly status: number; readonly headers?: Readonly<Record<string, string>>; readonly body?: string }

export interface Asked {
  readonly body: string
  /** by the clock that nobody sets */
  readonly atMillis: number
}

/** A proxy between a client and the server, on a wire that misbehaves as a test wants it to. */
export interface Middleman {
  readonly url: string
  /** the fates of the next requests, one each; then all are passed on */
  readonly next: (...fates: ReadonlyArray<Fate>) => void
  /** all further requests are passed on */
  readonly forget: () => void
  /** all requests so far */
  readonly asked: () => ReadonlyArray<Asked>
  readonly close: () => Promise<void>
}

export const startMiddleman = async (target: string): Promise<Middleman> => {
  const fates: Array<Fate> = []
  const asked: Array<Asked> = []

  const passOn = async (request: IncomingMessage, body: string): Promise<readonly [number, string]> => {
    const { authorization = "" } = request.headers
    const answer = await fetch(`${target}${request.url}`, {
      method: "POST",
      headers: { authorization },
      body
    })
    return [answer.status, await answer.text()]
  }

  const meet = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await text(request)
    asked.push({ body, atMillis: performance.now() })
    const fate = fates.shift() ?? "pass"
    if (fate === "stall") return
    if (typeof fate === "object") {
      response.writeHead(fate.status, fate.headers).end(fate.body)
      return
    }
    const [status, answer] = await passOn(request, body)
    if (fate === "lose") request.socket.destroy()
    else response.writeHead(status, { "content-type": "application/json" }).end(answer)
  }

  const server = createServer((request, response) => {
    // A server that is away is a connection that breaks.
    meet(request, response).catch(() => request.socket.destroy())
  })
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve)
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    next: (...more) => void fates.push(...more),
    forget: () => void fates.splice(0),
    asked: () => asked,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      })
  }
}
