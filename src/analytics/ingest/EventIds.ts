import { join } from "node:path"
import { Clock, Context, Effect, Layer } from "effect"
import { AppConfig } from "#src/Config.ts"
import * as EventRecord from "#streams/analytics/EventRecord.ts"
import type { DurableLog } from "#streams/kernel/DurableLog.ts"
import { EventLog, eventLogConsumers } from "./EventLog.ts"
import { IdIndex, idMemoryMillis } from "./IdIndex.ts"

/** An event whose id is being written: `settled` is called once it is known whether it was. */
export interface PendingId {
  whenSettled(settled: (isStored: boolean) => void): void
}

/** The result of `look`: a new event, a stored one, or one on its way to the disk. */
type IdSeen = "new" | "stored" | PendingId

/**
 * The ids that callers gave to the events of a site already received. An id counts from the moment its event goes to
 * the log; if the log then fails it is forgotten again, so that the event can be repeated.
 *
 * On disk the index trails the log by `checkpointMillis`: the missing part after a crash is read from the log, which
 * keeps what this consumer has not confirmed. Source: contract/analytics#collect.
 */
export class EventIds extends Context.Service<
  EventIds,
  {
    readonly look: (site: string, hash: bigint, nowMillis: number) => IdSeen
    /** an id that another process took */
    readonly learn: (site: string, hash: bigint, receivedMillis: number, nowMillis: number) => void
    /** forgets the ids of all datasets of a site but the one that is kept */
    readonly forget: (site: string, kept: string | undefined) => void
    /** The ids of one append, from its offset on; call `settle` with its outcome. Offset undefined: not appended */
    readonly begin: (site: string, hashes: ReadonlyArray<bigint>, receivedMillis: number) => IdClaim
  }
>()("signalbox/analytics/EventIds") {
  static readonly layer = Layer.effect(
    EventIds,
    Effect.gen(function* () {
      const { dataDir, limits } = yield* AppConfig
      const log = yield* EventLog
      const directory = join(dataDir, "analytics", "ids")
      return yield* make(log, {
        directory,
        idsMax: limits.eventIdsPerSite,
        openSitesMax: limits.eventIdSitesOpen
      })
    })
  )
}

/** The hold that an append has on its ids. */
interface IdClaim {
  /** the append was taken by the log at this offset: nothing from there on is forgotten before it is settled */
  at(offset: number): void
  settle(isStored: boolean): void
}

interface EventIdOptions {
  readonly directory: string
  readonly idsMax: number
  readonly openSitesMax: number
}

const checkpointMillis = 5_000
const sweepEveryCheckpoints = 720

class Pending implements PendingId {
  readonly #waiting: Array<(isStored: boolean) => void> = []

  whenSettled(settled: (isStored: boolean) => void): void {
    this.#waiting.push(settled)
  }

  settle(isStored: boolean): void {
    for (const settled of this.#waiting) settled(isStored)
  }
}

/** Opens the index and brings it up to the end of the log; the fiber that confirms it lives in the scope. */
export const make = Effect.fnUntraced(function* (log: DurableLog, options: EventIdOptions) {
  const index = yield* Effect.acquireRelease(
    Effect.sync(() => new IdIndex(options.directory, options)),
    (opened) => Effect.sync(() => opened.close())
  )
  const consumer = log.consumer(eventLogConsumers.ids)
  yield* replay(log, index, consumer.committed())
  yield* putAgain(log, index)
  const pending = new Map<string, Pending>()
  const claims = new Map<number, number>()

  /** Everything below it is in the index or has no id. The oldest claim comes first: offsets are given out in order. */
  const settledTo = (): number => Math.min(log.durableOffset(), ...claims.keys())

  const checkpoint = Effect.suspend(() => {
    const to = settledTo()
    if (to <= consumer.committed()) return Effect.void
    return Effect.andThen(
      Effect.promise(() => index.sync()),
      consumer.commit(to)
    )
  }).pipe(Effect.catchCause((cause) => Effect.logWarning("The index of event ids is not on disk", cause)))

  yield* Effect.forkScoped(keepCheckpoints(Effect.andThen(checkpoint, putAgain(log, index)), index))
  yield* Effect.addFinalizer(() => checkpoint)

  return EventIds.of({
    look: (site, hash, nowMillis) =>
      pending.get(`${site} ${hash}`) ?? (index.has(site, hash, nowMillis) ? "stored" : "new"),
    learn: (site, hash, receivedMillis, nowMillis) => {
      if (!index.has(site, hash, nowMillis)) index.put(site, hash, receivedMillis)
    },
    forget: (site, kept) => index.forget(site, kept),
    begin: (site, hashes, receivedMillis) => {
      const own = new Pending()
      for (const hash of hashes) pending.set(`${site} ${hash}`, own)
      let offset: number | undefined
      return {
        at: (taken) => {
          offset = taken
          claims.set(taken, (claims.get(taken) ?? 0) + 1)
        },
        settle: (isStored) => {
          for (const hash of hashes) {
            pending.delete(`${site} ${hash}`)
            if (isStored) index.put(site, hash, receivedMillis)
          }
          if (offset !== undefined) release(claims, offset)
          own.settle(isStored)
        }
      }
    }
  })
})

/** After a failed write the log gives an offset out again: two claims may then hold one. */
const release = (claims: Map<number, number>, offset: number): void => {
  const left = (claims.get(offset) ?? 1) - 1
  if (left === 0) claims.delete(offset)
  else claims.set(offset, left)
}

const keepCheckpoints = (checkpoint: Effect.Effect<void>, index: IdIndex) =>
  Effect.gen(function* () {
    for (let round = 1; ; round++) {
      yield* Effect.sleep(checkpointMillis)
      yield* checkpoint
      if (round % sweepEveryCheckpoints !== 0) continue
      const now = yield* Clock.currentTimeMillis
      yield* Effect.sync(() => index.sweep(now)).pipe(
        Effect.catchCause((cause) => Effect.logWarning("Ids of silent sites could not be removed", cause))
      )
    }
  })

/** Reads what the log holds from an offset on and adds the ids that are not in the index. */
const replay = Effect.fnUntraced(function* (log: DurableLog, index: IdIndex, begin: number) {
  const consumer = log.consumer(eventLogConsumers.ids)
  const now = yield* Clock.currentTimeMillis
  const end = log.durableOffset()
  let from = begin
  while (from < end) {
    const records = yield* consumer.read({ from, maxRecords: 10_000, maxBytes: 4 * 1024 * 1024 })
    if (records.length === 0) break
    for (const { payload } of records) {
      const hash = EventRecord.idHashOf(payload)
      if (hash === 0n) continue
      const { site, received } = EventRecord.decode(payload)
      if (now - received <= idMemoryMillis && !index.has(site, hash, now)) index.put(site, hash, received)
    }
    from += records.length
  }
  yield* Effect.promise(() => index.sync())
  yield* consumer.commit(from)
})

/** Restores damaged files from the log, as far back as it goes; a repetition of older events counts again. */
const putAgain = (log: DurableLog, index: IdIndex) =>
  Effect.suspend(() => {
    const damaged = index.takeDamaged()
    if (damaged.length === 0) return Effect.void
    const text = `Damaged files of event ids are removed and made anew from the log: ${damaged.join(", ")}`
    return Effect.andThen(Effect.logWarning(text), replay(log, index, log.stats().firstOffset))
  }).pipe(
    Effect.catchCause((cause) => Effect.logWarning("Ids of damaged files are not all known again", cause))
  )
