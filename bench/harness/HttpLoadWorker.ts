import { connect, type Socket } from "node:net"
import { pathToFileURL } from "node:url"
import type { Command, LoadOptions, LoadResult, Report, RequestSource } from "./HttpLoad.ts"

/** The process behind `load` and `startLoad`: the options come first, then commands. */

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

  clear(): void {
    this.counts.fill(0)
    this.total = 0
    this.max = 0
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
  readonly options: LoadOptions
  private readonly source: RequestSource
  private readonly histogram = new Histogram()
  private readonly statuses = new Map<number, number>()
  private readonly idle: Array<Connection> = []
  /** when requests that found no idle connection were due, from `overdueFrom` on */
  private overdue: Array<number> = []
  private overdueFrom = 0
  private start = 0
  /** latency counts for what was due from here on */
  private measuredFrom = 0
  /** connections that are still to open for the first time; the load begins when all have */
  private opening: number
  private readonly countMax: number
  private sent = 0
  private answered = 0
  private arrivals = 0
  private errors = 0
  /** the window that is looked at: when it began, and the counts then */
  private window = { start: 0, answered: 0, errors: 0 }
  /** called once all connections are open */
  onReady: () => void = () => undefined
  /** no more requests are sent */
  private isEnding = false
  /** between two windows nothing is sent */
  private isPaused = false
  private onIdle: () => void = () => undefined
  private isOver = false
  private finish: () => void = () => undefined

  constructor(options: LoadOptions, source: RequestSource) {
    this.options = options
    this.source = source
    this.countMax = options.count ?? Infinity
    this.opening = options.connections
  }

  run(): Promise<LoadResult> {
    const { connections } = this.options
    const result = new Promise<LoadResult>((resolve) => {
      this.finish = () => {
        this.isOver = true
        resolve(this.result())
      }
    })
    for (let index = 0; index < connections; index++) new Connection(this).open()
    return result
  }

  /** A connection has opened, or opened again. */
  opened(connection: Connection): void {
    // One that was closed while it was idle is so still.
    if (this.opening === 0) return this.idle.includes(connection) ? undefined : this.release(connection)
    this.idle.push(connection)
    this.opening--
    if (this.opening === 0) this.begin()
  }

  private begin(): void {
    const { durationMillis, ratePerSecond, warmUpMillis = 0 } = this.options
    this.beginWindow()
    this.start = this.window.start
    this.measuredFrom = this.start + warmUpMillis
    setTimeout(() => this.stop(), durationMillis)
    if (ratePerSecond !== undefined) setInterval(() => this.arrive(ratePerSecond), 1)
    else for (const connection of this.idle.splice(0)) this.release(connection)
    this.onReady()
  }

  beginWindow(): void {
    this.histogram.clear()
    this.statuses.clear()
    this.window = { start: performance.now(), answered: this.answered, errors: this.errors }
  }

  stop(): void {
    this.isEnding = true
    if (this.options.drains !== true || this.isIdle()) this.finish()
  }

  private isIdle(): boolean {
    return this.sent === this.answered + this.errors
  }

  /** Sends again after a pause; answers count from now on. */
  openWindow(): void {
    this.isPaused = false
    this.beginWindow()
    for (const connection of this.idle.splice(0)) this.release(connection)
  }

  /** Sends nothing more, and resolves once everything that was sent is answered. */
  closeWindow(): Promise<LoadResult> {
    this.isPaused = true
    return new Promise((resolve) => {
      this.onIdle = () => {
        this.onIdle = () => undefined
        resolve(this.result())
      }
      if (this.isIdle()) this.onIdle()
    })
  }

  /** The next request in turn, or undefined when all have been sent or the load is over. */
  next(): Uint8Array | undefined {
    if (this.isEnding || this.isOver || this.sent >= this.countMax) return undefined
    this.sent++
    return this.source.next()
  }

  answer(status: number, dueAt: number): void {
    if (this.isOver) return
    this.answered++
    this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1)
    if (dueAt >= this.measuredFrom) this.histogram.add((performance.now() - dueAt) * 1000)
    if (this.answered >= this.countMax || (this.isEnding && this.isIdle())) this.finish()
    else if (this.isPaused && this.isIdle()) this.onIdle()
  }

  broken(): boolean {
    if (!this.isOver) this.errors++
    if (this.isPaused && this.isIdle()) this.onIdle()
    return !this.isOver
  }

  /** A connection has nothing to do: it takes the oldest overdue request, or the next where the loop is closed. */
  release(connection: Connection): void {
    if (this.isOver) return
    if (this.isPaused) {
      this.idle.push(connection)
      return
    }
    if (this.options.ratePerSecond === undefined) return connection.send(performance.now())
    const dueAt = this.overdue[this.overdueFrom]
    if (dueAt === undefined) {
      this.overdue = []
      this.overdueFrom = 0
      this.idle.push(connection)
    } else {
      this.overdueFrom++
      connection.send(dueAt)
    }
  }

  private arrive(ratePerSecond: number): void {
    if (this.isOver) return
    const due = ((performance.now() - this.start) * ratePerSecond) / 1000
    for (; this.arrivals < due; this.arrivals++) {
      const dueAt = this.start + (this.arrivals * 1000) / ratePerSecond
      // The one that has rested longest: a server closes those that rest for ten seconds, one of them amid a request.
      const connection = this.idle.shift()
      if (connection === undefined) this.overdue.push(dueAt)
      else connection.send(dueAt)
    }
  }

  /** Of the window; of the whole load where there was none. */
  result(): LoadResult {
    const elapsedMillis = performance.now() - this.window.start
    const requests = this.answered - this.window.answered
    const { histogram } = this
    return {
      requests,
      elapsedMillis,
      requestsPerSecond: (requests * 1000) / elapsedMillis,
      statuses: Object.fromEntries(this.statuses),
      errors: this.errors - this.window.errors,
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

/** All sockets read into it: bytes not used up in the callback are copied out. */
const received = Buffer.allocUnsafeSlow(64 * 1024)

/** Length of the last whole answer that came in one piece, and its status: most answers are like the one before. */
let usualLength = 0
let usualStatus = 0

const statusOf = (bytes: Buffer): number =>
  ((bytes[9] ?? 0) - 48) * 100 + ((bytes[10] ?? 0) - 48) * 10 + (bytes[11] ?? 0) - 48

/** One keep-alive connection with at most one request in flight; opened again when the server closes it. */
class Connection {
  private readonly load: Load
  private socket: Socket | undefined
  private dueAt = 0
  private isBusy = false
  /** bytes of an answer that has not come whole */
  private rest: Buffer = Buffer.alloc(0)

  constructor(load: Load) {
    this.load = load
  }

  open(): void {
    const { port, host = "127.0.0.1" } = this.load.options
    const onread = {
      buffer: received,
      callback: (length: number): boolean => {
        this.receive(length)
        return true
      }
    }
    const socket = connect({ port, host, noDelay: true, onread }, () => {
      // A request may have been written while it opened.
      if (!this.isBusy) this.load.opened(this)
    })
    this.socket = socket
    socket.on("error", () => socket.destroy())
    socket.on("close", () => {
      const isWanted = this.isBusy ? this.load.broken() : true
      this.isBusy = false
      this.rest = Buffer.alloc(0)
      if (isWanted) this.open()
    })
  }

  send(dueAt: number): void {
    const request = this.load.next()
    if (request === undefined) return
    this.dueAt = dueAt
    this.isBusy = true
    this.socket?.write(request)
  }

  private receive(length: number): void {
    if (this.rest.length === 0 && length === usualLength && statusOf(received) === usualStatus) {
      return this.finish(usualStatus)
    }
    const bytes = Buffer.concat([this.rest, received.subarray(0, length)])
    const answer = answerLength(bytes)
    this.rest = bytes
    if (answer === undefined || bytes.length < answer) return
    this.rest = Buffer.alloc(0)
    usualLength = answer
    usualStatus = statusOf(bytes)
    this.finish(usualStatus)
  }

  private finish(status: number): void {
    this.isBusy = false
    this.load.answer(status, this.dueAt)
    this.load.release(this)
  }
}

/** The length of the answer that begins here; undefined while it is unknown. */
const answerLength = (bytes: Buffer): number | undefined => {
  const head = bytes.indexOf(headEnd)
  if (head < 0) return undefined
  const declared = /content-length: *(\d+)/i.exec(bytes.toString("latin1", 0, head + 2))
  if (declared !== null) return head + 4 + Number(declared[1])
  if (!/transfer-encoding: *chunked/i.test(bytes.toString("latin1", 0, head + 2))) return head + 4
  const end = bytes.indexOf(chunksEnd, head + 2)
  return end < 0 ? undefined : end + chunksEnd.length
}

const sourceOf = async ({ requests }: LoadOptions): Promise<RequestSource> => {
  if ("file" in requests) {
    const module: { readonly source: (options: object) => RequestSource } = await import(
      pathToFileURL(requests.file).href
    )
    return module.source(requests.options)
  }
  let sent = 0
  return { next: () => requests[sent++ % requests.length] ?? new Uint8Array(0) }
}

const tell = (report: Report): Promise<void> =>
  new Promise((resolve) => process.send?.(report, () => resolve()))

const obey = (load: Load, command: Command): void => {
  if (command === "window") load.openWindow()
  else if (command === "stop") load.stop()
  else void load.closeWindow().then((result) => tell({ kind: "result", ...result }))
}

process.once("message", (options: LoadOptions) => {
  const run = async (): Promise<void> => {
    const load = new Load(options, await sourceOf(options))
    load.onReady = () => void tell({ kind: "ready" })
    process.on("message", (command: Command) => obey(load, command))
    await tell({ kind: "result", ...(await load.run()) })
    process.exit(0)
  }
  run().catch((error: unknown) => {
    console.error(error)
    process.exit(1)
  })
})

// The process that asked has ended.
process.once("disconnect", () => process.exit(0))
