import { Cause, Effect, Exit, Fiber, Option, Schema } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Limits } from "#src/Limits.ts"
import { again, dead, type Job, later, type Outcome, type Queue } from "./Job.ts"
import { type Claimed, JobStore, type Settlement } from "./JobStore.ts"

export interface WorkerOptions<P, R> {
  /** jobs at once in this process, each of another lane */
  readonly concurrency: number
  /** an attempt that takes longer is interrupted, and has failed */
  readonly attemptMillis: number
  /** A failure or a defect is a failed attempt; the next one comes after a pause that grows. */
  readonly handle: (job: Job<P>) => Effect.Effect<Outcome, unknown, R>
}

/** Numbers since the start, for `/metrics`. */
export interface WorkerCounts {
  done: number
  dead: number
  failed: number
  /** attempts of which an earlier one was left open */
  repeated: number
  /** attempts whose lease was lost before they ended: their outcome does not count */
  late: number
}

/** A lane on lease, and the attempt at its first job. */
interface Attempt extends Pick<Claimed, "lane" | "epoch" | "seq" | "attempts"> {
  /** these two by the monotonic clock */
  leaseEnds: number
  readonly deadline: number
  fiber: Fiber.Fiber<void> | undefined
  /** it has come to something, which is not settled yet */
  isFinished: boolean
}

/** The lease was lost: nothing of the attempt may be written. */
class LeaseLost extends Schema.TaggedError<LeaseLost>()("LeaseLost", {}) {}

const problemOf = (cause: Cause.Cause<unknown>): string => {
  const error = Cause.squash(cause)
  return error instanceof Error ? error.message : String(error)
}

/**
 * Takes the jobs of one queue, runs them, and settles what they came to, in one loop: while a statement is under way
 * attempts end and others become due, so that under load statements carry many of them. State: the lanes on lease.
 */
export class JobWorker<P> {
  readonly counts: WorkerCounts = { done: 0, dead: 0, failed: 0, repeated: 0, late: 0 }
  private readonly queue: Queue<P>
  private readonly options: WorkerOptions<P, never>
  /** of a few connections of its own: requests that wait for theirs must not cost a lease */
  private readonly store: JobStore
  /** the client of services, whose changes join the transaction that ends a job */
  private readonly sql: SqlClient
  private readonly holder: string
  private readonly limits: Limits
  private readonly decode: (text: string) => Exit.Exit<P, unknown>
  private readonly open = new Map<string, Attempt>()
  private finished: Array<Settlement> = []
  private isStopping = false
  private isWoken = false
  private resume: (() => void) | undefined

  constructor(
    queue: Queue<P>,
    options: WorkerOptions<P, never>,
    { holder, limits, sql, store }: { store: JobStore; sql: SqlClient; holder: string; limits: Limits }
  ) {
    this.queue = queue
    this.options = options
    this.store = store
    this.sql = sql
    this.holder = holder
    this.limits = limits
    this.decode = Schema.decodeUnknownExit(Schema.fromJsonString(queue.payload))
  }

  /** Something may be due. */
  readonly wake = (): void => {
    this.isWoken = true
    this.resume?.()
  }

  /** Works for ever. A store that is away is asked again, and said once. */
  readonly run: Effect.Effect<never> = Effect.gen({ self: this }, function* () {
    let pauseMillis = this.limits.retryMinMillis
    let isAway = false
    while (true) {
      const turn = yield* Effect.exit(this.turn)
      if (Exit.isSuccess(turn)) {
        if (isAway) yield* Effect.logInfo(`jobs of ${this.queue.name} are worked on again`)
        isAway = false
        pauseMillis = this.limits.retryMinMillis
      } else {
        if (!isAway)
          yield* Effect.logWarning(`jobs of ${this.queue.name} wait for Postgres: ${problemOf(turn.cause)}`)
        isAway = true
        yield* Effect.sleep(pauseMillis)
        pauseMillis = Math.min(2 * pauseMillis, this.limits.retryMaxMillis)
      }
    }
  })

