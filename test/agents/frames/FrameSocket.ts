import { once } from "node:events"
import { connect, type Socket } from "node:net"
import { handshake } from "#test/front/SocketClient.ts"

/** A server frame with unread fields. */
export type Heard = Readonly<Record<string, unknown>>

const opcodes = { text: 1, binary: 2, close: 8 } as const

/** A WebSocket's frame of a client. The mask is zero, which RFC 6455 5.3 allows and leaves the bytes as they are. */
const framed = (opcode: number, payload: Uint8Array): Buffer => {
  const { length } = payload
  const size = length < 126 ? 0 : length < 65_536 ? 2 : 8
  const head = Buffer.alloc(2 + size + 4)
  head[0] = 0x80 | opcode
  head[1] = 0x80 | (size === 0 ? length : size === 2 ? 126 : 127)
  if (size === 2) head.writeUInt16BE(length, 2)
  if (size === 8) head.writeBigUInt64BE(BigInt(length), 2)
  return Buffer.concat([head, payload])
}

/** An agent's socket that sends any text, valid or not, and keeps everything it receives. */
export class FrameSocket {
  /** the server's frames, decoded, in order */
  readonly heard: Array<Heard> = []
  /** the longest of them, in bytes */
  longest = 0
  /** the code of the server's close frame; 1006 where the connection ended without one */
  closedWith: number | undefined
  private readonly socket: Socket
  private bytes = Buffer.alloc(0)
  private wake: () => void = () => undefined

  private constructor(socket: Socket) {
    this.socket = socket
    socket.on("data", (chunk) => this.take(chunk))
    socket.on("error", () => this.end(1006))
    socket.on("close", () => this.end(1006))
  }

  /** Opens a socket and says something that has an answer, all at once. */
  static async open(url: string, key: string, ...first: ReadonlyArray<object>): Promise<FrameSocket> {
    const opened = await FrameSocket.upgraded(url, key)
    for (const frame of first) opened.say(frame)
    await opened.hear(() => true)
    return opened
  }

  private static async upgraded(url: string, key: string): Promise<FrameSocket> {
    const socket = connect({ port: Number(new URL(url).port), host: "127.0.0.1", noDelay: true })
    await once(socket, "connect")
    socket.write(handshake("/api/v1/agent/ws", { Authorization: `Bearer ${key}` }))
    let head = Buffer.alloc(0)
    while (!head.includes("\r\n\r\n")) {
      const [chunk]: Array<Buffer> = await once(socket, "data")
      head = Buffer.concat([head, chunk ?? Buffer.alloc(0)])
    }
    if (!head.toString("latin1").startsWith("HTTP/1.1 101 ")) throw new Error(head.toString())
    const opened = new FrameSocket(socket)
    opened.take(head.subarray(head.indexOf("\r\n\r\n") + 4))
    return opened
  }

  say(frame: object): void {
    this.text(JSON.stringify(frame))
  }

  text(text: string | Uint8Array): void {
    this.socket.write(framed(opcodes.text, typeof text === "string" ? Buffer.from(text) : text))
  }

  binary(bytes: Uint8Array): void {
    this.socket.write(framed(opcodes.binary, bytes))
  }

  /** The first frame from an index on that fits; undefined where the socket closed before. */
  async hear(fits: (frame: Heard) => boolean, from = 0): Promise<Heard | undefined> {
    for (let at = from; ; at++) {
      while (at >= this.heard.length) {
        if (this.closedWith !== undefined) return undefined
        await new Promise<void>((resolve) => {
          this.wake = resolve
        })
      }
      const frame = this.heard[at]
      if (frame !== undefined && fits(frame)) return frame
    }
  }

  async closed(): Promise<number> {
    await this.hear(() => false, this.heard.length)
    return this.closedWith ?? 1006
  }

  destroy(): void {
    this.socket.destroy()
  }

  private take(chunk: Buffer): void {
    this.bytes = Buffer.concat([this.bytes, chunk])
    for (;;) {
      const short = (this.bytes[1] ?? 0) & 0x7f
      const size = short < 126 ? 0 : short === 126 ? 2 : 8
      if (this.bytes.length < 2 + size) break
      const length =
        size === 0 ? short : size === 2 ? this.bytes.readUInt16BE(2) : Number(this.bytes.readBigUInt64BE(2))
      if (this.bytes.length < 2 + size + length) break
      const payload = this.bytes.subarray(2 + size, 2 + size + length)
      const opcode = (this.bytes[0] ?? 0) & 0x0f
      this.bytes = this.bytes.subarray(2 + size + length)
      if (opcode === opcodes.close) this.end(length < 2 ? 1005 : payload.readUInt16BE(0))
      if (opcode !== opcodes.text) continue
      this.longest = Math.max(this.longest, length)
      this.heard.push(JSON.parse(payload.toString()))
    }
    this.wake()
  }

  private end(code: number): void {
    this.closedWith ??= code
    this.socket.end()
    this.wake()
  }
}
