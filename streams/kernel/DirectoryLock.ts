import * as fs from "node:fs"
import { join } from "node:path"
import { randomBytes } from "node:crypto"
import { Effect, type Scope } from "effect"
import { FileFailed, LogLocked } from "./LogFailure.ts"

/**
 * One process per directory, by a file `lock` that names its holder: `<pid> <start time> <nonce>`. A holder that was
 * killed is told from a live one by its pid and, because pids are used again, by the start time that /proc gives.
 * Processes that cannot see each other's pids (two containers on one volume) are not kept apart.
 *
 * Node has no flock. Every step is one atomic call (link, rename); only the holder of `lock.<nonce of the dead>` may
 * replace a dead holder's lock, so two processes that find the same dead lock cannot both take it.
 */
export const lockDirectory = (directory: string): Effect.Effect<void, FileFailed | LogLocked, Scope.Scope> =>
  Effect.asVoid(
    Effect.acquireRelease(
      Effect.suspend(() => {
        const nonce = randomBytes(8).toString("hex")
        return Effect.try({
          try: () => acquire(directory, `${process.pid} ${startTimeOf(process.pid)} ${nonce}`),
          catch: (error) => failed(directory, error)
        })
      }).pipe(
        Effect.flatMap((outcome) =>
          typeof outcome === "string" ? Effect.succeed(outcome) : Effect.fail(outcome)
        )
      ),
      (mine) => Effect.sync(() => release(directory, mine))
    )
  )

const failed = (directory: string, error: unknown): FileFailed =>
  new FileFailed({ operation: "lock", path: directory, code: codeOf(error), cause: error })

const codeOf = (error: unknown): string =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "UNKNOWN"

/** Answers what was written into the lock. */
const acquire = (directory: string, mine: string): string | LogLocked => {
  const lock = join(directory, "lock")
  const draft = join(directory, `lock.${nonceOf(mine)}`)
  fs.writeFileSync(draft, mine, { flag: "wx", mode: 0o600 })
  try {
    for (;;) {
      if (linked(draft, lock)) return mine
      const holder = contentOf(lock)
      if (holder === undefined) continue
      if (isAlive(holder)) return new LogLocked({ directory, holder: pidOf(holder) })
      if (tookOver(directory, draft, holder)) return mine
    }
  } finally {
    // Gone already when it was renamed into place.
    fs.rmSync(draft, { force: true })
  }
}

/** True when the dead holder's lock is now ours; false when another process was quicker, to be looked at again. */
const tookOver = (directory: string, draft: string, dead: string): boolean => {
  const lock = join(directory, "lock")
  const claim = join(directory, `lock.${nonceOf(dead)}`)
  if (!linked(draft, claim)) {
    const claimant = contentOf(claim)
    // A claim whose claimant died too is void; the next round claims anew.
    if (claimant !== undefined && !isAlive(claimant)) fs.rmSync(claim, { force: true })
    return false
  }
  const unchanged = contentOf(lock) === dead
  if (unchanged) fs.renameSync(draft, lock)
  fs.rmSync(claim, { force: true })
  return unchanged
}

const release = (directory: string, mine: string): void => {
  const lock = join(directory, "lock")
  if (contentOf(lock) === mine) fs.rmSync(lock, { force: true })
}

const linked = (from: string, to: string): boolean => {
  try {
    fs.linkSync(from, to)
    return true
  } catch (error) {
    if (codeOf(error) === "EEXIST") return false
    throw error
  }
}

const contentOf = (path: string): string | undefined => {
  try {
    return fs.readFileSync(path, "utf8")
  } catch (error) {
    // ESRCH: a file of /proc whose process ended meanwhile.
    if (codeOf(error) === "ENOENT" || codeOf(error) === "ESRCH") return undefined
    throw error
  }
}

const pidOf = (content: string): string => content.split(" ")[0] ?? ""
const nonceOf = (content: string): string => content.split(" ")[2] ?? "torn"

const isAlive = (content: string): boolean => {
  const [pid = "", startTime = ""] = content.split(" ")
  if (!/^[1-9]\d*$/.test(pid)) return false
  try {
    process.kill(Number(pid), 0)
  } catch (error) {
    // EPERM: it lives, under another user.
    if (codeOf(error) === "ESRCH") return false
  }
  const [state] = statOf(pid)
  // Killed, and not reaped yet: under some PID 1 for ever.
  return state !== "Z" && state !== "X" && startTimeOf(Number(pid)) === startTime
}

/** Of /proc/PID/stat, from its third field on: the second, the name in parentheses, may hold spaces. */
const statOf = (pid: number | string): ReadonlyArray<string> => {
  const stat = contentOf(`/proc/${pid}/stat`)
  return stat === undefined ? [] : stat.slice(stat.lastIndexOf(")") + 2).split(" ")
}

/** Clock ticks since boot at which the process began; "-" where there is no /proc, and the pid alone decides. */
const startTimeOf = (pid: number): string => statOf(pid)[19] ?? "-"
