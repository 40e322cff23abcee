import type { IncomingMessage } from "node:http"
import { WebSocket } from "ws"
import { rootOf, wordsOf, type ServerAddress } from "./ServerRest.ts"
import type { SocketEnd } from "./RetryDecision.ts"

const handshakeMillis = 15_000
/** far more than a server sends in one frame */
const frameBytesMax = 16 * 1024 * 1024
const refusalBytesMax = 64 * 1024
/** streamed output is left out while so much waits to be sent */
const bufferedBytesMax = 4 * 1024 * 1024

export interface SocketListener {
  readonly opened: () => void
  readonly text: (text: string) => void
  /** Last, and once. `bye` and `error` are for the listener to add. */
  readonly ended: (end: SocketEnd) => void
}

/** `Retry-After` in seconds, or as a date. Source: RFC 9110, 10.2.3. */
export const retryAfterMillis = (header: string | undefined, nowMillis: number): number => {
  if (header === undefined) return 0
  const millis = /^\d+$/.test(header.trim()) ? Number(header) * 1_000 : Date.parse(header) - nowMillis
  return Number.isFinite(millis) ? Math.max(0, millis) : 0
}

const gatewayUrl = (server: ServerAddress): string => `${server.url.replace(/^http/, "ws")}/api/v1/agent/ws`

/** One WebSocket to the gateway, from its upgrade to its end. */
export class Socket {
  private readonly socket: WebSocket
  private readonly listener: SocketListener
  private hasEnded = false

  constructor(server: ServerAddress, listener: SocketListener) {
    this.listener = listener
    this.socket = new WebSocket(gatewayUrl(server), {
      headers: { authorization: `Bearer ${server.key}` },
      handshakeTimeout: handshakeMillis,
      maxPayload: frameBytesMax,
      perMessageDeflate: false,
      followRedirects: false
    })
    this.socket.on("open", () => this.listener.opened())
    this.socket.on("message", (data, isBinary) => {
      // No frame is binary: one is reported like invalid text.
      if (!this.hasEnded && Buffer.isBuffer(data)) this.listener.text(isBinary ? "" : data.toString())
    })
    this.socket.on("unexpected-response", (_request, response) => this.refused(response))
    this.socket.on("error", (error) => this.end({ kind: "failed", problem: rootOf(error) }))
    this.socket.on("close", (code) => this.end({ kind: "closed", code }))
  }

  /** Whether it went out; the server may still not get it. */
  send(text: string): boolean {
    if (this.socket.readyState !== WebSocket.OPEN) return false
    this.socket.send(text)
    return true
  }

  get isCongested(): boolean {
    return this.socket.bufferedAmount > bufferedBytesMax
  }

  /** Says goodbye and is closed by the other side, at the latest after ws's own time. */
  close(): void {
    this.socket.close(1000)
  }

  /** Ends at once, without a close frame. */
  drop(): void {
    this.hasEnded = true
    this.socket.terminate()
  }

  /** The other side is silent. */
  giveUp(problem: string): void {
    this.end({ kind: "failed", problem })
    this.socket.terminate()
  }

  private refused(response: IncomingMessage): void {
    const status = response.statusCode ?? 0
    const retryAfter = retryAfterMillis(response.headers["retry-after"], Date.now())
    let body = ""
    const done = (): void => {
      const words = wordsOf(body)
      this.end({
        kind: "refused",
        status,
        retryAfterMillis: retryAfter,
        ...(words === undefined ? {} : { words })
      })
      this.socket.terminate()
    }
    response.setEncoding("utf8")
    response.on("data", (chunk: string) => {
      body += chunk
      if (body.length > refusalBytesMax) response.destroy()
    })
    response.once("close", done)
  }

  private end(end: SocketEnd): void {
    if (this.hasEnded) return
    this.hasEnded = true
    this.listener.ended(end)
  }
}
