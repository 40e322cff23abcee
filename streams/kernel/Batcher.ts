import { Clock, Effect, Fiber, Random, Result, type Scope } from "effect"
import { causeOf, pauseMillis, type Backoff, type BatchPolicy, type FlushCause } from "./BatchPolicy.ts"
import type { DurableLog, LogConsumer, LogRecord } from "./DurableLog.ts"
import { FlushWaiters } from "./FlushWaiters.ts"
import { Judgement, setAside } from "./Judgement.ts"
import { LogUnavailable } from "./LogFailure.ts"
import { type LogQuarantine, quarantineOf } from "./LogQuarantine.ts"
import { SinkUnavailable, type Sink, type SinkBatch } from "./Sink.ts"
import { SinkCalls } from "./SinkCalls.ts"
import { Trouble } from "./Trouble.ts"

/**
 * Carries a log's records into a sink, in order and exactly once. One batch is in memory and in flight at a time: it is
 * announced in the checkpoint, written, retried as it is until the sink has it, then committed. A batch that a crash
 * leaves between announcement and commit comes first after the restart, marked `recovering`.
 *
 * A batch that the sink refuses, rather than fails to take, is halved until one record is left; where `Judgement` finds
 * it the culprit, it is set aside in the consumer's quarantine, and the rest goes on.
 */
export interface Batcher {
  /**
   * Returns when everything below `offset` is in the sink. Fails promptly while the sink is down, or after
   * `flushTimeoutMillis` when too much lies before `offset`: a reader answers 503 instead of hanging.
   */
  readonly flushTo: (offset: number) => Effect.Effect<void, SinkUnavailable>
  readonly stats: () => BatcherStats
  readonly quarantine: LogQuarantine
}

export interface BatcherStats {
  /** batches in the sink, by why they went out */
  readonly causes: Readonly<Record<FlushCause, number>>
  readonly records: number
  /** attempts that failed since the start, and since the last success */
  readonly failures: number
  readonly failuresInARow: number
  /** durable records that the sink does not have */
  readonly behind: number
  /** why it stands still; undefined: it does not */
  readonly trouble: SinkUnavailable | undefined
}

export interface BatcherOptions {
  /** the beginning of its log lines, such as "events into ClickHouse" */
  readonly name: string
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
  /** how long closing the scope waits for the last flush. The rest stays in the log. Default 5000 */
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
        // A call that cannot be interrupted must not hold up the end.
        yield* Effect.timeoutOption(Fiber.interrupt(fiber), interruptMillis)
      })
    )
    return {
      flushTo: (offset) => loop.flushTo(offset),
      stats: () => loop.stats(),
      quarantine: loop.quarantine
    }
  })

const interruptMillis = 1000

/** Ends the loop: the rest stays in the log for the next process. */
type Closing = "closing"
const closing: Closing = "closing"

