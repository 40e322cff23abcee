import { join } from "node:path"
import { Context, Effect, Layer } from "effect"
import { AppConfig } from "#src/Config.ts"
import { clickHouseConsumer } from "#src/infra/clickhouse/LostEngine.ts"
import * as DurableLog from "#streams/kernel/DurableLog.ts"

/** Who reads the log of events: the writer of ClickHouse, and the index of the callers' event ids. */
export const eventLogConsumers = { clickHouse: clickHouseConsumer, ids: "ids" } as const

/** The durable log of accepted events, one per process, under `DATA_DIR/analytics/log`. Records: EventRecord.ts. */
export class EventLog extends Context.Service<EventLog, DurableLog.DurableLog>()(
  "signalbox/analytics/EventLog"
) {
  static readonly layer = Layer.effect(
    EventLog,
    Effect.gen(function* () {
      const { dataDir, limits } = yield* AppConfig
      return yield* DurableLog.open({
        directory: join(dataDir, "analytics", "log"),
        consumers: Object.values(eventLogConsumers),
        segmentBytes: limits.logSegmentBytes,
        capBytes: limits.logBytes,
        maxBatchBytes: limits.logCommitBytes,
        commitEveryMillis: limits.logCommitEveryMillis,
        fullRetryAfterSeconds: limits.logFullRetryAfterSeconds,
        quarantine: { maxRecords: limits.quarantineRecords, maxBytes: limits.quarantineBytes }
      })
    })
  )
}
