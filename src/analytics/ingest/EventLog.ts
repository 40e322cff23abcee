import { join } from "node:path"
import { Context, Effect, Layer } from "effect"
import { AppConfig } from "#src/Config.ts"
import type { Limits } from "#src/Limits.ts"
import type { LogOptions } from "#streams/kernel/DurableLog.ts"
import { clickHouseConsumer } from "#src/infra/clickhouse/LostEngine.ts"
import * as DurableLog from "#streams/kernel/DurableLog.ts"

/** The consumers of the log of events: the writer of ClickHouse, and the index of the callers' event ids. */
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
        capBytes: limits.logBytes,
        ...shared(limits)
      })
    })
  )
}

/** The readers of the log of imports: the writer of ClickHouse, and the one that notes in Postgres how far each import has come. */
export const importLogConsumers = { clickHouse: clickHouseConsumer, progress: "progress" } as const

/**
 * The durable log of what imports bring, apart from live events, so that those never wait behind a year of history nor
 * find their log full of it; under `DATA_DIR/analytics/imports`. Records: ImportRecord.ts.
 */
export class ImportLog extends Context.Service<ImportLog, DurableLog.DurableLog>()(
  "signalbox/analytics/ImportLog"
) {
  static readonly layer = Layer.effect(
    ImportLog,
    Effect.gen(function* () {
      const { dataDir, limits } = yield* AppConfig
      return yield* DurableLog.open({
        directory: join(dataDir, "analytics", "imports"),
        consumers: Object.values(importLogConsumers),
        capBytes: limits.importLogBytes,
        ...shared(limits)
      })
    })
  )
}

const shared = (limits: Limits) =>
  ({
    segmentBytes: limits.logSegmentBytes,
    maxBatchBytes: limits.logCommitBytes,
    commitEveryMillis: limits.logCommitEveryMillis,
    fullRetryAfterSeconds: limits.logFullRetryAfterSeconds,
    quarantine: { maxRecords: limits.quarantineRecords, maxBytes: limits.quarantineBytes }
  }) satisfies Partial<LogOptions>
