import { Effect } from "effect"
import { rmSync } from "node:fs"
import { join } from "node:path"
import type { Limits } from "#src/Limits.ts"
import { readIfThere } from "../process/PrivateFile.ts"
import {
  isAlive,
  isSame,
  type ProcessIdentity,
  processesIn,
  workingDirectoryOf
} from "../process/ProcessIdentity.ts"
import { DataDirectoryInUse, PostgresFailed } from "./PostgresFailed.ts"

/** The process that has a data directory, as far as it is known. */
export interface Holder {
  /** PostgreSQL's data directory */
  readonly directory: string
  /** the server process that started the PostgreSQL on it; undefined where there is none */
  readonly owner: ProcessIdentity | undefined
  /** the file that would say it, where it is damaged */
  readonly damagedFile: string | undefined
}

const lockFile = (directory: string): string => join(directory, "postmaster.pid")

/** The system's name of a process; undefined if it is unknown. */
const nameOf = (pid: number): string | undefined => readIfThere(`/proc/${pid}/comm`)?.trim()

/** Processes of PostgreSQL on the directory, the postmaster among them: it and its children work in it. */
const postgresIn = (directory: string): ReadonlyArray<number> =>
  processesIn(directory).filter((pid) => nameOf(pid) === "postgres")

/** The process id in the directory's lock file; undefined where there is none, or nothing like one. */
const lockedBy = (directory: string): number | undefined => {
  const pid = Number(readIfThere(lockFile(directory))?.split("\n")[0])
  return Number.isInteger(pid) && pid > 1 ? pid : undefined
}

/** Whether the system tells where processes work; elsewhere a process id is all there is, and that is reused. */
const tellsDirectories = (): boolean => workingDirectoryOf(process.pid) !== undefined

/**
 * The postmaster that lives on this data directory: a process of PostgreSQL that works in it. A copy of the directory, or
 * a lock file that outlived its process, names the process of another. Undefined also where the system does not tell.
 */
export const livingPostmaster = (directory: string): number | undefined => {
  const pid = lockedBy(directory)
  return pid !== undefined && postgresIn(directory).includes(pid) ? pid : undefined
}

const isLockedByLiving = (directory: string): boolean => {
  const pid = lockedBy(directory)
  return pid !== undefined && isAlive(pid)
}

const untilGone = (isThere: () => boolean, limits: Limits) =>
  Effect.gen(function* () {
    const deadline = performance.now() + limits.storeStopMillis / 2
    while (isThere() && performance.now() < deadline) yield* Effect.sleep(10)
  })

/**
 * A server process that was killed leaves a PostgreSQL that is on its way out (see PostgresProcess.ts). Waits for it,
 * then ends it; a PostgreSQL whose server process lives is not ours to end. Afterwards nothing of an earlier PostgreSQL is
 * in the way of the next.
 */
export const endOrphan = Effect.fnUntraced(function* (
  holder: Holder,
  limits: Limits
): Effect.fn.Return<void, PostgresFailed | DataDirectoryInUse> {
  const { damagedFile, directory, owner } = holder
  const isThere = () => livingPostmaster(directory) !== undefined
  // No process is signalled for its number: one that goes by itself is waited for, else PostgreSQL refuses to start.
  if (!tellsDirectories()) return yield* untilGone(() => isLockedByLiving(directory), limits)
  if (damagedFile !== undefined) yield* untilGone(isThere, limits)
  for (const signal of ["SIGINT", "SIGQUIT"] as const) {
    const pid = livingPostmaster(directory)
    if (pid === undefined) break
    if (owner !== undefined && owner.pid !== process.pid && isSame(owner)) {
      return yield* new DataDirectoryInUse({ directory, pid: owner.pid })
    }
    if (damagedFile !== undefined) {
      const problem = `${damagedFile} is damaged, and PostgreSQL (process ${pid}) runs on ${directory}: stop what started it`
      return yield* new PostgresFailed({ problem, output: "" })
    }
    yield* Effect.logInfo("Stopping the PostgreSQL that an earlier process left behind")
    yield* Effect.sync(() => process.kill(pid, signal))
    yield* untilGone(isThere, limits)
  }
  if (isThere()) {
    return yield* new PostgresFailed({ problem: `a PostgreSQL on ${directory} does not stop`, output: "" })
  }
  yield* removeStaleLock(directory, limits)
})

/**
 * PostgreSQL refuses to start on a `postmaster.pid` that names a process which exists, were it one that ended and is not
 * reaped, or another with its number, and on one that it cannot read. It goes once nothing of PostgreSQL works in the directory,
 * where the system tells; elsewhere PostgreSQL itself decides.
 */
const removeStaleLock = Effect.fnUntraced(function* (
  directory: string,
  limits: Limits
): Effect.fn.Return<void, PostgresFailed> {
  const file = lockFile(directory)
  const text = readIfThere(file)
  if (text === undefined) return
  yield* untilGone(() => postgresIn(directory).length > 0, limits)
  const [pid] = postgresIn(directory)
  if (pid !== undefined) {
    const problem = `${file} does not name the PostgreSQL that runs there (process ${pid}): stop it`
    return yield* new PostgresFailed({ problem, output: "" })
  }
  if (!/^\d+\n/.test(text)) {
    yield* Effect.logWarning(`${file} makes no sense; no PostgreSQL runs there, and it is removed`)
  }
  yield* Effect.sync(() => rmSync(file, { force: true }))
})
