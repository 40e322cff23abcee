import { Clock, Effect, Fiber, Random, Result, type Scope } from "effect"
import { causeOf, pauseMillis, type Backoff, type BatchPolicy, type FlushCause } from "./BatchPolicy.ts"
import type { DurableLog, LogConsumer, LogRecord } from "./DurableLog.ts"
import { LogUnavailable } from "./LogFailure.ts"
import { SinkUnavailable, type Sink, type SinkBatch } from "./Sink.ts"

/**
 * Carries a log's records into a sink, in order and exactly once. One batch is in memory and in flight at a time: it
 * is announced in the checkpoint, written, retried as it is until the sink has it, then committed. What a crash
 * leaves between announcement and commit comes first after the restart, marked `recovering`.
 */
export interface Batcher {
  /**
   * Returns when everything below `offset` is in the sink. Fails promptly while the sink is down, or after
   * `flushTimeoutMillis` when too much lies before `offset`: a reader answers 503 instead of hanging.
   */
  readonly flushTo: (offset: number) => Effect.Effect<void, SinkUnavailable>
  readonly stats: () => BatcherStats
}

export interface BatcherStats {
  /** batches in the sink, by why they went out */
  readonly causes: Readonly<Record<FlushCause, number>>
  readonly batches: number
  readonly records: number
  /** attempts that failed since the start, and since the last success */
  readonly failures: number
  readonly failuresInARow: number
  /** durable records that the sink does not have */
  readonly behind: number
}

export interface BatcherOptions {
  readonly log: DurableLog
  readonly consumer: LogConsumer
  readonly sink: Sink
  readonly policy: BatchPolicy
  /** default 100 ms doubling to 5 s */
  readonly backoff?: Backoff
  /** an attempt that takes longer is interrupted and counts as failed. Default 30000 */
  readonly writeTimeoutMillis?: number
  /** default 5000 */
  readonly flushTimeoutMillis?: number
  /** how long closing the scope waits for the last flush. What it leaves stays in the log. Default 5000 */
  readonly drainMillis?: number
}

/** Starts the loop in the scope. Closing it flushes what is durable, as long as the sink takes it at once. */
export const run = (options: BatcherOptions): Effect.Effect<Batcher, never, Scope.Scope> =>
  Effect.gen(function* () {
    const loop = new BatcherLoop(options)
    yield* Effect.acquireRelease(Effect.forkDetach(loop.run()), (fiber) =>
      Effect.gen(function* () {
        loop.terminate()
        yield* Effect.timeoutOption(Fiber.await(fiber), options.drainMillis ?? 5000)
        yield* Fiber.interrupt(fiber)
      })
    )
    return { flushTo: (offset) => loop.flushTo(offset), stats: () => loop.stats() }
  })

/** Ends the loop: what is left stays in the log for the next process. */
type Closing = "closing"
const closing: Closing = "closing"

const defaultBackoff: Backoff = { baseMillis: 100, maxMillis: 5000 }

interface FlushWaiter {
  readonly offset: number
  readonly resume: (effect: Effect.Effect<void, SinkUnavailable>) => void
}

interface Batch extends SinkBatch {
  readonly cause: FlushCause
}

class BatcherLoop {
  private readonly options: BatcherOptions
  private readonly consumer: LogConsumer
  private readonly causes: Record<FlushCause, number> = {
    count: 0,
    bytes: 0,
    age: 0,
    demand: 0,
    recovery: 0,
    terminate: 0
  }
  /** below it, a crash of an earlier process left records uncertain */
  private readonly recoverTo: number
  private readonly waiters = new Set<FlushWaiter>()
  private demandedTo = 0
  /** everything that the batch before does not have is younger */
  private gatheredAtMillis = -Infinity
  /** set by `terminate`: the offset up to which the last flush goes */
  private terminateTo: number | undefined = undefined
  private refusal: SinkUnavailable | undefined = undefined
  private records = 0
  private failures = 0
  private failuresInARow = 0
  private nudge: () => void = () => undefined

  constructor(options: BatcherOptions) {
    this.options = options
    this.consumer = options.consumer
    this.recoverTo = options.consumer.inFlightTo()
  }

  flushTo(offset: number): Effect.Effect<void, SinkUnavailable> {
    const flushed = Effect.callback<void, SinkUnavailable>((resume) => {
      if (this.consumer.committed() >= offset) return resume(Effect.void)
      if (this.refusal !== undefined) return resume(Effect.fail(this.refusal))
      const waiter = { offset, resume }
      this.waiters.add(waiter)
      this.demandedTo = Math.max(this.demandedTo, offset)
      this.nudge()
      return Effect.sync(() => this.waiters.delete(waiter))
    })
    return Effect.timeoutOrElse(flushed, {
      duration: this.options.flushTimeoutMillis ?? 5000,
      orElse: () => {
        const missing = offset - this.consumer.committed()
        return Effect.fail(sinkUnavailable(`it is behind by ${missing} records`, undefined))
      }
    })
  }

  stats(): BatcherStats {
    return {
      causes: { ...this.causes },
      batches: Object.values(this.causes).reduce((sum, count) => sum + count, 0),
      records: this.records,
      failures: this.failures,
      failuresInARow: this.failuresInARow,
      behind: this.options.log.durableOffset() - this.consumer.committed()
    }
  }

  terminate(): void {
    this.terminateTo = this.options.log.durableOffset()
    this.nudge()
  }

