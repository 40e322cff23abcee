import { Effect, type Scope } from "effect"
import * as Batcher from "#streams/kernel/Batcher.ts"
import type { DurableLog, LogConsumer, LogUnavailable } from "#streams/kernel/DurableLog.ts"
import * as CoalescedFlush from "#streams/kernel/CoalescedFlush.ts"
import { type Sink, SinkUnavailable } from "#streams/kernel/Sink.ts"
import { AppConfig } from "#src/Config.ts"
import { SiteOffsets } from "./SiteOffsets.ts"

export interface EventLaneOptions {
  /** the beginning of its log lines */
  readonly name: string
  readonly log: DurableLog
  readonly consumer: LogConsumer
  readonly sink: Sink
  readonly siteOf: (record: Uint8Array) => string
  readonly batchRows: number
}

/** One log of events on its way into ClickHouse. */
export interface EventLane extends Pick<Batcher.Batcher, "stats" | "quarantine"> {
  /**
   * Afterwards ClickHouse has every event of the site that was durable before. It waits for no other site's, but for
   * those of the batch that its own are in; `behind` where that takes longer than `readWaitMillis`.
   */
  readonly flush: (site: string) => Effect.Effect<void, SinkUnavailable>
}

export const make = Effect.fnUntraced(function* ({
  batchRows,
  ...lane
}: EventLaneOptions): Effect.fn.Return<EventLane, never, AppConfig | Scope.Scope> {
  const { limits } = yield* AppConfig
  const { consumer, log, siteOf } = lane
  const batcher = yield* Batcher.run({
    ...lane,
    policy: { maxRecords: batchRows, maxBytes: limits.batchBytes, maxAgeMillis: limits.batchAgeMillis },
    backoff: { baseMillis: limits.retryMinMillis, maxMillis: limits.retryMaxMillis },
    writeTimeoutMillis: limits.batchWriteMillis,
    flushTimeoutMillis: limits.readWaitMillis
  })
  const offsets = new SiteOffsets({ log, consumer, siteOf, sitesMax: limits.pendingSites })
  // However many read, a batch is hurried for them only so often.
  const turn = yield* CoalescedFlush.make<never>({
    flush: Effect.void,
    isPending: () => true,
    everyMillis: limits.readFlushMillis
  })
  const flushTo = (end: number): Effect.Effect<void, SinkUnavailable> =>
    end <= consumer.committed() ? Effect.void : Effect.andThen(turn, batcher.flushTo(end))

  return {
    stats: batcher.stats,
    quarantine: batcher.quarantine,
    flush: (site) =>
      offsets
        .endOf(site)
        .pipe(
          Effect.mapError(unreadable),
          Effect.flatMap(flushTo),
          Effect.timeoutOrElse({ duration: limits.readWaitMillis, orElse: () => Effect.fail(behind) })
        )
  }
})

const unreadable = (cause: LogUnavailable) =>
  new SinkUnavailable({ problem: `its log cannot be read: ${cause.message}`, cause })

const behind = new SinkUnavailable({
  problem: "more lies before than it takes in the time of a reader",
  cause: undefined,
  reason: "behind"
})
