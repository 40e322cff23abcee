import { readdirSync, readFileSync } from "node:fs"

/** Figures of running processes from Linux (proc(5)). Other systems have no such files: then the figures are NaN. */

/** Use of a process under test while something was measured. */
export interface Use {
  /** of all its threads */
  readonly cpuMillis: number
  /** the same by group of threads: main, V8, pool */
  readonly threads: Readonly<Record<string, number>>
  /** resident memory at the end */
  readonly rssMiB: number
  /** of a process that the probe is loaded into */
  readonly heap?: HeapUse
  /** the CPU profile that was asked for */
  readonly profile?: string
}

export interface HeapUse {
  readonly collections: number
  /** time in collections, on any thread */
  readonly gcMillis: number
  readonly allocatedBytes: number
}

const isThere = process.platform === "linux"

/** Reads a file of `/proc`; undefined when its process or thread has ended. */
const procText = (path: string): string | undefined => {
  try {
    return readFileSync(`/proc/${path}`, "latin1")
  } catch (error) {
    if (error instanceof Error && "code" in error) return undefined
    throw error
  }
}

/** The fields after the command's name, which may hold anything: state, parent, … */
const statOf = (path: string): ReadonlyArray<string> => {
  const text = procText(`${path}/stat`) ?? ""
  return text.slice(text.lastIndexOf(")") + 2).split(" ")
}

const threadIds = (pid: number): ReadonlyArray<string> => {
  try {
    return readdirSync(`/proc/${pid}/task`)
  } catch (error) {
    if (error instanceof Error && "code" in error) return []
    throw error
  }
}

/**
 * Node 22 calls most of its threads "node". Those of V8 (four, if its flags say nothing else), of its delayed tasks and of the
 * inspector are made before any code runs; libuv's pool and workers come later.
 */
const threadsOfV8 = (pid: number): number =>
  2 + Number(/--v8-pool-size=(\d+)/.exec(procText(`${pid}/cmdline`) ?? "")?.[1] ?? 4)

/** CPU time of each thread since its start, in milliseconds, exact to the nanosecond (schedstat). */
const runtimeOf = (pid: number, thread: string): number =>
  Number((procText(`${pid}/task/${thread}/schedstat`) ?? "0").split(" ")[0]) / 1e6

/**
 * CPU time of a Node process by group of threads, in milliseconds: `main` runs JavaScript, `V8` collects garbage and
 * compiles, `pool` has file operations and workers. Time of threads that have ended is missing.
 */
export const threadMillis = (pid: number): Readonly<Record<string, number>> => {
  const groups: Record<string, number> = {}
  const ofV8 = threadsOfV8(pid)
  const oldestFirst = threadIds(pid).toSorted((a, b) => Number(a) - Number(b))
  for (const [place, thread] of oldestFirst.entries()) {
    const group = place === 0 ? "main" : place <= ofV8 ? "V8" : "pool"
    groups[group] = (groups[group] ?? 0) + runtimeOf(pid, thread)
  }
  return groups
}

/** USER_HZ, 100 on every Linux platform that Node runs on. */
const tickMillis = 10

/** CPU time of a process since its start, threads that have ended included, in steps of 10 ms. */
export const cpuMillis = (pid: number): number => {
  if (!isThere) return Number.NaN
  const stat = statOf(String(pid))
  return (Number(stat[11]) + Number(stat[12])) * tickMillis
}

export const residentMiB = (pid: number): number => {
  if (!isThere) return Number.NaN
  return Number(/VmRSS:\s+(\d+) kB/.exec(procText(`${pid}/status`) ?? "")?.[1]) / 1024
}

/** Every process that it started, and those that they started in turn. */
export const descendants = (pid: number): ReadonlyArray<number> => {
  if (!isThere) return []
  const parents = readdirSync("/proc").flatMap((name) => {
    if (!/^\d+$/.test(name)) return []
    return [[Number(name), Number(statOf(name)[1])] as const]
  })
  const below = (parent: number): ReadonlyArray<number> =>
    parents.flatMap(([child, of]) => (of === parent ? [child, ...below(child)] : []))
  return below(pid)
}
