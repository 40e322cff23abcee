import { connect, type Socket } from "node:net"

/** The events of a WebSocket: opened, received, closed. */
export interface SocketListener {
  opened(): void
  /** another answer than 101 */
  refused(status: number, head: string): void
  heard(text: string): void
  /** once, after anything else; 1006 without a close frame or where it was never opened */
  closed(code: number): void
}

export interface SocketTarget {
  readonly port: number
  readonly path: string
  readonly key: string
}

const opcodes = { text: 1, close: 8, ping: 9, pong: 10 } as const

/** A key that is masked with zeros leaves the bytes as they are (RFC 6455 5.3). */
const maskBytes = 4

/** A frame from a client. */
const frameOf = (opcode: number, payload: Buffer): Buffer => {
  const { length } = payload
  const lengthBytes = length < 126 ? 0 : length < 65_536 ? 2 : 8
  const frame = Buffer.alloc(2 + lengthBytes + maskBytes + length)
  frame[0] = 0x80 | opcode
  frame[1] = 0x80 | (lengthBytes === 0 ? length : lengthBytes === 2 ? 126 : 127)
  if (lengthBytes === 2) frame.writeUInt16BE(length, 2)
  if (lengthBytes === 8) frame.writeBigUInt64BE(BigInt(length), 2)
  payload.copy(frame, 2 + lengthBytes + maskBytes)
  return frame
}

/**
 * A WebSocket that costs the load little, so that tens of thousands fit into a process: no events, no timers, no check of
 * the handshake's hash. It reads what uWebSockets.js and ws send to it: frames that are whole.
 */
export class SocketConnection {
  private readonly socket: Socket
  private readonly listener: SocketListener
  private rest: Buffer | undefined
  private isOpen = false
  private code = 1006

  constructor({ key, path, port }: SocketTarget, listener: SocketListener) {
    this.listener = listener
    this.socket = connect({ port, host: "127.0.0.1", noDelay: true })
    this.socket.on("connect", () =>
      this.socket.write(
        `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${key}\r\nUpgrade: websocket\r\n` +
          "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
      )
    )
    this.socket.on("data", (chunk) => this.receive(chunk))
    this.socket.on("error", () => this.socket.destroy())
    this.socket.on("close", () => this.listener.closed(this.code))
  }

  send(text: string): void {
    this.socket.write(frameOf(opcodes.text, Buffer.from(text)))
  }

  /** Goes without a word. */
  destroy(): void {
    this.socket.destroy()
  }

  pause(): void {
    this.socket.pause()
  }

  resume(): void {
    this.socket.resume()
  }

  private receive(chunk: Buffer): void {
    let bytes = this.rest === undefined ? chunk : Buffer.concat([this.rest, chunk])
    this.rest = undefined
    if (!this.isOpen) {
      const end = bytes.indexOf("\r\n\r\n")
      if (end < 0) return void (this.rest = bytes)
      const head = bytes.toString("latin1", 0, end)
      const status = Number(head.slice(9, 12))
      if (status !== 101) {
        this.listener.refused(status, head)
        return this.destroy()
      }
      this.isOpen = true
      this.listener.opened()
      bytes = bytes.subarray(end + 4)
    }
    this.frames(bytes)
  }

  private frames(bytes: Buffer): void {
    let at = 0
    while (bytes.length - at >= 2) {
      const short = (bytes[at + 1] ?? 0) & 127
      const head = short < 126 ? 2 : short === 126 ? 4 : 10
      if (bytes.length - at < head) break
      const length =
        short < 126
          ? short
          : short === 126
            ? bytes.readUInt16BE(at + 2)
            : Number(bytes.readBigUInt64BE(at + 2))
      const end = at + head + length
      if (bytes.length < end) break
      this.frame((bytes[at] ?? 0) & 15, bytes.subarray(at + head, end))
      at = end
    }
    // A copy: a slice would hold the whole chunk.
    if (at < bytes.length) this.rest = Buffer.from(bytes.subarray(at))
  }

  private frame(opcode: number, payload: Buffer): void {
    if (opcode === opcodes.text) this.listener.heard(payload.toString("utf8"))
    else if (opcode === opcodes.ping) this.socket.write(frameOf(opcodes.pong, payload))
    else if (opcode === opcodes.close) {
      this.code = payload.length >= 2 ? payload.readUInt16BE(0) : 1005
      this.socket.end(frameOf(opcodes.close, payload.subarray(0, 2)))
    }
  }
}
