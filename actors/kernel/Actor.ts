import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"

/** The key of an actor, compared as in a Map. */
export type ActorKey = string | number | bigint

/** Each serves one kind of message. Its typed failures are replies; a defect crashes the actor. */
export type Handlers = Readonly<Record<string, (...args: never) => Effect.Effect<unknown, unknown>>>

/** A running actor: its state and its message handlers. */
export interface Actor<State, H extends Handlers> {
  /** a plain synchronous object, which a hot path may call without any fiber; not to be kept beyond that call */
  readonly state: State
  /** by the name of the message; the arguments are the message, the result is the reply */
  readonly handlers: H
}

/** An actor's handle on itself while it is built. */
export interface ActorSelf {
  /** Runs a fiber for as long as the actor lives (refill, sync, timers). If it fails or dies, the actor crashes. */
  readonly fork: (effect: Effect.Effect<void, unknown>) => Effect.Effect<void, never, Scope.Scope>
}

/** The construction and supervision of the actors of one kind. */
export interface ActorDefinition<K extends ActorKey, State, H extends Handlers, E, R> extends ActorOptions {
  /** names the kind in errors, logs and metrics: "collection-route" */
  readonly name: string
  /**
   * Makes the actor from its store. Runs again after a crash and after a passivation, never for two actors of one key
   * at the same time. Its scope closes with the actor; a finalizer saves its state. A typed failure is given to
   * everyone who waits and is not tried again by itself; a defect is a crash.
   */
  readonly build: (key: K, self: ActorSelf) => Effect.Effect<Actor<State, H>, E, R | Scope.Scope>
}

export interface ActorOptions {
  /** an actor unused for this long is passivated (at most a quarter later); default: never */
  readonly maxIdleMillis?: number
  /** messages that may wait for one actor; default 4,096 */
  readonly mailboxCapacity?: number
  /** living actors; at the limit one that is idle, the longest as far as sweeps tell, makes room; default 10,000 */
  readonly maxResidentActors?: number
  /** crashes within `restartWindowMillis` after which the actor is still restarted; default 5 */
  readonly maxRestarts?: number
  /** default one minute */
  readonly restartWindowMillis?: number
}
