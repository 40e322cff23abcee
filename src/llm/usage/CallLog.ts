import { join } from "node:path"
import { Context, Effect, Layer } from "effect"
import * as SampledMetrics from "#actors/kernel/SampledMetrics.ts"
import * as DurableLog from "#streams/kernel/DurableLog.ts"
import { encode, type CallRecord } from "#streams/llm/CallRecord.ts"
import { AppConfig } from "#src/Config.ts"
import { clickHouseConsumer } from "#src/infra/clickhouse/LostEngine.ts"
import { countCall } from "./CallCounters.ts"

/** Consumers of the log of calls: the ledger settles them in Postgres, ClickHouse counts them. */
export const callLogConsumers = { ledger: "ledger", clickHouse: clickHouseConsumer } as const

/**
 * The durable log of finished calls, one per process, under `DATA_DIR/llm/log`. Records: CallRecord.ts. Written through:
 * a call that was appended is settled after a `kill -9`, so its answer need not wait for the disk.
 */
export class CallLog extends Context.Service<
  CallLog,
  {
    readonly log: DurableLog.DurableLog
    /**
     * Never fails: refused records are kept in memory, in order, and tried again until they are taken. Only a process
     * that ends meanwhile loses them, which is why no new call begins while `isFailing`.
     */
    readonly append: (record: CallRecord) => void
    /** the log refuses records: new calls are answered 503 */
    readonly isFailing: () => boolean
    /** appended, and not yet safe from a power cut */
    readonly pending: () => number
  }
>()("signalbox/llm/CallLog") {
  static readonly layer = Layer.effect(
    CallLog,
    Effect.gen(function* () {
      const { dataDir, limits } = yield* AppConfig
      const log = yield* DurableLog.open({
        directory: join(dataDir, "llm", "log"),
        consumers: Object.values(callLogConsumers),
        segmentBytes: limits.callLogSegmentBytes,
        capBytes: limits.callLogBytes,
        maxBatchBytes: limits.logCommitBytes,
        commitEveryMillis: limits.callLogCommitEveryMillis,
        quarantine: { maxRecords: limits.quarantineRecords, maxBytes: limits.quarantineBytes },
        writeThrough: true
      })
      const calls = yield* make(log, limits.callLogRetryMillis, yield* countCall)
      yield* SampledMetrics.register([
        ["signalbox_model_log_bytes", "Bytes of the log of calls on disk", () => log.stats().bytes],
        [
          "signalbox_model_log_failing",
          "1 while the log of calls takes nothing, and calls are refused",
          () => Number(calls.isFailing())
        ]
      ])
      return CallLog.of(calls)
    })
  )
}

/** A log of calls over an open log. `count` receives every call. */
export const make = Effect.fnUntraced(function* (
  log: DurableLog.DurableLog,
  retryMillis: number,
  count: (record: CallRecord) => void
) {
  const refused: Array<Uint8Array> = []
  let pending = 0

  const offer = (bytes: Uint8Array): boolean => {
    const outcome = log.append(bytes, (error) => {
      // It was taken, and then the disk failed: its order is lost; nothing depends on it.
      if (error !== undefined) refused.push(bytes)
      else pending--
    })
    return typeof outcome === "number"
  }

  const retry = Effect.sync(() => {
    const waiting = refused.splice(0)
    const firstRefused = waiting.findIndex((bytes) => !offer(bytes))
    if (firstRefused >= 0) refused.unshift(...waiting.slice(firstRefused))
  })
  yield* Effect.forkScoped(Effect.forever(Effect.delay(retry, retryMillis)))
  yield* Effect.addFinalizer(() =>
    Effect.andThen(
      retry,
      Effect.suspend(() =>
        refused.length === 0
          ? Effect.void
          : Effect.logError("finished calls were lost: the log of calls takes nothing, and the server ends", {
              calls: refused.map((bytes) => Buffer.from(bytes).toString("utf8"))
            })
      )
    )
  )

  return {
    log,
    append: (record: CallRecord) => {
      const bytes = encode(record)
      pending++
      count(record)
      if (refused.length > 0 || !offer(bytes)) refused.push(bytes)
    },
    isFailing: () => refused.length > 0,
    pending: () => pending
  }
})
