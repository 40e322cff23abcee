import { fork } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { clientCore, nodeOn } from "./Cores.ts"
import type { Latency } from "./Suite.ts"
import { median } from "./Summary.ts"

/**
 * HTTP load over keep-alive connections from a process of its own, so that client and server share no thread. Answers
 * are parsed only as far as their status and length.
 */
export interface LoadOptions {
  readonly port: number
  /** "127.0.0.1" when absent */
  readonly host?: string
  readonly connections: number
  readonly durationMillis: number
  /** whole requests, head and body, sent in turn; or the module that makes them in the load's own process */
  readonly requests: ReadonlyArray<Uint8Array> | RequestModule
  /** waits at the end for the answers that are under way, so that no request stays open */
  readonly drains?: boolean
  /** ends the load once so many requests are answered, if that is before `durationMillis` */
  readonly count?: number
  /**
   * arrivals per second, whether or not earlier requests were answered; latency then counts from when a request was
   * due. When absent every connection sends its next request as soon as it has its answer.
   */
  readonly ratePerSecond?: number
  /**
   * latency is left out for what is due earlier than this: a load that has just begun is a client whose code is still
   * being compiled. Default 0
   */
  readonly warmUpMillis?: number
}

/** A module with `source: (options) => RequestSource`: its file and its options. */
export interface RequestModule {
  readonly file: string
  readonly options: object
}

export interface RequestSource {
  /** the next request; its bytes have to stay as they are until it is sent */
  readonly next: () => Uint8Array
}

export interface LoadResult {
  readonly requests: number
  readonly elapsedMillis: number
  readonly requestsPerSecond: number
  /** answers by status */
  readonly statuses: Readonly<Record<string, number>>
  /** connections that broke with a request unanswered */
  readonly errors: number
  readonly latency: Latency & { readonly p90Millis: number; readonly p999Millis: number }
}

/** To the load's process, after its options. */
export type Command = "window" | "report" | "stop"
export type Report = { readonly kind: "ready" } | ({ readonly kind: "result" } & LoadResult)

/** A load of closed connections that sends in windows, until it is stopped. */
export interface RunningLoad {
  /**
   * sends for so many milliseconds from now, and waits for the answers of everything that it sent; nothing is sent between
   * two windows
   */
  readonly window: (millis: number) => Promise<LoadResult>
  /** answers under way are waited for where the load drains */
  readonly stop: () => Promise<LoadResult>
}

class LoadProcess {
  private readonly child = fork(join(import.meta.dirname, "HttpLoadWorker.ts"), {
    ...nodeOn(clientCore),
    serialization: "advanced"
  })
  private readonly exited = once(this.child, "exit")

  constructor(options: LoadOptions) {
    this.child.send(options)
  }

  /** The next report; rejects when the process ends without one. */
  async next(): Promise<Report> {
    const outcome = await Promise.race([
      once(this.child, "message") as Promise<ReadonlyArray<Report>>,
      this.exited.then(() => [])
    ])
    if (outcome[0] === undefined) throw new Error("The load process ended without a result")
    return outcome[0]
  }

  async result(): Promise<LoadResult> {
    for (;;) {
      const report = await this.next()
      if (report.kind === "result") return report
    }
  }

  tell(command: Command): void {
    this.child.send(command)
  }

  async end(): Promise<void> {
    if (this.child.connected) this.child.disconnect()
    await this.exited
  }
}

/** Runs the load and resolves with its result; rejects when the load process fails. */
export const load = async (options: LoadOptions): Promise<LoadResult> => {
  const worker = new LoadProcess(options)
  const result = await worker.result()
  await worker.end()
  return result
}

/** Starts a load; resolves when all of its connections are open. */
export const startLoad = async (options: Omit<LoadOptions, "durationMillis">): Promise<RunningLoad> => {
  const worker = new LoadProcess({ ...options, durationMillis: longestMillis })
  await worker.next()
  return {
    window: async (millis) => {
      worker.tell("window")
      await new Promise((resolve) => setTimeout(resolve, millis))
      const result = worker.result()
      worker.tell("report")
      return result
    },
    stop: async () => {
      const result = worker.result()
      worker.tell("stop")
      const last = await result
      await worker.end()
      return last
    }
  }
}

/** A running load ends by itself after so long, if its owner forgets it. */
const longestMillis = 600_000

/** Of several windows as if they were one; percentiles are the medians of theirs. */
export const together = (windows: ReadonlyArray<LoadResult>): LoadResult => {
  const sum = (of: (window: LoadResult) => number): number =>
    windows.reduce((total, window) => total + of(window), 0)
  const middle = (of: (window: LoadResult) => number): number => median(windows.map(of))
  const [requests, elapsedMillis] = [sum((one) => one.requests), sum((one) => one.elapsedMillis)]
  const statuses: Record<string, number> = {}
  for (const [status, count] of windows.flatMap((one) => Object.entries(one.statuses)))
    statuses[status] = (statuses[status] ?? 0) + count
  return {
    requests,
    elapsedMillis,
    requestsPerSecond: (requests * 1000) / elapsedMillis,
    statuses,
    errors: sum((one) => one.errors),
    latency: {
      p50Millis: middle((one) => one.latency.p50Millis),
      p90Millis: middle((one) => one.latency.p90Millis),
      p99Millis: middle((one) => one.latency.p99Millis),
      p999Millis: middle((one) => one.latency.p999Millis),
      maxMillis: Math.max(...windows.map((one) => one.latency.maxMillis))
    }
  }
}

/** Answers in a window, all of which have to have the status. */
export const answered = (result: LoadResult, status: string): LoadResult => {
  if (result.errors > 0 || (result.statuses[status] ?? 0) !== result.requests)
    throw new Error(`Unexpected answers: ${JSON.stringify(result.statuses)}, ${result.errors} errors`)
  return result
}

/** A whole request as bytes. */
export const requestBytes = (
  method: string,
  path: string,
  headers: Readonly<Record<string, string>> = {},
  body = ""
): Uint8Array => {
  const all: Record<string, string> = { Host: "127.0.0.1", ...headers }
  if (body !== "") all["Content-Length"] = String(Buffer.byteLength(body))
  const head = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  return Buffer.from(`${method} ${path} HTTP/1.1\r\n${head.join("")}\r\n${body}`)
}
