import { connect, createServer, type Socket } from "node:net"
import { clientCore } from "#bench/harness/Cores.ts"
import { type ForkedServer, forkServer } from "#bench/harness/ForkedServer.ts"

/**
 * A relay that takes every mail and keeps none. `XCOUNT` answers how many came since `XRESET`, and when the first one did;
 * `XREFUSE` has it refuse every sender (421) until the next `XRESET`.
 */
export const startSink = (): Promise<ForkedServer> => forkServer(import.meta.filename, clientCore)

export interface Arrived {
  readonly count: number
  /** epoch milliseconds with fractions; 0 where none came */
  readonly firstAtMillis: number
}

/** The reply to one of its own commands. */
const told = (port: number, command: string): Promise<string> =>
  new Promise((resolve, reject) => {
    let text = ""
    const socket = connect(port, "127.0.0.1", () => socket.write(`${command}\r\n`))
    socket.on("error", reject)
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1")
      if (text.split("\r\n").length < 3) return
      socket.destroy()
      resolve(text.split("\r\n")[1] ?? "")
    })
  })

export const resetSink = (port: number): Promise<string> => told(port, "XRESET")

export const refuseAt = (port: number): Promise<string> => told(port, "XREFUSE")

export const arrivedAt = async (port: number): Promise<Arrived> => {
  const [, count, first] = (await told(port, "XCOUNT")).split(" ")
  return { count: Number(count), firstAtMillis: Number(first) }
}

const dataEnd = Buffer.from("\r\n.\r\n")

/** The mails that came so far. */
class Taken {
  count = 0
  firstAtMillis = 0
  isRefusing = false

  take(): void {
    if (this.count++ === 0) this.firstAtMillis = performance.timeOrigin + performance.now()
  }

  replyTo(line: string): string {
    switch (line.slice(0, 4).toUpperCase()) {
      case "EHLO":
        return "250-sink\r\n250-PIPELINING\r\n250 8BITMIME"
      case "MAIL":
        return this.isRefusing ? "421 4.3.2 not now" : "250 2.1.0 ok"
      case "DATA":
        return "354 go on"
      case "QUIT":
        return "221 2.0.0 bye"
      case "XCOU":
        return `250 ${this.count} ${this.firstAtMillis}`
      case "XRES":
        this.count = 0
        this.firstAtMillis = 0
        this.isRefusing = false
        return "250 reset"
      case "XREF":
        this.isRefusing = true
        return "250 refusing"
      default:
        return "250 2.0.0 ok"
    }
  }
}

const talk = (socket: Socket, taken: Taken): void => {
  let held: Buffer = Buffer.alloc(0)
  let isInData = false
  socket.setNoDelay(true)
  socket.on("error", () => socket.destroy())
  socket.write("220 sink ESMTP\r\n")
  socket.on("data", (chunk: Buffer) => {
    held = held.length === 0 ? chunk : Buffer.concat([held, chunk])
    const replies: Array<string> = []
    for (;;) {
      const end = held.indexOf(isInData ? dataEnd : "\r\n")
      if (end < 0) break
      const line = held.toString("latin1", 0, isInData ? 0 : end)
      held = held.subarray(end + (isInData ? dataEnd.length : 2))
      if (isInData) taken.take()
      const reply = isInData ? "250 2.0.0 taken" : taken.replyTo(line)
      isInData = reply.startsWith("354")
      replies.push(reply)
    }
    if (replies.length > 0) socket.write(`${replies.join("\r\n")}\r\n`)
  })
}

const serve = (): void => {
  const taken = new Taken()
  const server = createServer((socket) => talk(socket, taken)).listen(0, "127.0.0.1", () => {
    const address = server.address()
    process.send?.(typeof address === "object" ? address?.port : 0)
  })
  process.once("disconnect", () => process.exit(0))
}

if (process.argv[1] === import.meta.filename) serve()