const defaultBackoff: Backoff = { baseMillis: 100, maxMillis: 5000 }

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
  private readonly calls: SinkCalls
  private readonly judgement: Judgement
  readonly quarantine: LogQuarantine
  private readonly trouble: Trouble
  /** below it records are uncertain: a crash of an earlier process left them so, or a batch that was refused */
  private recoverTo: number
  /** records in a batch at most: halved with each refusal, and doubled with each batch that is taken */
  private span = Infinity
  /** the end of the batch whose refusal began the halving, and whether a part of it has been taken since */
  private refusedTo = 0
  private tookSinceRefusal = false
  private readonly waiters: FlushWaiters
  /** everything that the batch before does not have is younger */
  private gatheredAtMillis = -Infinity
  /** set by `terminate`: the offset up to which the last flush goes */
  private terminateTo: number | undefined = undefined
  private records = 0
  private failures = 0
  private failuresInARow = 0
  private nudge: () => void = () => undefined

  constructor(options: BatcherOptions) {
    this.options = options
    this.consumer = options.consumer
    this.recoverTo = options.consumer.inFlightTo()
    this.trouble = new Trouble(options.name)
    this.waiters = new FlushWaiters(this.consumer, this.trouble, options.flushTimeoutMillis ?? 5000)
    this.calls = new SinkCalls(options.sink, options.writeTimeoutMillis ?? 30_000)
    this.judgement = new Judgement({
      consumer: this.consumer,
      calls: this.calls,
      batchOf: (record) => this.singleOf(record),
      begin: (to) =>
        Effect.suspend(() => {
          this.recoverTo = Math.max(this.recoverTo, to)
          return this.consumer.begin(to)
        })
    })
    this.quarantine = quarantineOf({
      consumer: this.consumer,
      calls: this.calls,
      batchOf: (record) => this.singleOf(record),
      trouble: this.trouble
    })
  }

  flushTo(offset: number): Effect.Effect<void, SinkUnavailable> {
    return this.waiters.flushTo(offset, () => this.nudge())
  }

  stats(): BatcherStats {
    return {
      causes: { ...this.causes },
      records: this.records,
      failures: this.failures,
      failuresInARow: this.failuresInARow,
      behind: this.options.log.durableOffset() - this.consumer.committed(),
      trouble: this.trouble.current
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
      Effect.ensuring(Effect.sync(() => this.end(sinkUnavailable("its batcher has been closed", undefined))))
    )
  }

  /**
   * Waits for a record, then for company: until the policy's limits, a demand or the end. Records that came during the
   * previous write have waited already, so under load a batch goes out every `maxAgeMillis`.
   */
  private untilDue(from: number): Effect.Effect<void> {
    const { log, policy } = this.options
    const hasWaited = log.durableOffset() > from
    const isHurried = (): boolean => this.terminateTo !== undefined || this.waiters.demandedTo > from
    const first = Effect.raceFirst(
      this.consumer.await(from),
      this.untilNudged(() => this.terminateTo !== undefined)
    )
    const untilAge = (ageMillis: number) =>
      Effect.flatMap(monotonicMillis, (nowMillis) =>
        Effect.sleep(Math.max(0, ageMillis - (hasWaited ? nowMillis - this.gatheredAtMillis : 0)))
      )
    const { early } = policy
    const untilEarly =
      early === undefined
        ? Effect.never
        : Effect.andThen(
            untilAge(early.ageMillis),
            Effect.suspend(() =>
              log.durableOffset() - from <= early.recordsMax ? Effect.void : Effect.never
            )
          )
    const company = Effect.raceAllFirst([
      this.consumer.awaitMore({ from, records: policy.maxRecords, bytes: policy.maxBytes }),
      untilAge(policy.maxAgeMillis),
      untilEarly,
      this.untilNudged(isHurried)
    ])
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

  /** Moves one batch into the sink, or finds out that it has to be smaller, however often it takes. */
  private step(): Effect.Effect<void, Closing> {
    return Effect.gen({ self: this }, function* () {
      this.gatheredAtMillis = yield* monotonicMillis
      const batch = yield* this.persist(this.gather)
      if (batch.to === batch.from) return
      yield* this.persist(this.consumer.begin(batch.to))
      // A crash came between setting it aside and the commit.
      const isSkipped = batch.records.length === 0
      const refused = isSkipped ? undefined : yield* this.persist(this.calls.write(batch))
      if (refused === undefined) return yield* this.taken(batch)
      this.failures++
      this.recoverTo = Math.max(this.recoverTo, batch.to)
      if (batch.from >= this.refusedTo) this.tookSinceRefusal = false
      this.refusedTo = Math.max(this.refusedTo, batch.to)
      this.span = Math.ceil(batch.records.length / 2)
      if (batch.records.length === 1) yield* this.judge(batch)
    })
  }

  private taken(batch: Batch): Effect.Effect<void, Closing> {
    return Effect.gen({ self: this }, function* () {
      yield* this.persist(this.consumer.commit(batch.to))
      if (batch.records.length > 0) {
        this.causes[batch.cause]++
        this.judgement.tookOne()
        this.tookSinceRefusal = true
      }
      this.records += batch.records.length
      this.span = this.span * 2 < this.options.policy.maxRecords ? this.span * 2 : Infinity
      yield* this.release
    })
  }

  /** A record that was refused alone: taken after all, or set aside, or the sink takes nothing at the moment. */
  private judge(batch: Batch): Effect.Effect<void, Closing> {
    return Effect.gen({ self: this }, function* () {
      const [record] = batch.records
      const alone: Batch = { ...batch, recovering: true }
      const refused = yield* this.persist(this.judgement.of(alone, this.tookSinceRefusal))
      if (refused === undefined || record === undefined) return yield* this.taken(batch)
      yield* this.persist(setAside(this.options.name, this.consumer, record, refused))
      yield* this.persist(this.consumer.commit(batch.to))
      yield* this.release
    })
  }

  private readonly gather = Effect.suspend(() => {
    const { policy } = this.options
    const from = this.consumer.committed()
    const recovering = from < this.recoverTo
    const maxRecords = Math.min(policy.maxRecords, this.span, recovering ? this.recoverTo - from : Infinity)
    return this.consumer
      .read({ from, maxRecords, maxBytes: policy.maxBytes })
      .pipe(Effect.map((records) => this.batchOf(from, records, recovering)))
  })

  private batchOf(from: number, found: ReadonlyArray<LogRecord>, recovering: boolean): Batch {
    const { log, policy } = this.options
    const records = this.withoutSetAside(found)
    const to = records.length === 0 && found.length > 0 ? from + 1 : from + records.length
    const cause = causeOf(policy, {
      records: records.length,
      bytes: records.reduce((sum, record) => sum + record.payload.length, 0),
      isCut: to < log.durableOffset() && records.length < policy.maxRecords,
      isRecovering: recovering,
      isTerminating: this.terminateTo !== undefined,
      isDemanded: this.waiters.demandedTo > from
    })
    return { logId: log.id, from, to, records, token: `${log.id}:${from}-${to}`, recovering, cause }
  }

  /** Up to the first record that is in the quarantine; a batch has no gap. None where it is the first one. */
  private withoutSetAside(records: ReadonlyArray<LogRecord>): ReadonlyArray<LogRecord> {
    const { quarantine } = this.consumer
    if (quarantine.stats().records === 0) return records
    const end = records.findIndex(({ offset }) => quarantine.has(offset))
    return end < 0 ? records : records.slice(0, end)
  }

  private singleOf(record: LogRecord): SinkBatch {
    const { id } = this.options.log
    const [from, to] = [record.offset, record.offset + 1]
    return { logId: id, from, to, records: [record], token: `${id}:${from}-${to}`, recovering: true }
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
        yield* this.refuse(error instanceof LogUnavailable ? sinkUnavailable(error.message, error) : error)
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

  private end(error: SinkUnavailable): void {
    this.trouble.stop(error)
    this.waiters.fail(error)
  }

  /** Readers that wait, and those that come before the next success, fail at once. */
  private refuse(error: SinkUnavailable): Effect.Effect<void> {
    return Effect.suspend(() => {
      const noted = this.trouble.note(error)
      this.waiters.fail(error)
      return noted
    })
  }

  private readonly release: Effect.Effect<void> = Effect.suspend(() => {
    this.failuresInARow = 0
    return Effect.andThen(
      this.trouble.over,
      Effect.sync(() => this.waiters.release())
    )
  })
}

const monotonicMillis = Clock.clockWith((clock) =>
  Effect.sync(() => Number(clock.monotonicTimeNanosUnsafe()) / 1e6)
)

const sinkUnavailable = (problem: string, cause: unknown): SinkUnavailable =>
  new SinkUnavailable({ problem, cause })
