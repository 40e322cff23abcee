import { Clock, Context, Effect, Layer, Schedule } from "effect"
import { RealtimeRing } from "#actors/analytics/RealtimeRing.ts"
import type { RealtimeEvent } from "#actors/analytics/RealtimeRing.ts"
import { AppConfig } from "#src/Config.ts"
import { ClickHouse } from "#src/infra/clickhouse/ClickHouse.ts"
import { EventLog, eventLogConsumers } from "../ingest/EventLog.ts"

/**
 * The realtime figures of this process's sites. After a start they are read from ClickHouse, as soon as it has what the
 * last run accepted; until then they show what came since.
 */
export class Realtime extends Context.Service<Realtime, RealtimeRing>()("signalbox/analytics/Realtime") {
  static readonly layer = Layer.effect(
    Realtime,
    Effect.gen(function* () {
      const { limits } = yield* AppConfig
      const ring = new RealtimeRing({
        sitesMax: limits.realtimeSites,
        presencesMax: limits.realtimePresences
      })
      yield* Effect.forkScoped(restore(ring, ring.clear()))
      return ring
    })
  )
}

const historyMillis = 30 * 60 * 1000

/** More than this many of the newest are not read: they would fill the ring and a good part of memory. */
const restoredMax = 500_000

const pollMillis = 200

/**
 * Puts what the store has of the last half hour in the place of what the ring has, when another process counted. Of two that
 * are under way the later one does.
 */
export const refill = (ring: RealtimeRing) => Effect.suspend(() => restore(ring, ring.clear()))

const restore = Effect.fnUntraced(function* (ring: RealtimeRing, isWanted: () => boolean) {
  const log = yield* EventLog
  const clickhouse = yield* ClickHouse
  const startedMillis = yield* Clock.currentTimeMillis
  const end = log.nextOffset()
  const consumer = log.consumer(eventLogConsumers.clickHouse)
  // Events accepted by this run are not read: they were `received` at or after the start, and are in the ring.
  while (consumer.committed() < end) yield* Effect.sleep(pollMillis)
  const rows = yield* clickhouse
    .query<Row>(
      `SELECT site, kind, toUnixTimestamp64Milli(ts) AS ts, toString(visitor) AS visitor, path FROM events
       WHERE day >= toDate({from:DateTime64(3)}, 'UTC') AND ts > {from:DateTime64(3)} AND kind != 'engage'
         AND received < {to:DateTime64(3)}
       ORDER BY ts DESC LIMIT {max:UInt32}`,
      { from: (startedMillis - historyMillis) / 1000, to: startedMillis / 1000, max: restoredMax }
    )
    .pipe(Effect.retry(Schedule.spaced(1_000)))
  if (!isWanted()) return
  const now = yield* Clock.currentTimeMillis
  for (const row of rows.toReversed())
    ring.add({ ...row, ts: Number(row.ts), visitor: BigInt(row.visitor) }, now)
})

type Row = Omit<RealtimeEvent, "ts" | "visitor"> & { readonly ts: number | string; readonly visitor: string }
