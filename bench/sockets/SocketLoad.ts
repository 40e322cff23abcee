import { fork } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { clientCore, nodeOn } from "#bench/harness/Cores.ts"
import { latencyOf, type Latency } from "#bench/harness/Suite.ts"
import type { Script } from "./Script.ts"

/**
 * Sessions over raw sockets, spread over processes, which have 20,000 files each. All come from one address, whose 28,000
 * ports are enough: a kernel that is asked for a source address looks twice as long for a port.
 */
export interface SocketLoadOptions {
  readonly port: number
  readonly path: string
  /** each for as many sessions as a key may have */
  readonly keys: ReadonlyArray<string>
  readonly sessions: number
}

/** Live sessions that a key may have (contract/agents#agent-limits). */
export const sessionsPerKey = 8

/** The options of one process. */
export interface WorkerOptions extends Omit<SocketLoadOptions, "keys"> {
  /** of the process, to tell its sessions from others' */
  readonly name: string
  /** one a session */
  readonly keys: ReadonlyArray<string>
}

/** Sessions are meant by their number in the process, from `from` on. */
interface Range {
  readonly from: number
  readonly count: number
}

/** The output of every held call: so many frames of 16 KiB, evenly over a time. */
export interface Print {
  readonly framesPerCall: number
  readonly overMillis: number
  readonly reads: boolean
}

export type Command =
  | { readonly do: "attach" }
  /** `overMillis`: evenly spread, so that the pieces of all do not come at once */
  | ({ readonly do: "prompt"; readonly script: Script; readonly overMillis: number } & Range)
  /** answers held calls, and further ones at once */
  | ({ readonly do: "answerCalls" } & Range)
  /** held calls print, then have their results; the session stops reading where told to */
  | ({ readonly do: "print"; readonly print: Print } & Range)
  | ({ readonly do: "read" } & Range)
  /** latencies count from now on, and of these sessions only */
  | ({ readonly do: "measure" } & Range)
  | { readonly do: "latencies" }
  | { readonly do: "progress" }

/** Counts of one process, or of all. */
export interface Progress {
  /** sessions whose socket has been greeted and is there */
  readonly attached: number
  /** greetings that said that the session goes on */
  readonly resumed: number
  /** sessions with a piece of the running prompt */
  readonly speaking: number
  /** sessions with as many held calls as their script has */
  readonly holding: number
  readonly done: number
  /** of those done: completed, with every piece once and in order */
  readonly whole: number
  readonly pieces: number
  readonly gaps: number
  /** closes with 4013 */
  readonly slow: number
  /** attempts to connect that came to nothing */
  readonly retries: number
  readonly failures: number
}

export type Report =
  | { readonly progress: Progress; readonly firstFailure: string }
  | { readonly latencies: Float64Array }

export interface SocketLoad {
  readonly tell: (command: Exclude<Command, { readonly do: "progress" | "latencies" }>) => void
  readonly progress: () => Promise<Progress>
  /** Resolves once it holds; fails on a failure of a session, and after the time. Answers when that was, as `performance.now` */
  readonly until: (condition: (now: Progress) => boolean, withinMillis: number) => Promise<number>
  /** from when a piece left the upstream until it was here, since `measure` */
  readonly latency: () => Promise<Latency & { readonly count: number }>
  readonly leave: () => Promise<void>
}

/** Below 20,000 files. */
const sessionsPerProcess = 9_500
const pollMillis = 20

let loads = 0

class Worker {
  private readonly child
  private answer: (report: Report | undefined) => void = () => undefined

  constructor(options: WorkerOptions) {
    const { execArgv, execPath } = nodeOn(clientCore)
    this.child = fork(join(import.meta.dirname, "SocketLoadWorker.ts"), {
      execPath,
      // Pauses of the clients' own garbage collection would count as the server's.
      execArgv: [...execArgv, "--max-semi-space-size=64"],
      serialization: "advanced"
    })
    this.child.on("message", (report: Report) => this.answer(report))
    this.child.on("exit", () => this.answer(undefined))
    this.child.send(options)
  }

  tell(command: Command): void {
    this.child.send(command)
  }

  async ask(command: Command): Promise<Report> {
    const answered = Promise.withResolvers<Report | undefined>()
    this.answer = answered.resolve
    this.tell(command)
    const report = await answered.promise
    if (report === undefined) throw new Error("A load process ended")
    return report
  }

  async leave(): Promise<void> {
    if (this.child.connected) this.child.disconnect()
    if (this.child.exitCode === null) await once(this.child, "exit")
  }
}

const total = (parts: ReadonlyArray<Progress>): Progress => {
  const sum = { ...parts[0] } as { -readonly [K in keyof Progress]: number }
  for (const part of parts.slice(1)) {
    for (const [name, count] of Object.entries(part)) sum[name as keyof Progress] += count
  }
  return sum
}

/** The part of a range that each process has. */
const shareOf = (command: Command, index: number, perProcess: number): Command | undefined => {
  if (!("from" in command)) return command
  const from = Math.max(0, command.from - index * perProcess)
  const until = Math.min(perProcess, command.from + command.count - index * perProcess)
  return until > from ? { ...command, from, count: until - from } : undefined
}

export const startSockets = ({ keys, sessions, ...target }: SocketLoadOptions): SocketLoad => {
  const processes = Math.ceil(sessions / sessionsPerProcess)
  const perProcess = Math.ceil(sessions / processes)
  const workers = Array.from({ length: processes }, (_, index) => {
    const from = index * perProcess
    const own = Math.min(perProcess, sessions - from)
    const ownKeys = Array.from(
      { length: own },
      (__, one) => keys[Math.floor((from + one) / sessionsPerKey) % keys.length] ?? ""
    )
    return new Worker({ ...target, name: `load-${++loads}`, keys: ownKeys, sessions: own })
  })
  const askAll = (command: Command): Promise<ReadonlyArray<Report>> =>
    Promise.all(workers.map((worker) => worker.ask(command)))
  const progress = async (): Promise<Progress> => {
    const reports = (await askAll({ do: "progress" })).flatMap((report) =>
      "progress" in report ? [report] : []
    )
    const failed = reports.find((report) => report.progress.failures > 0)
    if (failed !== undefined) throw new Error(`A session failed: ${failed.firstFailure}`)
    return total(reports.map((report) => report.progress))
  }
  return {
    tell: (command) =>
      workers.forEach((worker, index) => {
        const share = shareOf(command, index, perProcess)
        if (share !== undefined) worker.tell(share)
      }),
    progress,
    until: async (condition, withinMillis) => {
      const deadline = performance.now() + withinMillis
      for (;;) {
        const now = await progress()
        if (condition(now)) return performance.now()
        if (performance.now() > deadline)
          throw new Error(`Not within ${withinMillis} ms: ${JSON.stringify(now)}`)
        await new Promise((resolve) => setTimeout(resolve, pollMillis))
      }
    },
    latency: async () => {
      const all = (await askAll({ do: "latencies" })).flatMap((report) =>
        "latencies" in report ? Array.from(report.latencies) : []
      )
      return { ...latencyOf(Float64Array.from(all)), count: all.length }
    },
    leave: async () => {
      for (const worker of workers) await worker.leave()
    }
  }
}
