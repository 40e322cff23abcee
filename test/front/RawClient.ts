import { once } from "node:events"
import { connect, type Socket } from "node:net"

/** A TCP connection that sends the test's bytes exactly, and keeps everything it receives. */
export class RawClient {
  readonly socket: Socket
  receivedBytes = 0
  isClosed = false
  private chunks: Array<Buffer> = []
  private wake: () => void = () => undefined

  private constructor(socket: Socket) {
    this.socket = socket
    socket.on("data", (chunk) => {
      this.chunks.push(chunk)
      this.receivedBytes += chunk.length
      this.wake()
    })
    socket.on("error", () => this.wake())
    socket.on("close", () => {
      this.isClosed = true
      this.wake()
    })
  }

  static async open(port: number): Promise<RawClient> {
    const socket = connect({ port, host: "127.0.0.1", noDelay: true })
    const client = new RawClient(socket)
    await once(socket, "connect")
    return client
  }

  /** Sends, and resolves when the kernel has it or the connection is gone. */
  send(data: string | Uint8Array): Promise<void> {
    return new Promise((resolve) => {
      this.socket.write(data, () => resolve())
    })
  }

  get received(): Buffer {
    this.chunks = [Buffer.concat(this.chunks)]
    return this.chunks[0] ?? Buffer.alloc(0)
  }

  get text(): string {
    return this.received.toString("latin1")
  }

  async untilBytes(count: number): Promise<Buffer> {
    while (this.receivedBytes < count) await this.change()
    return this.received
  }

  /** Resolves when the condition holds; rejects with what was heard where the connection closed before. */
  async until(condition: (text: string) => boolean): Promise<string> {
    while (!condition(this.text)) {
      if (this.isClosed)
        throw new Error(`The connection closed after: ${JSON.stringify(this.text.slice(0, 500))}`)
      await new Promise<void>((resolve) => {
        this.wake = resolve
      })
    }
    return this.text
  }

  /** Everything that was heard until the server closed. */
  async closed(): Promise<string> {
    while (!this.isClosed) {
      await new Promise<void>((resolve) => {
        this.wake = resolve
      })
    }
    return this.text
  }

  private async change(): Promise<void> {
    if (this.isClosed)
      throw new Error(`The connection closed after: ${JSON.stringify(this.text.slice(0, 500))}`)
    await new Promise<void>((resolve) => {
      this.wake = resolve
    })
  }

  destroy(): void {
    this.socket.destroy()
  }
}

/** Status of the last complete head that was heard, 0 where there is none. */
export const statusOf = (text: string): number => Number(/HTTP\/1\.[01] (\d{3})/.exec(text)?.[1] ?? 0)

/** One request on a connection of its own, and everything the server said until its answer was complete. */
export const exchange = async (
  port: number,
  request: string,
  isDone: (text: string) => boolean
): Promise<string> => {
  const client = await RawClient.open(port)
  try {
    await client.send(request)
    return await client.until(isDone)
  } finally {
    client.destroy()
  }
}
