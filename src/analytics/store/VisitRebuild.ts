import { Effect } from "effect"
import type { RebuiltVisits } from "#schemas/analytics/RebuildApi.ts"
import { dayMillis } from "#streams/analytics/EventTime.ts"
import type { SinkUnavailable } from "#streams/kernel/Sink.ts"
import { ClickHouse } from "#src/infra/clickhouse/ClickHouse.ts"
import { EventDrain } from "./EventDrain.ts"
import { EventSink } from "./EventSink.ts"
import type { StoreError } from "./EventStore.ts"
import { daysOf, endOfRange, type SiteDay } from "./RebuildRanges.ts"
import { visitorRange } from "./VisitorDays.ts"
import type { Reconciled } from "./VisitReconcile.ts"

/** The days to rebuild: UTC days, in days since 1970-01-01, both included. */
interface RebuildRequest {
  readonly site: string
  readonly from: number
  readonly to: number
  /** only compare */
  readonly isCheck: boolean
}

/** One call does a day, and goes on with further ones until it has read so many events or done so many days. */
const callLimits = { events: 200_000, days: 100 }

/**
 * Compares stored visits with what the stored events make, and puts right what differs: a few thousand visitors at a
 * time, in turns with the batches that the drain writes.
 */
export const makeVisitRebuild = Effect.gen(function* () {
  const clickhouse = yield* ClickHouse
  const drain = yield* EventDrain
  const sink = yield* EventSink

  const rebuildDay = Effect.fnUntraced(function* (site: string, { day, isShort }: SiteDay, isCheck: boolean) {
    let found = nothing
    let above: bigint | undefined
    for (;;) {
      const rest = visitorRange({ site, day }, { above })
      const upTo: bigint | undefined = isShort ? undefined : yield* endOfRange(clickhouse, rest)
      const range = visitorRange({ site, day }, { above, upTo })
      found = sum(found, yield* sink.rebuild(range, isCheck))
      if (upTo === undefined) return found
      above = upTo
    }
  })

  return Effect.fn("VisitRebuild.run")(function* ({
    from,
    isCheck,
    site,
    to
  }: RebuildRequest): Effect.fn.Return<RebuiltVisits, SinkUnavailable | StoreError> {
    yield* drain.flush(site)
    const days = yield* daysOf(clickhouse, site, from, to)
    let found = nothing
    let done = 0
    for (const day of days) {
      if (done >= callLimits.days || found.events >= callLimits.events) break
      found = sum(found, yield* rebuildDay(site, day, isCheck))
      done++
    }
    const next = days[done]
    return {
      ...found,
      days: done,
      next: next === undefined ? null : new Date(next.day * dayMillis).toISOString().slice(0, 10),
      daysLeft: days.length - done
    }
  })
})

const nothing: Reconciled = { events: 0, visits: 0, missing: 0, wrong: 0, surplus: 0 }

const sum = (left: Reconciled, right: Reconciled): Reconciled => ({
  events: left.events + right.events,
  visits: left.visits + right.visits,
  missing: left.missing + right.missing,
  wrong: left.wrong + right.wrong,
  surplus: left.surplus + right.surplus
})
