import type * as Cause from "effect/Cause"
import type * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import type * as Schedule from "effect/Schedule"
import type { SchedulerDispatcher } from "effect/Scheduler"
import type * as Scope from "effect/Scope"
import type { Actor, ActorKey, ActorSelf, Handlers } from "./Actor.ts"
import type { RestartIntensityExceeded, TooManyActors } from "./ActorError.ts"

/** `ActorOptions` with every default filled in. */
export interface SlotOptions {
  readonly name: string
  readonly maxIdleTimeMillis: number
  readonly mailboxCapacity: number
  readonly concurrency: number
  readonly maxResidentActors: number
  readonly maxRestarts: number
  readonly restartWindowMillis: number
  readonly defectRetryPolicy: Schedule.Schedule<unknown, Cause.Cause<unknown>>
  readonly drainTimeoutMillis: number
}

/** Totals since the supervisor was made. */
export interface ActorCounts {
  /** messages answered, typed failures included */
  handled: number
  /** messages not taken */
  refused: number
  /** lives that ended in a defect */
  crashes: number
  /** typed failures of `build` */
  buildFailures: number
  /** times an actor was given up */
  escalations: number
  /** lives ended because the actor was idle, had to make room, or was asked to go */
  passivations: number
}

/** The supervisor as a slot sees it. */
export interface SlotHost<K extends ActorKey, State, H extends Handlers, R> {
  readonly options: SlotOptions
  readonly dispatcher: SchedulerDispatcher
  readonly counts: ActorCounts
  readonly now: () => number
  readonly isStopping: () => boolean
  readonly build: (key: K, self: ActorSelf) => Effect.Effect<Actor<State, H>, unknown, R | Scope.Scope>
  /** runs a life, which is given its own scope */
  readonly run: (
    life: Effect.Effect<unknown, unknown, R | Scope.Scope>,
    scope: Scope.Scope
  ) => Fiber.Fiber<unknown, unknown>
  /** makes room for one more life: the wait before it may begin, or the reason why it may not */
  readonly admit: () => Effect.Effect<void> | TooManyActors
  /** the key's slot has no life any more, and no caller waits for one */
  readonly vacated: (key: K) => void
  /** says in the log that an actor crashed */
  readonly report: (key: K, cause: Cause.Cause<unknown>) => void
  readonly escalate: (error: RestartIntensityExceeded) => void
}
