import { Effect, Layer } from "effect"
import * as SampledMetrics from "#actors/kernel/SampledMetrics.ts"
import { CountingLease } from "./counting/CountingLease.ts"
import { EventLog, ImportLog } from "./ingest/EventLog.ts"
import { Realtime } from "./reads/Realtime.ts"

/** On `/metrics`: counting, the logs of events and the realtime ring. The drain adds its own. */
export const layer = Layer.effectDiscard(
  Effect.gen(function* () {
    const log = yield* EventLog
    const importLog = yield* ImportLog
    const realtime = yield* Realtime
    const lease = yield* CountingLease
    yield* SampledMetrics.register([
      [
        "signalbox_events_counting",
        "1 in the one process that counts events, 0 in those that stand by",
        () => Number(lease.isCounting())
      ],
      ["signalbox_events_log_bytes", "Bytes of the event log on disk", () => log.stats().bytes],
      ["signalbox_events_logged_total", "Events made durable since the start", () => log.stats().appended],
      ["signalbox_events_log_commits_total", "Group commits, and so fdatasyncs", () => log.stats().fsyncs],
      [
        "signalbox_events_imports_log_bytes",
        "Bytes of the log of imported events on disk",
        () => importLog.stats().bytes
      ],
      [
        "signalbox_events_realtime_presences",
        "Visitors and pages in the realtime ring",
        () => realtime.stats().presences
      ]
    ])
  })
)
