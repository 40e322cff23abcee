import type * as Cause from "effect/Cause"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"

/** The key of an actor, compared as in a Map. */
export type ActorKey = string | number | bigint

/** Serves one kind of message. Its typed failures are replies; a defect crashes the actor. */
export type Handler = (...args: never) => Effect.Effect<unknown, unknown>

export type Handlers = Readonly<Record<string, Handler>>

/** A running actor: its state and its message handlers. */
export interface Actor<State, H extends Handlers> {
  /** a plain synchronous object, which a hot path may call through an `ActorHandle` without any fiber */
  readonly state: State
  /** by the name of the message; the arguments are the message, the result is the reply */
  readonly handlers: H
}

/** An actor's handle on itself while it is built. */
export interface ActorSelf {
  /** Runs a fiber for as long as the actor lives (refill, sync, timers). If it fails or dies, the actor crashes. */
  readonly fork: (effect: Effect.Effect<void, unknown>) => Effect.Effect<void, never, Scope.Scope>
}

/** The construction and supervision of the actors of one kind. Option names are those of `effect/cluster` Entity. */
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
  readonly maxIdleTime?: Duration.Input
  /** messages that may wait for one actor; default 4,096 */
  readonly mailboxCapacity?: number
  /** messages of one actor handled at once; default 1. Above 1 there is no order among them */
  readonly concurrency?: number
  /** living actors; at the limit one that is idle, the longest as far as sweeps tell, makes room; default 10,000 */
  readonly maxResidentActors?: number
  /** crashes within `restartWindow` after which the actor is still restarted; default 5 */
  readonly maxRestarts?: number
  /** default one minute */
  readonly restartWindow?: Duration.Input
  /** pauses between crash and restart; when it ends the actor is given up. Default: 50 ms, doubling up to 5 s */
  readonly defectRetryPolicy?: Schedule.Schedule<unknown, Cause.Cause<unknown>>
  /** how long a closing supervisor lets its actors work off what they have taken; default 10 s */
  readonly drainTimeout?: Duration.Input
}

/**
 * A hot path's way to an actor's state. It is good for one life of the actor: once that ends `get` answers undefined,
 * and the holder acquires again.
 */
export class ActorHandle<State> {
  #state: State | undefined
  #used = true

  constructor(state: State) {
    this.#state = state
  }

  /** The state, for a synchronous call now; not to be kept. Counts as a use, so that the actor does not become idle. */
  get(): State | undefined {
    this.#used = true
    return this.#state
  }

  get isClosed(): boolean {
    return this.#state === undefined
  }

  /** Whether it was used since the last call. For the kernel: messages are uses too, by way of `get`. */
  takeUsed(): boolean {
    const used = this.#used
    this.#used = false
    return used
  }

  /** For the kernel: the actor's life is over. */
  close(): void {
    this.#state = undefined
  }
}