  run(): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      while (true) {
        yield* this.untilDue(this.consumer.committed())
        if (this.terminateTo !== undefined && this.consumer.committed() >= this.terminateTo) return
        yield* this.step()
      }
    }).pipe(
      Effect.catch(() => Effect.void),
      Effect.ensuring(
        Effect.sync(() => this.refuse(sinkUnavailable("its batcher has been closed", undefined)))
      )
    )
  }

  /**
   * Waits for a record, then for company: until the policy's limits, a demand or the end. What came while the batch
   * before was being written has waited already, so under load a batch goes out every `maxAgeMillis`.
   */
  private untilDue(from: number): Effect.Effect<void> {
    const { log, policy } = this.options
    const hasWaited = log.durableOffset() > from
    const isHurried = (): boolean => this.terminateTo !== undefined || this.demandedTo > from
    const first = Effect.raceFirst(
      this.consumer.await(from),
      this.untilNudged(() => this.terminateTo !== undefined)
    )
    const age = Effect.flatMap(monotonicMillis, (nowMillis) =>
      Effect.sleep(Math.max(0, policy.maxAgeMillis - (hasWaited ? nowMillis - this.gatheredAtMillis : 0)))
    )
    const company = Effect.raceFirst(
      this.consumer.awaitMore({ from, records: policy.maxRecords, bytes: policy.maxBytes }),
      Effect.raceFirst(age, this.untilNudged(isHurried))
    )
    return Effect.andThen(
      first,
      Effect.suspend(() => (isHurried() || from < this.recoverTo ? Effect.void : company))
    )
  }

  private untilNudged(isTrue: () => boolean): Effect.Effect<void> {
    return Effect.callback((resume) => {
      if (isTrue()) return resume(Effect.void)
      this.nudge = () => {
        if (isTrue()) resume(Effect.void)
      }
    })
  }

  /** Moves one batch into the sink, however often it takes. */
  private step(): Effect.Effect<void, Closing> {
    return Effect.gen({ self: this }, function* () {
      this.gatheredAtMillis = yield* monotonicMillis
      const batch = yield* this.persist(this.gather)
      if (batch.records.length === 0) return
      yield* this.persist(this.consumer.begin(batch.to))
      yield* this.persist(this.write(batch))
      yield* this.persist(this.consumer.commit(batch.to))
      this.causes[batch.cause]++
      this.records += batch.records.length
      this.release()
    })
  }

  private readonly gather = Effect.suspend(() => {
    const { policy } = this.options
    const from = this.consumer.committed()
    const recovering = from < this.recoverTo
    const maxRecords = recovering ? Math.min(policy.maxRecords, this.recoverTo - from) : policy.maxRecords
    return this.consumer
      .read({ from, maxRecords, maxBytes: policy.maxBytes })
      .pipe(Effect.map((records) => this.batchOf(from, records, recovering)))
  })

  private batchOf(from: number, records: ReadonlyArray<LogRecord>, recovering: boolean): Batch {
    const { log, policy } = this.options
    const to = from + records.length
    const cause = causeOf(policy, {
      records: records.length,
      bytes: records.reduce((sum, record) => sum + record.payload.length, 0),
      isCut: to < log.durableOffset() && records.length < policy.maxRecords,
      isRecovering: recovering,
      isTerminating: this.terminateTo !== undefined,
      isDemanded: this.demandedTo > from
    })
    return { logId: log.id, from, to, records, token: `${log.id}:${from}-${to}`, recovering, cause }
  }

  private write(batch: Batch): Effect.Effect<void, SinkUnavailable> {
    return Effect.suspend(() => this.options.sink.write(batch)).pipe(
      Effect.catchDefect((defect) => Effect.fail(sinkUnavailable("it threw", defect))),
      Effect.timeoutOrElse({
        duration: this.options.writeTimeoutMillis ?? 30_000,
        orElse: () => Effect.fail(sinkUnavailable("it did not answer in time", undefined))
      })
    )
  }

  /** Repeats one part of a step until it succeeds, or until there is no time or no log left for it. */
  private persist<A>(part: Effect.Effect<A, SinkUnavailable | LogUnavailable>): Effect.Effect<A, Closing> {
    return Effect.gen({ self: this }, function* () {
      for (;;) {
        const result = yield* Effect.result(part)
        if (Result.isSuccess(result)) return result.success
        const error = result.failure
        this.failures++
        this.failuresInARow++
        this.refuse(error instanceof LogUnavailable ? sinkUnavailable(error.message, error) : error)
        if (error instanceof LogUnavailable && error.reason === "closed") return yield* Effect.fail(closing)
        if (this.terminateTo !== undefined) return yield* Effect.fail(closing)
        const random = yield* Random.next
        yield* Effect.raceFirst(
          Effect.sleep(pauseMillis(this.options.backoff ?? defaultBackoff, this.failuresInARow, random)),
          this.untilNudged(() => this.terminateTo !== undefined)
        )
      }
    })
  }

  /** Readers that wait, and those that come before the next success, are told at once. */
  private refuse(error: SinkUnavailable): void {
    this.refusal = error
    for (const waiter of this.waiters) waiter.resume(Effect.fail(error))
    this.waiters.clear()
  }

  private release(): void {
    this.refusal = undefined
    this.failuresInARow = 0
    for (const waiter of this.waiters) {
      if (waiter.offset > this.consumer.committed()) continue
      this.waiters.delete(waiter)
      waiter.resume(Effect.void)
    }
  }
}

const monotonicMillis = Clock.clockWith((clock) =>
  Effect.sync(() => Number(clock.monotonicTimeNanosUnsafe()) / 1e6)
)

const sinkUnavailable = (problem: string, cause: unknown): SinkUnavailable =>
  new SinkUnavailable({ problem, cause })