  /** Lengthens the leases, three times in the time that one lasts; ends the attempts of those that are lost. */
  readonly renew: Effect.Effect<void> = Effect.gen({ self: this }, function* () {
    const attempts = [...this.open.values()]
    if (attempts.length === 0) return
    const asked = performance.now()
    const lease = this.limits.jobLeaseMillis
    const held = yield* this.store
      .extend(this.queue.name, attempts, lease)
      .pipe(Effect.timeout(lease / 4), Effect.option)
    for (const attempt of attempts) {
      if (this.open.get(attempt.lane) !== attempt) continue
      if (Option.isSome(held) && held.value.has(attempt.lane)) attempt.leaseEnds = asked + lease
      else if (Option.isSome(held) || attempt.leaseEnds < performance.now()) yield* this.abandon(attempt)
    }
  })

  /** Takes nothing more, waits for the attempts under way, and gives back the lanes of those that do not end. */
  readonly stop: Effect.Effect<void> = Effect.gen({ self: this }, function* () {
    this.isStopping = true
    const deadline = performance.now() + this.limits.jobStopMillis
    while (this.open.size > 0 && performance.now() < deadline) yield* Effect.sleep(20)
    const left: Array<Settlement> = []
    for (const attempt of this.open.values()) {
      if (attempt.isFinished) continue
      yield* interrupt(attempt)
      left.push({ ...settlementOf(attempt, later(0)), outcome: "left" })
    }
    const settlements = [...this.finished, ...left]
    if (settlements.length === 0) return
    yield* this.store.settle(this.queue.name, settlements).pipe(
      Effect.timeout(this.limits.jobStopMillis / 4),
      Effect.catch((error) =>
        Effect.logWarning(
          `${settlements.length} jobs of ${this.queue.name} are due when their leases end`,
          error
        )
      )
    )
  })

  /** One timer looks after the deadlines of all attempts: one for each would cost more than a short attempt. */
  readonly expire: Effect.Effect<void> = Effect.gen({ self: this }, function* () {
    const now = performance.now()
    for (const attempt of this.open.values()) {
      if (attempt.isFinished || attempt.deadline > now) continue
      const problem = `the attempt had not ended after ${this.options.attemptMillis} ms`
      // An attempt that cannot be interrupted is not waited for.
      yield* interrupt(attempt)
      this.finish(attempt, this.failed(problem, attempt.attempts))
    }
  })

  private readonly turn: Effect.Effect<void, SqlError> = Effect.gen({ self: this }, function* () {
    this.isWoken = false
    if (this.finished.length > 0) yield* this.settle()
    const free = this.isStopping ? 0 : this.options.concurrency - this.open.size
    const asked = performance.now()
    const claimed =
      free === 0
        ? []
        : yield* this.store.claim(this.queue.name, this.holder, free, this.limits.jobLeaseMillis)
    for (const claim of claimed) yield* this.begin(claim, asked + this.limits.jobLeaseMillis)
    yield* Effect.yieldNow
    // With all that it may have at once it waits for an end; else for what becomes due.
    if (this.isWoken) return
    const isFull = this.open.size >= this.options.concurrency || this.isStopping
    const dueMillis = isFull ? undefined : yield* this.store.next(this.queue.name)
    yield* this.wait(Math.min(Math.max(dueMillis ?? Infinity, minWaitMillis), this.limits.jobPollMillis))
  })

  private wait(millis: number): Effect.Effect<void> {
    return Effect.callback((resume) => {
      const end = (): void => {
        clearTimeout(timer)
        this.resume = undefined
        resume(Effect.void)
      }
      const timer = setTimeout(end, millis)
      this.resume = end
      if (this.isWoken) end()
      return Effect.sync(end)
    })
  }

  private settle(): Effect.Effect<void, SqlError> {
    // More attempts end while the statement is under way.
    const settlements = [...this.finished]
    return Effect.map(this.store.settle(this.queue.name, settlements), (held) => {
      this.finished = this.finished.slice(settlements.length)
      for (const { epoch, lane, outcome } of settlements) {
        if (this.open.get(lane)?.epoch === epoch) this.open.delete(lane)
        if (held.has(lane)) this.count(outcome)
        else this.counts.late++
      }
    })
  }

