import { Effect, Schema } from "effect"
import { readFileSync } from "node:fs"
import type { Limits } from "#src/Limits.ts"

/** The most files, sockets included, that this process may have open; undefined if unknown (not Linux). */
export const openFilesMax = (): number | undefined => {
  try {
    const limit = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1]
    return limit === undefined ? undefined : Number(limit)
  } catch {
    return undefined
  }
}

/** The system lets this process have too few files open for any connection. */
export class TooFewFiles extends Schema.TaggedError<TooFewFiles>()("TooFewFiles", {
  allowed: Schema.Int,
  needed: Schema.Int
}) {
  /** EX_CONFIG of sysexits.h */
  readonly exitCode = 78
  override get message(): string {
    return (
      `This process may have ${this.allowed} files open, and ${this.needed} are needed at least: ` +
      `raise the limit (ulimit -Hn; LimitNOFILE of systemd, --ulimit nofile of a container)`
    )
  }
}

type FileLimits = Pick<Limits, "connections" | "connectionsMin" | "filesReserved">

/**
 * The number of connections for which there is room, after the files of logs, stores and uploads. Fewer than the limit
 * is logged, with the numbers; too few to be of use is refused.
 */
export const connectionsFor = (
  { connections, connectionsMin, filesReserved }: FileLimits,
  allowed = openFilesMax()
): Effect.Effect<number, TooFewFiles> => {
  if (allowed === undefined || allowed - filesReserved >= connections) return Effect.succeed(connections)
  const room = allowed - filesReserved
  if (room < connectionsMin) return new TooFewFiles({ allowed, needed: filesReserved + connectionsMin })
  const text =
    `This process may have ${allowed} files open: room for ${room} connections of ${connections}; ` +
    `a limit of ${filesReserved + connections} files (ulimit -Hn) has room for all`
  return Effect.as(room < connectionsWarned ? Effect.logWarning(text) : Effect.logDebug(text), room)
}

/** Fewer connections than a small site's visitors open are worth a warning. */
const connectionsWarned = 10_000
