import { Context, Effect, Layer } from "effect"
import * as SampledMetrics from "#actors/kernel/SampledMetrics.ts"
import type { BatcherStats } from "#streams/kernel/Batcher.ts"
import { flushCauses } from "#streams/kernel/BatchPolicy.ts"
import * as CoalescedFlush from "#streams/kernel/CoalescedFlush.ts"
import type { LogUnavailable } from "#streams/kernel/DurableLog.ts"
import { SinkUnavailable } from "#streams/kernel/Sink.ts"
import * as EventRecord from "#streams/analytics/EventRecord.ts"
import * as ImportRecord from "#streams/analytics/ImportRecord.ts"
import { AppConfig } from "#src/Config.ts"
import * as Drain from "#src/infra/drains/Drain.ts"
import { CountingLease } from "../counting/CountingLease.ts"
import { EventLog, eventLogConsumers, ImportLog, importLogConsumers } from "../ingest/EventLog.ts"
import { EventSink, type EventSinkStats } from "./EventSink.ts"
import { SiteOffsets } from "./SiteOffsets.ts"

interface EventDrainStats {
  /** of live events */
  readonly batcher: BatcherStats
  /** of imported ones */
  readonly imports: BatcherStats
  readonly sink: EventSinkStats
}

/**
 * Carries the logs of events into ClickHouse for as long as the layer lives: live ones and imported ones in lanes of their
 * own, of which the second gives way to the first.
 */
export class EventDrain extends Context.Service<
  EventDrain,
  {
    /**
     * Afterwards ClickHouse has every event of the site that this process had answered 202 before. It waits for no other
     * site's, but for those of the batch that its own are in; `behind` where that takes longer than `readWaitMillis`.
     */
    readonly flush: (site: string) => Effect.Effect<void, SinkUnavailable>
    /** As `flush`, for readers: a store that is behind by more than a few seconds is read as it is. */
    readonly freshen: (site: string) => Effect.Effect<void, SinkUnavailable>
    readonly stats: () => EventDrainStats
  }
>()("signalbox/analytics/EventDrain") {
  static readonly layer = Layer.effect(
    EventDrain,
    Effect.gen(function* () {
      const { limits } = yield* AppConfig
      const sink = yield* EventSink
      const live = yield* makeLane(EventRecord.siteOf, {
        name: "events",
        title: "events into ClickHouse",
        log: yield* EventLog,
        consumer: eventLogConsumers.clickHouse,
        sink,
        policy: { early: { ageMillis: limits.eventsEarlyMillis, recordsMax: limits.eventsEarlyRows } },
        metrics: {
          behind: ["signalbox_events_behind", "Events in the log that ClickHouse does not have yet"],
          records: ["signalbox_events_drained_total", "Events written into ClickHouse"]
        }
      })
      const imports = yield* makeLane((record) => EventRecord.siteOf(ImportRecord.eventOf(record)), {
        name: "imports",
        title: "imported events into ClickHouse",
        log: yield* ImportLog,
        consumer: importLogConsumers.clickHouse,
        sink: sink.imports,
        policy: { maxRecords: limits.importBatchRows },
        metrics: {
          behind: [
            "signalbox_events_imports_behind",
            "Imported events in their log that ClickHouse does not have yet"
          ],
          records: ["signalbox_events_imports_drained_total", "Imported events written into ClickHouse"]
        }
      })
      const stats = () => ({ batcher: live.stats(), imports: imports.stats(), sink: sink.stats() })
      yield* showMetrics(stats)
      const both = (flush: (lane: EventLane) => Effect.Effect<void, SinkUnavailable>) =>
        Effect.forEach([live, imports], flush, { concurrency: 2, discard: true })
      return EventDrain.of({
        flush: (site) => both((lane) => lane.flushSite(site)),
        freshen: (site) =>
          both((lane) =>
            Effect.catchIf(
              lane.flushSite(site),
              ({ reason }) => reason === "behind",
              () => Effect.void
            )
          ),
        stats
      })
    })
  )
}

/** One log of events on its way into ClickHouse. */
interface EventLane extends Drain.Drain {
  readonly flushSite: (site: string) => Effect.Effect<void, SinkUnavailable>
}

const makeLane = Effect.fnUntraced(function* (
  siteOf: (record: Uint8Array) => string,
  options: Drain.DrainOptions
) {
  const { limits } = yield* AppConfig
  const lease = yield* CountingLease
  const drain = yield* Drain.make({
    ...options,
    // A record that was set aside changes visits as others do.
    mayRetry: Effect.suspend(() =>
      lease.isCounting()
        ? Effect.void
        : Effect.fail(new SinkUnavailable({ problem: lease.refusal(), cause: undefined }))
    )
  })
  const { log } = options
  const consumer = log.consumer(options.consumer)
  const offsets = new SiteOffsets({ log, consumer, siteOf, sitesMax: limits.pendingSites })
  // However many read, a batch is hurried for them only so often.
  const turn = yield* CoalescedFlush.make<never>({
    flush: Effect.void,
    isPending: () => true,
    everyMillis: limits.readFlushMillis
  })
  const flushTo = (end: number): Effect.Effect<void, SinkUnavailable> =>
    end <= consumer.committed() ? Effect.void : Effect.andThen(turn, drain.flushTo(end))
  const lane: EventLane = {
    ...drain,
    flushSite: (site) =>
      offsets
        .endOf(site)
        .pipe(
          Effect.mapError(unreadable),
          Effect.flatMap(flushTo),
          Effect.timeoutOrElse({ duration: limits.readWaitMillis, orElse: () => Effect.fail(behind) })
        )
  }
  return lane
})

/** Of both lanes together, of the sink, and why live batches went out. */
const showMetrics = Effect.fnUntraced(function* (stats: () => EventDrainStats) {
  yield* SampledMetrics.register([
    [
      "signalbox_events_drain_failures_total",
      "Attempts to write a batch that failed",
      () => stats().batcher.failures + stats().imports.failures
    ],
    [
      "signalbox_events_resident_visitor_days",
      "Visitors of a day whose visits are kept in memory, some 1.5 KB each",
      () => stats().sink.resident
    ],
    ["signalbox_events_visit_rows_total", "Rows of visits written", () => stats().sink.visitRows]
  ])
  const description = "Batches written, by why they went out"
  for (const cause of flushCauses)
    yield* SampledMetrics.register(
      [["signalbox_events_batches_total", description, () => stats().batcher.causes[cause]]],
      { cause }
    )
})

const unreadable = (cause: LogUnavailable) =>
  new SinkUnavailable({ problem: `its log cannot be read: ${cause.message}`, cause })

const behind = new SinkUnavailable({
  problem: "more lies before than it takes in the time of a reader",
  cause: undefined,
  reason: "behind"
})
