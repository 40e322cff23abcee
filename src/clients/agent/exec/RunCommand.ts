import { spawn, type ChildProcess, type StdioOptions } from "node:child_process"
import { closeSync, openSync, readdirSync, readFileSync } from "node:fs"
import { setTimeout as delay } from "node:timers/promises"
import { systemCode, ToolFailure } from "../tools/ToolFailure.ts"
import { openSocketFilter, type SocketFilterOptions } from "./SocketFilter.ts"

/** From SIGTERM to SIGKILL. */
const graceMillis = 2_000
/** How long to wait for the rest in the pipes of a command that ended: a process it left may hold them open. */
const drainMillis = 200

export interface Program {
  readonly file: string
  readonly args: ReadonlyArray<string>
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  /** bubblewrap tells on file 3 which process it started; the command is in a session of its own below it */
  readonly reportsStatus: boolean
  /** bubblewrap reads a socket filter from file 4 */
  readonly filter?: SocketFilterOptions
}

export interface Ended {
  readonly exitCode: number | null
  readonly signal: NodeJS.Signals | undefined
  /** why it was ended from here */
  readonly stopped: "timeout" | "cancelled" | undefined
  /** a sandbox that could not be set up never says that the command ended */
  readonly hasRun: boolean
}

/** To a whole group; that it is gone already is as good. */
const signalGroup = (pid: number, signal: NodeJS.Signals): void => {
  try {
    process.kill(-pid, signal)
  } catch (error) {
    if (systemCode(error) !== "ESRCH" && systemCode(error) !== "EPERM") throw error
  }
}

/** Asks the command to end, then ends it and all that it started. */
const stop = async (pid: number, init: number | undefined, ended: Promise<unknown>): Promise<void> => {
  // Bubblewrap makes the init of its process namespace a session of its own; that one lets SIGTERM pass by.
  signalGroup(init ?? pid, "SIGTERM")
  await Promise.race([ended, delay(graceMillis, undefined, { ref: false })])
  signalGroup(pid, "SIGKILL")
}

/** The pid in bubblewrap's status, and whether it has told an exit code. */
const statusOf = (text: string): { readonly init: number | undefined; readonly hasRun: boolean } => {
  const pid = /"child-pid"\s*:\s*(\d+)/.exec(text)?.[1]
  return { init: pid === undefined ? undefined : Number(pid), hasRun: /"exit-code"/.test(text) }
}

/** O_CLOEXEC as /proc tells it, in octal. */
const closeOnExec = 0o2000000

const isInherited = (fd: number): boolean => {
  try {
    const flags = /^flags:\s*([0-7]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, "utf8"))?.[1] ?? "0"
    return (Number.parseInt(flags, 8) & closeOnExec) === 0
  } catch (error) {
    if (systemCode(error) === "ENOENT") return false
    throw error
  }
}

/**
 * Files that the client inherited open, a directory outside of the workspace perhaps: a command would inherit them,
 * sandbox or not. Node closes all that it opened itself, so none is added later.
 */
let inherited: ReadonlyArray<number> | undefined
const findInherited = (): ReadonlyArray<number> =>
  process.platform === "linux"
    ? readdirSync("/proc/self/fd")
        .map(Number)
        .filter((fd) => fd > 3 && isInherited(fd))
    : []

/** The three usual files, bubblewrap's report and filter, and nothing where an inherited file would be. */
const filesFor = (reportsStatus: boolean, nothing: number, filter: number | undefined): StdioOptions => {
  const files: Array<"ignore" | "pipe" | number> = [
    "ignore",
    "pipe",
    "pipe",
    reportsStatus ? "pipe" : nothing,
    ...(filter === undefined ? [] : [filter])
  ]
  const taken = files.length
  for (const fd of (inherited ??= findInherited())) {
    while (files.length < fd) files.push("ignore")
    if (fd >= taken) files[fd] = nothing
  }
  return files
}

const start = ({ file, args, cwd, env, reportsStatus, filter }: Program): ChildProcess => {
  const nothing = openSync("/dev/null", "r")
  let program: number | undefined
  try {
    program = filter === undefined ? undefined : openSocketFilter(filter)
    return spawn(file, args, { cwd, env, detached: true, stdio: filesFor(reportsStatus, nothing, program) })
  } finally {
    closeSync(nothing)
    if (program !== undefined) closeSync(program)
  }
}

const exitOf = (child: ChildProcess): Promise<readonly [number | null, NodeJS.Signals | null]> => {
  const { promise, resolve, reject } =
    Promise.withResolvers<readonly [number | null, NodeJS.Signals | null]>()
  child.once("exit", (code, signal) => resolve([code, signal]))
  child.once("error", (error) =>
    reject(new ToolFailure("exec_failed", `The command could not be started: ${systemCode(error)}`))
  )
  return promise
}

export interface RunOptions {
  readonly timeoutMillis: number
  readonly signal: AbortSignal
  readonly onOutput: (stream: "stdout" | "stderr", data: Buffer) => void
}

/**
 * Runs a program in a process group of its own, without input, until it exits, takes too long or is cancelled. Its
 * leftover processes are ended with it: by bubblewrap's process namespace, else as far as they are found.
 */
export const runCommand = async (program: Program, options: RunOptions): Promise<Ended> => {
  if (program.reportsStatus) return runUntilItEnds(program, options)
  const { descendantsOf } = await import("./Descendants.ts")
  const { end, env, wrapped } = descendantsOf(program.file, program.args)
  try {
    return await runUntilItEnds({ ...program, ...wrapped, env: { ...program.env, ...env } }, options)
  } finally {
    await end()
  }
}

const runUntilItEnds = async (program: Program, options: RunOptions): Promise<Ended> => {
  const { reportsStatus } = program
  const child = start(program)
  let status = ""
  child.stdio[3]?.on("data", (data: Buffer) => (status += data.toString()))
  child.stdout?.on("data", (data: Buffer) => options.onOutput("stdout", data))
  child.stderr?.on("data", (data: Buffer) => options.onOutput("stderr", data))
  const closed = new Promise((resolve) => child.once("close", resolve))
  const exited = exitOf(child)
  let stopped: Ended["stopped"]
  const end = (why: "timeout" | "cancelled"): void => {
    if (child.pid === undefined || stopped !== undefined) return
    stopped = why
    void stop(child.pid, reportsStatus ? statusOf(status).init : undefined, exited)
  }
  const timer = setTimeout(() => end("timeout"), options.timeoutMillis)
  const cancel = (): void => end("cancelled")
  options.signal.addEventListener("abort", cancel, { once: true })
  if (options.signal.aborted) cancel()
  try {
    const [exitCode, signal] = await exited
    if (child.pid !== undefined) signalGroup(child.pid, "SIGKILL")
    await Promise.race([closed, delay(drainMillis)])
    const hasRun = !reportsStatus || signal !== null || statusOf(status).hasRun
    return { exitCode, signal: signal ?? undefined, stopped, hasRun }
  } finally {
    clearTimeout(timer)
    options.signal.removeEventListener("abort", cancel)
    for (const pipe of [child.stdout, child.stderr, child.stdio[3]]) pipe?.destroy()
  }
}
