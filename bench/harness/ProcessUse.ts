import { readdirSync, readFileSync } from "node:fs"

/** What Linux says about running processes (proc(5)). Other systems have no such files: then the figures are NaN. */

/** USER_HZ, 100 on every Linux platform that Node runs on. */
const tickMillis = 10

/** The fields after the command's name, which may hold anything: state, parent, … */
const statOf = (pid: number): ReadonlyArray<string> => {
  const text = readFileSync(`/proc/${pid}/stat`, "latin1")
  return text.slice(text.lastIndexOf(")") + 2).split(" ")
}

const isThere = process.platform === "linux"

/** User and system time of all its threads since its start. */
export const cpuMillis = (pid: number): number => {
  if (!isThere) return Number.NaN
  const stat = statOf(pid)
  return (Number(stat[11]) + Number(stat[12])) * tickMillis
}

export const residentMiB = (pid: number): number => {
  if (!isThere) return Number.NaN
  const kibibytes = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "latin1"))?.[1]
  return Number(kibibytes) / 1024
}

/** Every process that it started, and what those started. */
export const descendants = (pid: number): ReadonlyArray<number> => {
  if (!isThere) return []
  const parents = readdirSync("/proc").flatMap((name) => {
    if (!/^\d+$/.test(name)) return []
    try {
      return [[Number(name), Number(statOf(Number(name))[1])] as const]
    } catch (error) {
      // It has ended in between.
      if (error instanceof Error && "code" in error) return []
      throw error
    }
  })
  const below = (parent: number): ReadonlyArray<number> =>
    parents.flatMap(([child, of]) => (of === parent ? [child, ...below(child)] : []))
  return below(pid)
}
