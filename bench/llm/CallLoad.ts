import { fork } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { clientCore, nodeOn } from "#bench/harness/Cores.ts"
import type { Latency } from "#bench/harness/Suite.ts"

/** Calls of the model API over raw sockets, from a process of their own. */
export interface CallLoadOptions {
  readonly port: number
  /** a whole request, head and body */
  readonly request: Uint8Array
  /** pieces of content that every streamed answer has to have; 0 for plain answers */
  readonly pieces: number
  readonly arrivals: Arrivals
  /** calls that were due earlier do not count in latencies */
  readonly warmUpMillis: number
  /** reading starts on command only */
  readonly readsLater?: boolean
}

/** So many a second, whether or not earlier ones are answered; or a number of them, all open at a time. */
export type Arrivals =
  | { readonly ratePerSecond: number; readonly durationMillis: number }
  | { readonly together: number }

export interface CallLoadResult {
  readonly calls: number
  /** answers that were not whole, not 200, or had other than the expected pieces; the first says what it was */
  readonly failures: number
  readonly firstFailure: string
  /** calls that were left by the client */
  readonly left: number
  readonly pieces: number
  readonly bytes: number
  /** from when a call was due until its answer was whole */
  readonly whole: Latency
  /** from when a call was due until its first piece of content */
  readonly firstPiece: Latency
  /** from when a piece left the upstream until it was here */
  readonly pieceDelay: Latency
}

/** The bytes and events received so far. */
export interface Progress {
  readonly pieces: number
  readonly bytes: number
}

export type Command = "progress" | "leave" | "read"
export type Report =
  | { readonly kind: "ready" }
  | ({ readonly kind: "progress" } & Progress)
  | ({ readonly kind: "result" } & CallLoadResult)

/** A load under way. */
export interface CallLoad {
  /** every call has its first piece of content, or has failed (or, of those that read later, has been sent) */
  readonly ready: () => Promise<void>
  readonly progress: () => Promise<Progress>
  /** closes every connection at once */
  readonly leave: () => void
  /** those that read later begin to */
  readonly read: () => void
  /** after the last answer */
  readonly result: () => Promise<CallLoadResult>
}

export const startCalls = (options: CallLoadOptions): CallLoad => {
  const worker = fork(join(import.meta.dirname, "CallLoadWorker.ts"), {
    ...nodeOn(clientCore),
    serialization: "advanced"
  })
  const ready = Promise.withResolvers<boolean>()
  const result = Promise.withResolvers<CallLoadResult | undefined>()
  let progress: (now: Progress) => void = () => undefined
  worker.on("message", (report: Report) => {
    if (report.kind === "ready") ready.resolve(true)
    else if (report.kind === "progress") progress(report)
    else result.resolve(report)
  })
  worker.on("exit", () => {
    ready.resolve(false)
    result.resolve(undefined)
  })
  worker.send(options)
  const tell = (command: Command): void => void worker.send(command)
  return {
    ready: async () => {
      if (!(await ready.promise)) throw new Error("The load process ended before every call had begun")
    },
    progress: () => {
      const answered = new Promise<Progress>((resolve) => {
        progress = resolve
      })
      tell("progress")
      return answered
    },
    leave: () => tell("leave"),
    read: () => tell("read"),
    result: async () => {
      const found = await result.promise
      if (found === undefined) throw new Error("The load process ended without a result")
      if (worker.connected) worker.disconnect()
      if (worker.exitCode === null) await once(worker, "exit")
      return found
    }
  }
}

/** Runs a load to its end; fails where any answer was not as expected. */
export const runCalls = async (options: CallLoadOptions): Promise<CallLoadResult> => {
  const result = await startCalls(options).result()
  return checked(result)
}

export const checked = (result: CallLoadResult): CallLoadResult => {
  if (result.failures > 0)
    throw new Error(`${result.failures} of ${result.calls} calls failed: ${result.firstFailure}`)
  return result
}
