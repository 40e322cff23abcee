import { connect, type Socket } from "node:net"
import { latencyOf } from "#bench/harness/Suite.ts"
import { nowMicros, stampDigits, stampMark } from "./Answers.ts"
import type { CallLoadOptions, CallLoadResult, Command, Report } from "./CallLoad.ts"

/** The process behind `startCalls`. */

const chunksEnd = "\r\n0\r\n\r\n"
/** A timer may be a millisecond late: the rest is waited for without sleeping. */
const timerMillis = 1.5

/** Reads one answer as it comes: its head, the stamps of its pieces, its end. */
class AnswerReader {
  firstAt = 0
  pieces = 0
  status = 0
  readonly delays: Array<number> = []
  private head = ""
  private isBody = false
  /** of an answer with a length: the bytes still to come */
  private left: number | undefined
  /** the last characters, in case the end or a stamp is cut */
  private tail = ""

  /** true once the answer is whole */
  take(text: string): boolean {
    if (this.isBody) return this.takeBody(text)
    this.head += text
    const end = this.head.indexOf("\r\n\r\n")
    if (end < 0) return false
    this.isBody = true
    this.status = Number(this.head.slice(9, 12))
    const length = /content-length: *(\d+)/i.exec(this.head.slice(0, end + 2))?.[1]
    if (length !== undefined) this.left = Number(length)
    const body = this.head.slice(end + 4)
    this.tail = "\r\n"
    return this.takeBody(body)
  }

  get start(): string {
    return this.head.slice(0, 600)
  }

  private takeBody(text: string): boolean {
    const known = this.tail + text
    const from = this.stamps(known)
    this.tail = known.slice(Math.max(from, known.length - stampDigits - 1))
    if (this.left === undefined) return known.endsWith(chunksEnd)
    this.left -= text.length
    return this.left <= 0
  }

  /** The start of the next search: behind the last whole stamp. */
  private stamps(text: string): number {
    let from = 0
    for (;;) {
      const at = text.indexOf(stampMark, from)
      if (at < 0 || at + stampDigits >= text.length) return from
      from = at + 1 + stampDigits
      const now = nowMicros()
      if (this.pieces === 0) this.firstAt = performance.now()
      this.pieces++
      this.delays.push((now - Number(text.slice(at + 1, from))) / 1000)
    }
  }
}

interface Call {
  readonly dueAt: number
  readonly reader: AnswerReader
  hasBegun: boolean
}

class Load {
  private readonly options: CallLoadOptions
  private readonly idle: Array<Socket> = []
  private readonly busy = new Map<Socket, Call>()
  private readonly whole: Array<number> = []
  private readonly first: Array<number> = []
  private readonly delays: Array<number> = []
  private start = 0
  private calls = 0
  private failures = 0
  private firstFailure = ""
  private left = 0
  private pieces = 0
  private bytes = 0
  private begun = 0
  private isOver = false
  private hasLeft = false

  constructor(options: CallLoadOptions) {
    this.options = options
  }

  run(): void {
    this.start = performance.now()
    const { arrivals } = this.options
    if ("ratePerSecond" in arrivals) return this.arrive(arrivals.ratePerSecond, arrivals.durationMillis)
    // Not in one moment: a backlog of connections is not what is measured.
    const timer = setInterval(() => {
      for (let index = 0; index < 10 && this.calls < arrivals.together; index++) this.call(performance.now())
      if (this.calls < arrivals.together) return
      clearInterval(timer)
      this.isOver = true
    }, 2)
  }

  command(command: Command): void {
    if (command === "progress") tell({ kind: "progress", pieces: this.pieces, bytes: this.bytes })
    else if (command === "leave") {
      this.hasLeft = true
      for (const socket of this.busy.keys()) socket.destroy()
    } else for (const socket of this.busy.keys()) socket.resume()
  }

