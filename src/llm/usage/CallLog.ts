import { join } from "node:path"
import { Context, Effect, Layer } from "effect"
import * as SampledMetrics from "#actors/kernel/SampledMetrics.ts"
import * as DurableLog from "#streams/kernel/DurableLog.ts"
import type { CallRecord } from "#streams/llm/CallRecord.ts"
import { encode } from "#streams/llm/CallRow.ts"
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
    /**
     * As `append`, for an answer that waits for its record: the records of one turn of the event loop are written by one
     * write, and then `next` of each is called, in order.
     */
    readonly appendThen: (record: CallRecord, next: () => void) => void
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

/** Bytes of a turn's records that are written without waiting for its end. */
const turnBytesMax = 256 * 1024

/** A log of calls over an open log. `count` receives every call. */
export const make = Effect.fnUntraced(function* (
  log: DurableLog.DurableLog,
  retryMillis: number,
  count: (record: CallRecord) => void
) {
  const refused: Array<Uint8Array> = []
  let pending = 0

  const offer = (records: ReadonlyArray<Uint8Array>): boolean => {
    const outcome = log.appendAll(records, (error) => {
      // They were taken, and then the disk failed: their order is lost; nothing depends on it.
      if (error !== undefined) refused.push(...records)
      else pending -= records.length
    })
    return typeof outcome === "number"
  }

  const retry = Effect.sync(() => {
    const waiting = refused.splice(0)
    const firstRefused = waiting.findIndex((bytes) => !offer([bytes]))
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

  const write = (records: ReadonlyArray<Uint8Array>): void => {
    if (refused.length > 0 || !offer(records)) refused.push(...records)
  }
  const take = (record: CallRecord): Uint8Array => {
    pending++
    count(record)
    return encode(record)
  }
  const turn = new Turn(write)
  return {
    log,
    append: (record: CallRecord) => write([take(record)]),
    appendThen: (record: CallRecord, next: () => void) => turn.add(take(record), next),
    isFailing: () => refused.length > 0,
    pending: () => pending
  }
})

/** The records of one turn of the event loop, and what follows each. */
class Turn {
  readonly #write: (records: ReadonlyArray<Uint8Array>) => void
  #records: Array<Uint8Array> = []
  #next: Array<() => void> = []
  #bytes = 0

  constructor(write: (records: ReadonlyArray<Uint8Array>) => void) {
    this.#write = write
  }

  add(record: Uint8Array, next: () => void): void {
    if (this.#records.length === 0) setImmediate(() => this.#end())
    this.#records.push(record)
    this.#next.push(next)
    this.#bytes += record.length
    if (this.#bytes >= turnBytesMax) this.#end()
  }

  #end(): void {
    if (this.#records.length === 0) return
    const [records, following] = [this.#records, this.#next]
    this.#records = []
    this.#next = []
    this.#bytes = 0
    this.#write(records)
    for (const next of following) next()
  }
}
