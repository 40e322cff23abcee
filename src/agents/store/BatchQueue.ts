import { Clock, Effect, type Exit, type Scope } from "effect"
import { isTimeoutError, type TimeoutError } from "effect/Cause"
import type { SqlError } from "effect/sql/SqlError"
import { Wakeup } from "#actors/kernel/Wakeup.ts"
import { isAway } from "#src/http/StoreAway.ts"

/** The reason why a batch failed as a whole. */
export type BatchFailure = SqlError | TimeoutError

interface BatchQueueOptions<Ask, Answer, E> {
  /** Asks Postgres for all of them at once; the answers in their order. */
  readonly run: (asks: ReadonlyArray<Ask>) => Effect.Effect<ReadonlyArray<Exit.Exit<Answer, E>>, BatchFailure>
  /** The error of all waiting asks when Postgres was away. Absent: `run` does not come back before Postgres does. */
  readonly away?: (error: BatchFailure) => E
  readonly maxAsks: number
  readonly maxBytes: number
  readonly bytesOf: (ask: Ask) => number
  /** least time between the beginnings of batches */
  readonly everyMillis: number
  /**
   * Given: an abandoned ask is dropped if it has not begun; if it may have been carried out it is handed over here.
   * Absent: every ask is carried out.
   */
  readonly onAbandon?: (ask: Ask) => void
}

interface Waiting<Ask, Answer, E> {
  readonly ask: Ask
  readonly resume: (answer: Effect.Effect<Answer, E>) => void
  hasBegun: boolean
  isDropped: boolean
}

export const make = <Ask, Answer, E>(
  options: BatchQueueOptions<Ask, Answer, E>
): Effect.Effect<BatchQueue<Ask, Answer, E>, never, Scope.Scope> =>
  Effect.tap(
    Effect.sync(() => new BatchQueue(options)),
    ({ serve }) => Effect.forkScoped(serve)
  )

/** Asks made while a batch is under way go into the next one, in their order. */
class BatchQueue<Ask, Answer, E> {
  private readonly options: BatchQueueOptions<Ask, Answer, E>
  private readonly nudge = new Wakeup()
  private readonly idlers: Array<() => void> = []
  private waiting: Array<Waiting<Ask, Answer, E>> = []
  private isServing = false

  constructor(options: BatchQueueOptions<Ask, Answer, E>) {
    this.options = options
  }

  ask(ask: Ask): Effect.Effect<Answer, E> {
    return Effect.callback<Answer, E>((resume) => {
      const entry: Waiting<Ask, Answer, E> = { ask, resume, hasBegun: false, isDropped: false }
      this.waiting.push(entry)
      this.nudge.set()
      const { onAbandon } = this.options
      if (onAbandon === undefined) return undefined
      return Effect.sync(() => {
        if (entry.hasBegun) onAbandon(ask)
        entry.isDropped = true
      })
    })
  }

  /** Returns when no ask waits. */
  readonly idle: Effect.Effect<void> = Effect.callback<void>((resume) => {
    if (this.waiting.length === 0 && !this.isServing) resume(Effect.void)
    else this.idlers.push(() => resume(Effect.void))
  })

  readonly serve: Effect.Effect<never> = Effect.suspend(() => {
    const everyMillis = this.options.everyMillis
    return Effect.forever(
      Effect.gen({ self: this }, function* () {
        if (this.waiting.length === 0) yield* this.nudge.wait(Infinity)
        const batch = this.take()
        if (batch.length === 0) return
        const beganAtMillis = yield* Clock.currentTimeMillis
        this.isServing = true
        yield* this.answer(batch)
        this.isServing = false
        if (this.waiting.length === 0) for (const idler of this.idlers.splice(0)) idler()
        const passedMillis = (yield* Clock.currentTimeMillis) - beganAtMillis
        // A clock that jumped back must not make an ask wait longer.
        const pauseMillis = Math.min(everyMillis - passedMillis, everyMillis)
        if (pauseMillis > 0) yield* Effect.sleep(pauseMillis)
      })
    )
  })

  private take(): ReadonlyArray<Waiting<Ask, Answer, E>> {
    const batch: Array<Waiting<Ask, Answer, E>> = []
    const { bytesOf, maxAsks, maxBytes } = this.options
    let bytes = 0
    let taken = 0
    for (const entry of this.waiting) {
      if (!entry.isDropped) {
        bytes += bytesOf(entry.ask)
        if (batch.length === maxAsks || (batch.length > 0 && bytes > maxBytes)) break
        entry.hasBegun = true
        batch.push(entry)
      }
      taken++
    }
    this.waiting = this.waiting.slice(taken)
    return batch
  }

  /** Asks that came while Postgres was away have waited long enough; an attempt of their own would fail as well. */
  private tellWaiting(error: E): Effect.Effect<void> {
    return Effect.sync(() => {
      for (const { resume } of this.waiting.splice(0)) resume(Effect.fail(error))
    })
  }

  /** A statement that Postgres refuses is made again for each ask alone: only the one that cannot be stored fails. */
  private answer(batch: ReadonlyArray<Waiting<Ask, Answer, E>>): Effect.Effect<void> {
    const tell = (answer: (place: number) => Effect.Effect<Answer, E>) =>
      Effect.sync(() => batch.forEach(({ resume }, place) => resume(answer(place))))
    return this.options.run(batch.map(({ ask }) => ask)).pipe(
      Effect.flatMap((answers) =>
        tell((place) => answers[place] ?? Effect.die(new Error("a batch has fewer answers than asks")))
      ),
      Effect.catch((error) => {
        const { away, onAbandon } = this.options
        if (away !== undefined && isGone(error)) {
          for (const { ask } of batch) onAbandon?.(ask)
          return Effect.andThen(
            tell(() => Effect.fail(away(error))),
            this.tellWaiting(away(error))
          )
        }
        return batch.length === 1
          ? tell(() => Effect.die(error))
          : Effect.forEach(batch, (entry) => this.answer([entry]), { discard: true })
      }),
      Effect.catchDefect((defect) => tell(() => Effect.die(defect)))
    )
  }
}

/** Postgres is away, as opposed to a refusal. */
export const isGone = (error: BatchFailure): boolean => isTimeoutError(error) || isAway(error)
