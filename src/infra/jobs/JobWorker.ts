import { Cause, Effect, Exit, Fiber, Option, Schedule, Schema, Semaphore } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import { SqlError } from "effect/sql/SqlError"
import { abandonedAfter } from "#streams/kernel/AbandonedAfter.ts"
import type { Limits } from "#src/Limits.ts"
import { again, backoffMillis, dead, type Job, later, type Outcome, type Queue } from "./Job.ts"
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
  private readonly attemptsMax: number
  /** Of fewer ended attempts the lanes may be all that there are, which a claim beside the settlement would not find. */
  private readonly overlapMin: number
  private readonly decode: (text: string) => Exit.Exit<P, unknown>
  private readonly open = new Map<string, Attempt>()
  private finished: Array<Settlement> = []
  /** lanes that another transaction has locked: their settlements must not hold up the others */
  private blocked: Array<Settlement> = []
  private blockedUntil = 0
  private idleMillis = idleMinMillis
  private readonly changing: Semaphore.Semaphore
  private isStopping = false
  private isClaiming = false
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
    this.changing = Semaphore.makeUnsafe(limits.jobChangesAtOnce)
    this.attemptsMax = queue.attemptsMax ?? limits.jobAttemptsMax
    this.overlapMin = Math.max(2, Math.min(16, options.concurrency / 2))
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
      if (Option.isSome(held) && held.value.has(attempt.epoch)) attempt.leaseEnds = asked + lease
      else if (Option.isSome(held) || attempt.leaseEnds < performance.now()) yield* this.abandon(attempt)
    }
  })

  /** Takes nothing more, waits for the attempts under way, and gives back the lanes of those that do not end. */
  readonly stop: Effect.Effect<void> = Effect.gen({ self: this }, function* () {
    this.isStopping = true
    const deadline = performance.now() + this.limits.jobStopMillis
    while ((this.open.size > 0 || this.isClaiming) && performance.now() < deadline) yield* Effect.sleep(20)
    const left: Array<Settlement> = []
    for (const attempt of this.open.values()) {
      if (attempt.isFinished) continue
      yield* interrupt(attempt)
      left.push({ ...settlementOf(attempt, later(0)), outcome: "left" })
    }
    const settlements = [...this.finished, ...this.blocked, ...left]
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
      this.leave(attempt, problem)
    }
    if (this.blocked.length > 0 && this.blockedUntil <= now) {
      this.finished.push(...this.blocked.splice(0))
      this.wake()
    }
  })

  private readonly turn: Effect.Effect<void, SqlError | Cause.TimeoutError> = Effect.gen(
    { self: this },
    function* () {
      this.isWoken = false
      const ending = this.finished.length
      const isBusy = ending >= this.overlapMin
      if (ending > 0 && !isBusy) yield* this.settle()
      const claimed = isBusy ? yield* this.settleAndClaim(ending) : yield* this.claim()
      yield* Effect.yieldNow
      // With all that it may have at once it waits for an end; else for what becomes due.
      if (this.isWoken || isBusy) return
      const isFull = this.open.size >= this.options.concurrency || this.isStopping
      const due = isFull ? undefined : yield* this.bounded(this.store.next(this.queue.name))
      const isLocked = claimed === 0 && due !== undefined && due <= 0
      // The lane is due, and another transaction has locked it. Looking again at once would be a busy loop.
      this.idleMillis = isLocked ? Math.min(2 * this.idleMillis, this.limits.jobBlockedMillis) : idleMinMillis
      yield* this.wait(Math.min(Math.max(due ?? Infinity, this.idleMillis), this.limits.jobPollMillis))
    }
  )

  /**
   * Under load the next jobs are taken while the last ones are settled, by two connections: attempts that have ended
   * count no longer. Both statements are waited for, since an interrupted claim would keep its lanes for a lease.
   */
  private settleAndClaim(ending: number): Effect.Effect<number, SqlError | Cause.TimeoutError> {
    return Effect.gen({ self: this }, function* () {
      const settling = yield* Effect.forkChild(Effect.exit(this.settle()), { startImmediately: true })
      const claimed = yield* Effect.exit(this.claim(ending))
      yield* yield* Fiber.join(settling)
      return yield* claimed
    })
  }

  /** `ending`: attempts that are being settled meanwhile */
  private claim(ending = 0): Effect.Effect<number, SqlError | Cause.TimeoutError> {
    const free = this.isStopping ? 0 : this.options.concurrency - this.open.size + ending
    if (free <= 0) return Effect.succeed(0)
    const asked = performance.now()
    const lease = this.limits.jobLeaseMillis
    this.isClaiming = true
    return this.bounded(this.store.claim(this.queue.name, this.holder, free, lease)).pipe(
      Effect.tap((claimed) =>
        Effect.forEach(claimed, (one) => this.begin(one, asked + lease), { discard: true })
      ),
      Effect.map(({ length }) => length),
      Effect.ensuring(Effect.sync(() => (this.isClaiming = false)))
    )
  }

  /** A connection that hangs must not stop the loop: after a lease nothing that it answers would hold. */
  private bounded<A>(statement: Effect.Effect<A, SqlError>): Effect.Effect<A, SqlError | Cause.TimeoutError> {
    return abandonedAfter(statement, this.limits.jobLeaseMillis)
  }

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

  private settle(): Effect.Effect<void, SqlError | Cause.TimeoutError> {
    // More attempts end while the statement is under way.
    const settlements = [...this.finished]
    const { name } = this.queue
    const all = Effect.map(this.store.settle(name, settlements, this.limits.jobLockMillis), (held) => ({
      held,
      blocked: []
    }))
    const free = Effect.catchIf(all, isLockTimeout, () => this.store.settleFree(name, settlements))
    return Effect.map(this.bounded(free), ({ blocked, held }) => {
      this.finished = this.finished.slice(settlements.length)
      if (blocked.length > 0) {
        this.blocked.push(...blocked)
        this.blockedUntil = performance.now() + this.limits.jobBlockedMillis
      }
      const waiting = new Set<Settlement>(blocked)
      for (const settlement of settlements) {
        const { epoch, lane, outcome } = settlement
        if (waiting.has(settlement)) continue
        if (this.open.get(lane)?.epoch === epoch) this.open.delete(lane)
        if (held.has(epoch)) this.count(outcome)
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
    if (attempts > this.attemptsMax) {
      this.finish(attempt, dead("the processes that attempted it ended before it did"))
      return Effect.void
    }
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
    if (attempts >= this.attemptsMax) return dead(error)
    return again(error, backoffMillis(this.limits, attempts))
  }

  private end(attempt: Attempt, outcome: Outcome): Effect.Effect<void> {
    const change = "change" in outcome ? outcome.change : undefined
    if (change === undefined) return Effect.sync(() => this.finish(attempt, outcome))
    const settlement = settlementOf(attempt, outcome)
    const once = Effect.gen({ self: this }, function* () {
      const held = yield* new JobStore(this.sql).settle(
        this.queue.name,
        [settlement],
        this.limits.jobLockMillis
      )
      if (!held.has(attempt.epoch)) return yield* new LeaseLost()
      yield* change
    })
    // A connection that hangs must not keep its place among the few that change something.
    return this.changing
      .withPermits(1)(abandonedAfter(this.sql.withTransaction(once), this.options.attemptMillis))
      .pipe(
        // A lane that another transaction has locked is waited for without a connection, and in no other end's way.
        Effect.retry({ while: isLockTimeout, schedule: Schedule.spaced(this.limits.jobBlockedMillis) }),
        Effect.matchCause({
          onSuccess: () => this.release(attempt, () => this.count(settlement.outcome)),
          onFailure: (cause) => {
            if (Cause.squash(cause) instanceof LeaseLost) this.release(attempt, () => this.counts.late++)
            else this.leave(attempt, problemOf(cause))
          }
        })
      )
  }

  /** The attempt has failed, and may have had its effect. */
  private leave(attempt: Attempt, problem: string): void {
    const outcome = this.failed(problem, attempt.attempts)
    const settlement = settlementOf(attempt, outcome)
    this.finishWith(attempt, outcome._tag === "Again" ? { ...settlement, outcome: "left" } : settlement)
  }

  private finish(attempt: Attempt, outcome: Outcome): void {
    this.finishWith(attempt, settlementOf(attempt, outcome))
  }

  private finishWith(attempt: Attempt, settlement: Settlement): void {
    if (attempt.isFinished || this.open.get(attempt.lane) !== attempt) return
    attempt.isFinished = true
    this.finished.push(settlement)
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
    if (outcome === "again" || outcome === "left") this.counts.failed++
  }
}

const idleMinMillis = 5

const isLockTimeout = (error: unknown): boolean =>
  error instanceof SqlError && error.reason._tag === "LockTimeoutError"

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

const kindOf = {
  Done: "done",
  Dead: "dead",
  Again: "again",
  Later: "later",
  Withdrawn: "withdrawn",
  Busy: "busy"
} as const
