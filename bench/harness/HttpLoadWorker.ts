import { connect, type Socket } from "node:net"
import type { LoadOptions, LoadResult } from "./HttpLoad.ts"

/** The process behind `HttpLoad.load`: one message in, one message out. */

const headEnd = Buffer.from("\r\n\r\n")
const chunksEnd = Buffer.from("\r\n0\r\n\r\n")

/** Latencies in microseconds, exact to 1 in 1024: enough for percentiles, and of constant size. */
class Histogram {
  private readonly counts = new Uint32Array(1024 * 32)
  private total = 0
  private max = 0

  add(micros: number): void {
    const value = Math.max(0, Math.round(micros))
    const shift = Math.max(0, 32 - Math.clz32(value) - 10)
    this.counts[shift * 1024 + (value >>> shift)]!++
    this.total++
    if (value > this.max) this.max = value
  }

  millisAt(share: number): number {
    let left = Math.ceil(this.total * share)
    for (const [index, count] of this.counts.entries()) {
      left -= count
      if (left <= 0) return ((index & 1023) * 2 ** (index >>> 10)) / 1000
    }
    return this.max / 1000
  }

  get maxMillis(): number {
    return this.max / 1000
  }
}

class Load {
  private readonly options: LoadOptions
  private readonly histogram = new Histogram()
  private readonly statuses: Record<string, number> = {}
  private readonly idle: Array<Connection> = []
  /** when requests that found no idle connection were due */
  private readonly overdue: Array<number> = []
  private readonly start = performance.now()
  private sent = 0
  private answered = 0
  private arrivals = 0
  private errors = 0
  private isOver = false

  constructor(options: LoadOptions) {
    this.options = options
  }

  run(): Promise<LoadResult> {
    const { connections, durationMillis, ratePerSecond } = this.options
    for (let index = 0; index < connections; index++) new Connection(this, this.options).open()
    const arrivals =
      ratePerSecond === undefined ? undefined : setInterval(() => this.arrive(ratePerSecond), 1)
    return new Promise((resolve) => {
      setTimeout(() => {
        clearInterval(arrivals)
        this.isOver = true
        resolve(this.result())
      }, durationMillis)
    })
  }

  /** The next request in turn, or undefined when the load is over. */
  next(): Uint8Array | undefined {
    if (this.isOver) return undefined
    return this.options.requests[this.sent++ % this.options.requests.length]
  }

  answer(status: string, dueAt: number): void {
    if (this.isOver) return
    this.answered++
    this.statuses[status] = (this.statuses[status] ?? 0) + 1
    this.histogram.add((performance.now() - dueAt) * 1000)
  }

  broken(): void {
    if (!this.isOver) this.errors++
  }

  /** A connection has nothing to do: it takes the oldest overdue request, or the next where the loop is closed. */
  release(connection: Connection): void {
    if (this.isOver) return
    if (this.options.ratePerSecond === undefined) return connection.send(performance.now())
    const dueAt = this.overdue.shift()
    if (dueAt === undefined) this.idle.push(connection)
    else connection.send(dueAt)
  }

  private arrive(ratePerSecond: number): void {
    const due = ((performance.now() - this.start) * ratePerSecond) / 1000
    for (; this.arrivals < due; this.arrivals++) {
      const dueAt = this.start + (this.arrivals * 1000) / ratePerSecond
      const connection = this.idle.pop()
      if (connection === undefined) this.overdue.push(dueAt)
      else connection.send(dueAt)
    }
  }

  private result(): LoadResult {
    const elapsedMillis = performance.now() - this.start
    const { histogram } = this
    return {
      requests: this.answered,
      elapsedMillis,
      requestsPerSecond: (this.answered * 1000) / elapsedMillis,
      statuses: this.statuses,
      errors: this.errors,
      latency: {
        p50Millis: histogram.millisAt(0.5),
        p90Millis: histogram.millisAt(0.9),
        p99Millis: histogram.millisAt(0.99),
        p999Millis: histogram.millisAt(0.999),
        maxMillis: histogram.maxMillis
      }
    }
  }
}

/** One keep-alive connection with at most one request in flight; opened again when the server closes it. */
class Connection {
  private readonly load: Load
  private readonly options: LoadOptions
  private socket: Socket | undefined
  private dueAt = 0
  private isBusy = false
  /** bytes of an answer that has not come whole */
  private rest: Buffer = Buffer.alloc(0)

  constructor(load: Load, options: LoadOptions) {
    this.load = load
    this.options = options
  }

  open(): void {
    const { port, host = "127.0.0.1" } = this.options
    const socket = connect({ port, host, noDelay: true }, () => this.load.release(this))
    this.socket = socket
    socket.on("data", (chunk) => this.receive(chunk))
    socket.on("error", () => socket.destroy())
    socket.on("close", () => {
      if (this.isBusy) this.load.broken()
      this.isBusy = false
      this.rest = Buffer.alloc(0)
      if (this.load.next() !== undefined) this.open()
    })
  }

  send(dueAt: number): void {
    const request = this.load.next()
    if (request === undefined) return
    this.dueAt = dueAt
    this.isBusy = true
    this.socket?.write(request)
  }

  private receive(chunk: Buffer): void {
    const bytes = this.rest.length === 0 ? chunk : Buffer.concat([this.rest, chunk])
    const length = answerLength(bytes)
    this.rest = bytes
    if (length === undefined || bytes.length < length) return
    this.rest = Buffer.alloc(0)
    this.isBusy = false
    this.load.answer(bytes.toString("latin1", 9, 12), this.dueAt)
    this.load.release(this)
  }
}

/** How long the answer is that begins here; undefined while that cannot be said. */
const answerLength = (bytes: Buffer): number | undefined => {
  const head = bytes.indexOf(headEnd)
  if (head < 0) return undefined
  const declared = /content-length: *(\d+)/i.exec(bytes.toString("latin1", 0, head + 2))
  if (declared !== null) return head + 4 + Number(declared[1])
  if (!/transfer-encoding: *chunked/i.test(bytes.toString("latin1", 0, head + 2))) return head + 4
  const end = bytes.indexOf(chunksEnd, head + 2)
  return end < 0 ? undefined : end + chunksEnd.length
}

process.once("message", (options: LoadOptions) => {
  void new Load(options).run().then((result) => process.send?.(result, () => process.exit(0)))
})
