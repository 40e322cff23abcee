import { Effect, type Scope } from "effect"
import * as SampledMetrics from "#actors/kernel/SampledMetrics.ts"
import type { LogName } from "#schemas/system/QuarantineApi.ts"
import * as Batcher from "#streams/kernel/Batcher.ts"
import type { BatchPolicy } from "#streams/kernel/BatchPolicy.ts"
import type { DurableLog } from "#streams/kernel/DurableLog.ts"
import type { Sink, SinkUnavailable } from "#streams/kernel/Sink.ts"
import { AppConfig } from "#src/Config.ts"
import { troubleWords } from "#src/http/StoreTrouble.ts"
import { type ComponentState, degraded, Readiness, up } from "#src/infra/telemetry/Readiness.ts"
import { Quarantines } from "./Quarantines.ts"

/** Carries the records of a log into a store: in order, exactly once, and again for as long as the store is away. */
export interface Drain extends Batcher.Batcher {
  /** Afterwards the store has every record that the log had taken before. Fails promptly while the store is away. */
  readonly flush: Effect.Effect<void, SinkUnavailable>
}

export interface DrainOptions {
  /** of its quarantine, on the command line and in `/metrics` */
  readonly name: LogName
  /** the beginning of its lines in the log, such as "events into ClickHouse" */
  readonly title: string
  readonly log: DurableLog
  /** the log's name for its consumer */
  readonly consumer: string
  readonly sink: Sink
  /** in place of the limits `batch…` */
  readonly policy?: Partial<BatchPolicy>
  /** in place of `batchWriteMillis` */
  readonly writeTimeoutMillis?: number
  /** Fails where a record that was set aside must not be tried again now. */
  readonly mayRetry?: Effect.Effect<void, SinkUnavailable>
  /** the numbers of it that are on `/metrics` */
  readonly metrics: {
    readonly [K in "behind" | "failures" | "records"]?: readonly [name: string, description: string]
  }
  /** its line on `/readyz`, where it has one of its own */
  readonly ready?: readonly [name: string, of: (stats: Batcher.BatcherStats) => ComponentState]
}

/** Runs in the scope; metrics, readiness and quarantine can be seen for as long. */
export const make = Effect.fnUntraced(function* ({
  consumer,
  log,
  mayRetry = Effect.void,
  metrics,
  name,
  policy,
  ready,
  sink,
  title,
  writeTimeoutMillis
}: DrainOptions): Effect.fn.Return<Drain, never, AppConfig | Quarantines | Readiness | Scope.Scope> {
  const { limits } = yield* AppConfig
  const batcher = yield* Batcher.run({
    name: title,
    log,
    consumer: log.consumer(consumer),
    sink,
    policy: {
      maxRecords: limits.batchRows,
      maxBytes: limits.batchBytes,
      maxAgeMillis: limits.batchAgeMillis,
      ...policy
    },
    backoff: { baseMillis: limits.retryMinMillis, maxMillis: limits.retryMaxMillis },
    writeTimeoutMillis: writeTimeoutMillis ?? limits.batchWriteMillis,
    flushTimeoutMillis: limits.readWaitMillis
  })
  const drain: Drain = {
    ...batcher,
    flush: Effect.suspend(() => batcher.flushTo(log.nextOffset())),
    quarantine: {
      ...batcher.quarantine,
      retry: (offset) => Effect.andThen(mayRetry, batcher.quarantine.retry(offset))
    }
  }
  yield* (yield* Quarantines).register(name, drain.quarantine)
  yield* SampledMetrics.register(
    (["behind", "failures", "records"] as const).flatMap((field): ReadonlyArray<SampledMetrics.Sample> => {
      const shown = metrics[field]
      return shown === undefined ? [] : [[...shown, () => drain.stats()[field]]]
    })
  )
  if (ready !== undefined) {
    const [component, of] = ready
    yield* (yield* Readiness).register(
      component,
      Effect.sync(() => of(drain.stats()))
    )
  }
  return drain
})

/** On `/readyz`: how much waits, and while the store takes nothing, what that means meanwhile, and why. */
export const stateOf = (
  waiting: string,
  meanwhile: string,
  trouble: SinkUnavailable | undefined
): ComponentState =>
  trouble === undefined
    ? { ...up, detail: waiting }
    : degraded(`${waiting}, and ${meanwhile}: ${troubleWords(trouble)}`)
