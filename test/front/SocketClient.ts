import { randomBytes } from "node:crypto"

/** The head of a WebSocket handshake (RFC 6455 4.1), for a `RawClient`. */
export const handshake = (path: string, changed: Readonly<Record<string, string>> = {}): string => {
  const headers = {
    Host: "x",
    Upgrade: "websocket",
    Connection: "Upgrade",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": randomBytes(16).toString("base64"),
    ...changed
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return `GET ${path} HTTP/1.1\r\n${lines.join("")}\r\n`
}

export interface Closed {
  readonly code: number
  readonly reason: string
}

/** A WebSocket that keeps what it hears. */
export class SocketClient {
  readonly socket: WebSocket
  readonly closed: Promise<Closed>
  readonly messages: Array<string | ArrayBuffer> = []
  private wake: () => void = () => undefined

  private constructor(url: string) {
    this.socket = new WebSocket(url.replace("http", "ws"))
    this.socket.binaryType = "arraybuffer"
    this.socket.addEventListener("message", ({ data }) => {
      this.messages.push(data)
      this.wake()
    })
    this.closed = new Promise((resolve) =>
      this.socket.addEventListener("close", ({ code, reason }) => resolve({ code, reason }), { once: true })
    )
  }

  /** Rejects where the server does not answer 101. */
  static async open(url: string): Promise<SocketClient> {
    const client = new SocketClient(url)
    await new Promise<void>((resolve, reject) => {
      client.socket.addEventListener("open", () => resolve(), { once: true })
      client.socket.addEventListener("error", () => reject(new Error("not opened")), { once: true })
    })
    return client
  }

  /** Resolves with all messages once there are so many. */
  async heard(count: number): Promise<ReadonlyArray<string | ArrayBuffer>> {
    while (this.messages.length < count) {
      await new Promise<void>((resolve) => {
        this.wake = resolve
      })
    }
    return this.messages
  }
}