  private begin(claimed: Claimed, leaseEnds: number): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      const { attempts, epoch, lane, seq } = claimed
      // The lease ended before this process could renew it, and it took the lane itself.
      const before = this.open.get(lane)
      if (before !== undefined) yield* this.abandon(before)
      const deadline = performance.now() + this.options.attemptMillis
      const attempt: Attempt = {
        lane,
        epoch,
        seq,
        attempts,
        leaseEnds,
        deadline,
        fiber: undefined,
        isFinished: false
      }
      this.open.set(lane, attempt)
      if (claimed.repeated) this.counts.repeated++
      attempt.fiber = yield* Effect.forkDetach(this.attempt(attempt, claimed), { startImmediately: true })
    })
  }

  private attempt(attempt: Attempt, claimed: Claimed): Effect.Effect<void> {
    const { attempts, id, lane, offered_millis, repeated } = claimed
    const payload = this.decode(claimed.payload)
    if (Exit.isFailure(payload)) {
      this.finish(attempt, dead(`the payload cannot be read: ${problemOf(payload.cause)}`))
      return Effect.void
    }
    const offeredAt = new Date(offered_millis)
    const job: Job<P> = { id, lane, payload: payload.value, attempt: attempts, repeated, offeredAt }
    return Effect.suspend(() => this.options.handle(job)).pipe(
      Effect.catchCause((cause) => Effect.succeed(this.failed(problemOf(cause), attempts))),
      Effect.flatMap((outcome) => this.end(attempt, outcome))
    )
  }

  private failed(error: string, attempts: number): Outcome {
    if (attempts >= (this.queue.attemptsMax ?? this.limits.jobAttemptsMax)) return dead(error)
    const { jobRetryMaxMillis: most, jobRetryMinMillis: least } = this.limits
    // Jobs that failed together come again apart.
    return again(error, Math.min(least * 2 ** (attempts - 1), most) * (0.8 + 0.4 * Math.random()))
  }

  private end(attempt: Attempt, outcome: Outcome): Effect.Effect<void> {
    const change = "change" in outcome ? outcome.change : undefined
    if (change === undefined) return Effect.sync(() => this.finish(attempt, outcome))
    const settlement = settlementOf(attempt, outcome)
    const once = Effect.gen({ self: this }, function* () {
      const held = yield* new JobStore(this.sql).settle(this.queue.name, [settlement])
      if (!held.has(attempt.lane)) return yield* new LeaseLost()
      yield* change
    })
    return this.sql.withTransaction(once).pipe(
      Effect.matchCause({
        onSuccess: () => this.release(attempt, () => this.count(settlement.outcome)),
        onFailure: (cause) => {
          if (Cause.squash(cause) instanceof LeaseLost) this.release(attempt, () => this.counts.late++)
          else this.finish(attempt, this.failed(problemOf(cause), attempt.attempts))
        }
      })
    )
  }

  private finish(attempt: Attempt, outcome: Outcome): void {
    if (attempt.isFinished || this.open.get(attempt.lane) !== attempt) return
    attempt.isFinished = true
    this.finished.push(settlementOf(attempt, outcome))
    this.wake()
  }

  private release(attempt: Attempt, count: () => void): void {
    if (this.open.get(attempt.lane) === attempt) this.open.delete(attempt.lane)
    count()
    this.wake()
  }

  /** Another process may have the lane: the attempt ends here, and what it comes to does not count. */
  private abandon(attempt: Attempt): Effect.Effect<void> {
    // The statement that settles it is refused, or finds the lease as it was.
    if (attempt.isFinished) return Effect.void
    this.release(attempt, () => this.counts.late++)
    return interrupt(attempt)
  }

  private count(outcome: Settlement["outcome"]): void {
    if (outcome === "done") this.counts.done++
    if (outcome === "dead") this.counts.dead++
    if (outcome === "again") this.counts.failed++
  }
}

/** A due time that is over already, by the time that the answer took, must not make the loop spin. */
const minWaitMillis = 5

const settlementOf = ({ epoch, lane, seq }: Attempt, { _tag, error, restMillis }: Outcome): Settlement => ({
  lane,
  epoch,
  seq,
  outcome: kindOf[_tag],
  error,
  restMillis
})

const interrupt = ({ fiber }: Attempt): Effect.Effect<void> =>
  fiber === undefined ? Effect.void : Effect.asVoid(Effect.forkDetach(Fiber.interrupt(fiber)))

const kindOf = { Done: "done", Dead: "dead", Again: "again", Later: "later" } as const
