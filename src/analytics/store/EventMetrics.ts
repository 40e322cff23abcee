import { Effect, Layer } from "effect"
import * as SampledMetrics from "#actors/kernel/SampledMetrics.ts"
import { CountingLease } from "../counting/CountingLease.ts"
import { EventDrain } from "./EventDrain.ts"
import { EventLog, ImportLog } from "../ingest/EventLog.ts"
import { Realtime } from "../reads/Realtime.ts"

const gauge = (name: string, description: string, read: () => number): SampledMetrics.Sample => ({
  name: `signalbox_events_${name}`,
  kind: "gauge",
  description,
  read
})

const counter = (name: string, description: string, read: () => number): SampledMetrics.Sample => ({
  name: `signalbox_events_${name}_total`,
  kind: "counter",
  description,
  read
})

/** The metrics of an event's path: the log, its drain into ClickHouse, the realtime ring. */
export const layer = Layer.effectDiscard(
  Effect.gen(function* () {
    const log = yield* EventLog
    const importLog = yield* ImportLog
    const drain = yield* EventDrain
    const realtime = yield* Realtime
    const lease = yield* CountingLease
    yield* SampledMetrics.register([
      gauge("counting", "1 in the one process that counts events, 0 in those that stand by", () =>
        Number(lease.isCounting())
      ),
      gauge("log_bytes", "Bytes of the event log on disk", () => log.stats().bytes),
      gauge(
        "behind",
        "Events in the log that ClickHouse does not have yet",
        () => drain.stats().batcher.behind
      ),
      gauge(
        "imports_behind",
        "Imported events in their log that ClickHouse does not have yet",
        () => drain.stats().imports.behind
      ),
      gauge(
        "imports_log_bytes",
        "Bytes of the log of imported events on disk",
        () => importLog.stats().bytes
      ),
      gauge(
        "realtime_presences",
        "Visitors and pages in the realtime ring",
        () => realtime.stats().presences
      ),
      gauge(
        "resident_visitor_days",
        "Visitors of a day whose visits are kept in memory, some 1.5 KB each",
        () => drain.stats().sink.resident
      ),
      counter("logged", "Events made durable since the start", () => log.stats().appended),
      counter("log_commits", "Group commits, and so fdatasyncs", () => log.stats().fsyncs),
      counter("drained", "Events written into ClickHouse", () => drain.stats().batcher.records),
      counter(
        "imports_drained",
        "Imported events written into ClickHouse",
        () => drain.stats().imports.records
      ),
      counter(
        "drain_failures",
        "Attempts to write a batch that failed",
        () => drain.stats().batcher.failures + drain.stats().imports.failures
      ),
      counter("visit_rows", "Rows of visits written", () => drain.stats().sink.visitRows)
    ])
    for (const cause of Object.keys(drain.stats().batcher.causes)) {
      const read = () =>
        Object.entries(drain.stats().batcher.causes).find(([name]) => name === cause)?.[1] ?? 0
      yield* SampledMetrics.register([counter("batches", "Batches written, by why they went out", read)], {
        cause
      })
    }
  })
)
