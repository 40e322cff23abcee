import { join } from "node:path"
import { Context, Effect, Layer } from "effect"
import { AppConfig } from "#src/Config.ts"
import { clickHouseConsumer } from "#src/infra/clickhouse/LostEngine.ts"
import * as DurableLog from "#streams/kernel/DurableLog.ts"

/** The consumers of the log of events: the writer of ClickHouse, and the index of the callers' event ids. */
export const eventLogConsumers = { clickHouse: clickHouseConsumer, ids: "ids" } as const

/** Readers of the log of imports: the writer of ClickHouse, and the one that notes in Postgres how far each import has come. */
export const importLogConsumers = { clickHouse: clickHouseConsumer, progress: "progress" } as const

/** A log under `DATA_DIR/analytics`. */
const open = (
  folder: "log" | "imports",
  consumers: Readonly<Record<string, string>>,
  cap: "logBytes" | "importLogBytes"
) =>
  Effect.flatMap(AppConfig, ({ dataDir, limits }) =>
    DurableLog.open({
      directory: join(dataDir, "analytics", folder),
      consumers: Object.values(consumers),
      capBytes: limits[cap],
      segmentBytes: limits.logSegmentBytes,
      maxBatchBytes: limits.logCommitBytes,
      commitEveryMillis: limits.logCommitEveryMillis,
      fullRetryAfterSeconds: limits.logFullRetryAfterSeconds,
      quarantine: { maxRecords: limits.quarantineRecords, maxBytes: limits.quarantineBytes }
    })
  )

/** The durable log of accepted events, one per process, under `DATA_DIR/analytics/log`. Records: EventRecord.ts. */
export class EventLog extends Context.Service<EventLog, DurableLog.DurableLog>()(
  "signalbox/analytics/EventLog"
) {
  static readonly layer = Layer.effect(EventLog, open("log", eventLogConsumers, "logBytes"))
}

/**
 * The durable log of what imports bring, apart from live events, so that those never wait behind a year of history nor
 * find their log full of it; under `DATA_DIR/analytics/imports`. Records: ImportRecord.ts.
 */
export class ImportLog extends Context.Service<ImportLog, DurableLog.DurableLog>()(
  "signalbox/analytics/ImportLog"
) {
  static readonly layer = Layer.effect(ImportLog, open("imports", importLogConsumers, "importLogBytes"))
}
