import { join } from "node:path"
import { Effect } from "effect"
import * as Checkpoint from "./Checkpoint.ts"
import { LogCorrupt, LogUnavailable, unavailable } from "./LogFailure.ts"
import type { LogFileSystem } from "./LogFiles.ts"
import { emptyBatch, type LogRecord } from "./LogRecord.ts"
import * as Quarantine from "./Quarantine.ts"
import type { Segments } from "./Segments.ts"
import type { Tail } from "./Tail.ts"
import type { Waiters } from "./Waiters.ts"
import { overwrite, readWhole, replaceWhole } from "./WholeFile.ts"

/** One reader of the log, with a place that survives. Driven by one fiber: calls do not overlap. */
export interface LogConsumer {
  readonly name: string
  /** the records that its sink takes in no company, kept beside the log */
  readonly quarantine: Quarantine.Quarantine
  /** everything below is in the sink */
  readonly committed: () => number
  /** above `committed` at open: a crash left [committed, inFlightTo) uncertain */
  readonly inFlightTo: () => number
  /** durable records from `from` on, up to the limits (one record always comes, however large); [] when none */
  readonly read: (options: {
    readonly from: number
    readonly maxRecords: number
    readonly maxBytes: number
  }) => Effect.Effect<ReadonlyArray<LogRecord>, LogUnavailable>
  /** remembers durably that the sink may hold what is below `to`; before the sink is called */
  readonly begin: (to: number) => Effect.Effect<void, LogUnavailable>
  /** remembers durably that the sink holds everything below `to`, and lets the log forget it */
  readonly commit: (to: number) => Effect.Effect<void, LogUnavailable>
  /** returns when a durable record at or above `from` exists, or the log is closed */
  readonly await: (from: number) => Effect.Effect<void>
  /** as `await`, for at least so many records or payload bytes at or above `from` */
  readonly awaitMore: (options: {
    readonly from: number
    readonly records: number
    readonly bytes: number
  }) => Effect.Effect<void>
}

interface ConsumerOptions {
  readonly files: LogFileSystem
  readonly directory: string
  readonly logId: bigint
  readonly segments: Segments
  readonly tail: Tail
  readonly waiters: Waiters
  readonly durableOffset: () => number
  readonly isClosed: () => boolean
  readonly quarantine: Quarantine.QuarantineLimits
  /** after a commit: the log removes what no consumer needs */
  readonly onCommit: Effect.Effect<void>
}

/** Reads the checkpoint; one that does not fit the log's ends means that records or checkpoint were lost. */
const restore = Effect.fnUntraced(function* (name: string, options: ConsumerOptions) {
  const path = join(options.directory, `${name}.checkpoint`)
  const first = options.segments.firstOffset()
  const end = options.durableOffset()
  const stored = Checkpoint.decodeFile(yield* readWhole(options.files, path), options.logId)
  const found = stored ?? Checkpoint.uncertain(first, end)
  if (found.committed > end || found.inFlightTo > end) {
    const problem = `consumer "${name}" has been given offsets up to ${found.inFlightTo}, and the log ends at ${end}`
    return yield* new LogCorrupt({ file: path, position: 0, problem })
  }
  if (found.committed < first) {
    const problem = `consumer "${name}" is at offset ${found.committed}, and the log begins at ${first}`
    return yield* new LogCorrupt({ file: path, position: 0, problem })
  }
  // A killed process's write may be in the page cache only. Written again it is made durable, also where an fdatasync
  // failed before, and if that is torn the other slot holds the last confirmed one.
  yield* stored === undefined
    ? replaceWhole(options.files, path, Checkpoint.encodeFile(found, options.logId))
    : overwrite(
        options.files,
        path,
        Checkpoint.encode(stored, options.logId),
        Checkpoint.positionOf(stored.slot)
      )
  return { place: found, slot: stored?.slot ?? 0 }
})

export const make = Effect.fnUntraced(function* (name: string, options: ConsumerOptions) {
  const path = join(options.directory, `${name}.checkpoint`)
  const restored = yield* restore(name, options)
  const quarantine = yield* Quarantine.open(options.files, options.directory, name, options.quarantine)
  let place: Checkpoint.Checkpoint = restored.place
  let slot: 0 | 1 = restored.slot

  /** Into the slot that does not hold the last one that was confirmed. */
  const persist = (next: Checkpoint.Checkpoint): Effect.Effect<void, LogUnavailable> =>
    Effect.suspend(() => {
      const other = slot === 0 ? 1 : 0
      const bytes = Checkpoint.encode(next, options.logId)
      return overwrite(options.files, path, bytes, Checkpoint.positionOf(other)).pipe(
        Effect.andThen(
          Effect.sync(() => {
            place = next
            slot = other
          })
        )
      )
    }).pipe(
      Effect.mapError(unavailable),
      // Interrupted between write and return, memory and disk would disagree.
      Effect.uninterruptible
    )

  const failIfClosed = Effect.suspend(() =>
    options.isClosed()
      ? Effect.fail(new LogUnavailable({ reason: "closed", cause: new Error("the log has been closed") }))
      : Effect.void
  )

  const consumer: LogConsumer = {
    name,
    quarantine,
    committed: () => place.committed,
    inFlightTo: () => place.inFlightTo,
    read: Effect.fnUntraced(function* ({ from, maxRecords, maxBytes }) {
      yield* failIfClosed
      const batch = emptyBatch(maxRecords, maxBytes)
      const found = options.tail.read(from, batch)
      if (found !== undefined) return found.records
      return (yield* options.segments.read(from, batch).pipe(Effect.mapError(unavailable))).records
    }),
    begin: (to) =>
      Effect.andThen(
        failIfClosed,
        Effect.suspend(() => (to <= place.inFlightTo ? Effect.void : persist({ ...place, inFlightTo: to })))
      ),
    commit: (to) =>
      Effect.andThen(
        failIfClosed,
        Effect.suspend(() => {
          if (to <= place.committed) return Effect.void
          const next = { committed: to, inFlightTo: Math.max(to, place.inFlightTo) }
          return Effect.andThen(persist(next), options.onCommit)
        })
      ),
    await: (from) => options.waiters.await({ from, records: 1, bytes: Infinity }),
    awaitMore: options.waiters.await
  }
  return consumer
})