  private arrive(ratePerSecond: number, durationMillis: number): void {
    const next = (): void => {
      const dueAt = this.start + (this.calls * 1000) / ratePerSecond
      if (dueAt - this.start >= durationMillis) {
        this.isOver = true
        return this.finishIfDone()
      }
      const wait = dueAt - performance.now()
      if (wait > timerMillis) setTimeout(next, wait - timerMillis)
      else if (wait > 0) setImmediate(next)
      else {
        this.call(dueAt)
        next()
      }
    }
    next()
  }

  private call(dueAt: number): void {
    this.calls++
    const socket = this.idle.pop() ?? this.open()
    const call: Call = { dueAt, reader: new AnswerReader(), hasBegun: false }
    this.busy.set(socket, call)
    socket.write(this.options.request)
    if (this.options.readsLater === true) {
      socket.pause()
      this.began(call)
    }
  }

  private open(): Socket {
    const { port } = this.options
    const socket = connect({ port, host: "127.0.0.1", noDelay: true })
    socket.on("data", (chunk: Buffer) => this.receive(socket, chunk))
    socket.on("error", () => socket.destroy())
    socket.on("close", () => this.closed(socket))
    return socket
  }

  private receive(socket: Socket, chunk: Buffer): void {
    const call = this.busy.get(socket)
    if (call === undefined) return
    this.bytes += chunk.length
    const { reader } = call
    const before = reader.pieces
    const isWhole = reader.take(chunk.toString("latin1"))
    this.pieces += reader.pieces - before
    if (reader.pieces > 0 || isWhole) this.began(call)
    if (!isWhole) return
    this.busy.delete(socket)
    this.ended(reader, call.dueAt)
    this.idle.push(socket)
    this.finishIfDone()
  }

  private ended(reader: AnswerReader, dueAt: number): void {
    const { pieces, warmUpMillis } = this.options
    if (reader.status !== 200) this.fail(reader.start)
    else if (reader.pieces !== pieces) this.fail(`${reader.pieces} pieces instead of ${pieces}`)
    else if (dueAt - this.start >= warmUpMillis) {
      this.whole.push(performance.now() - dueAt)
      if (pieces > 0) this.first.push(reader.firstAt - dueAt)
      for (const delay of reader.delays) this.delays.push(delay)
    }
  }

  private closed(socket: Socket): void {
    const at = this.idle.indexOf(socket)
    if (at >= 0) this.idle.splice(at, 1)
    const call = this.busy.get(socket)
    if (call === undefined) return
    this.busy.delete(socket)
    if (this.hasLeft) this.left++
    else this.fail(`closed after ${call.reader.pieces} pieces: ${call.reader.start}`)
    this.began(call)
    this.finishIfDone()
  }

  private fail(what: string): void {
    this.failures++
    if (this.failures === 1) this.firstFailure = what
  }

  /** The call has its first piece, or has failed without one; of those that read later it has been sent. */
  private began(call: Call): void {
    if (call.hasBegun) return
    call.hasBegun = true
    this.begun++
    const { arrivals } = this.options
    if ("together" in arrivals && this.begun === arrivals.together) tell({ kind: "ready" })
  }

  private finishIfDone(): void {
    if (!this.isOver || this.busy.size > 0) return
    const latency = (values: ReadonlyArray<number>) => latencyOf(Float64Array.from(values))
    const result: CallLoadResult = {
      calls: this.calls,
      failures: this.failures,
      firstFailure: this.firstFailure,
      left: this.left,
      pieces: this.pieces,
      bytes: this.bytes,
      whole: latency(this.whole),
      firstPiece: latency(this.first),
      pieceDelay: latency(this.delays)
    }
    for (const socket of this.idle) socket.destroy()
    tell({ kind: "result", ...result })
  }
}

const tell = (report: Report): void => void process.send?.(report)

process.once("message", (options: CallLoadOptions) => {
  const load = new Load(options)
  process.on("message", (command: Command) => load.command(command))
  process.once("disconnect", () => process.exit(0))
  load.run()
})
