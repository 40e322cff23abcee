import * as Cause from "effect/Cause"
import type * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import type { Scheduler, SchedulerDispatcher } from "effect/Scheduler"
import * as Scope from "effect/Scope"
import type { ActorDefinition, ActorKey, ActorOptions, Handlers } from "./Actor.ts"
import { type ActorRefusal, ActorsStopped, TooManyActors } from "./ActorError.ts"
import type { Envelope } from "./Mailbox.ts"
import { monotonicMillis } from "./Monotonic.ts"
import { type Acquirer, type ActorCounts, Slot, type SlotHost } from "./Slot.ts"

const defaults: Required<ActorOptions> = {
  maxIdleMillis: Infinity,
  mailboxCapacity: 4096,
  maxResidentActors: 10_000,
  maxRestarts: 5,
  restartWindowMillis: 60_000
}

/** how long a closing supervisor lets its actors work off what they have taken */
const drainMillis = 10_000

export interface ActorStats extends Readonly<ActorCounts> {
  /** actors alive, starting or closing */
  readonly residents: number
  /** messages waiting in all mailboxes */
  readonly queued: number
  readonly inFlight: number
}

/** The slots of one supervisor, by key: admission, passivation and the end of all. */
export class Registry<K extends ActorKey, State, H extends Handlers, R> implements SlotHost<K, State, H, R> {
  readonly options: SlotHost<K, State, H, R>["options"]
  readonly dispatcher: SchedulerDispatcher
  readonly counts: ActorCounts = {
    handled: 0,
    refused: 0,
    crashes: 0,
    buildFailures: 0,
    escalations: 0,
    passivations: 0
  }
  isStopping = false
  readonly #context: Context.Context<R>
  readonly #clock: Clock.Clock
  readonly #slots = new Map<K, Slot<K, State, H, R>>()

  constructor(
    definition: ActorDefinition<K, State, H, unknown, R>,
    context: Context.Context<R>,
    clock: Clock.Clock,
    scheduler: Scheduler
  ) {
    this.options = { ...defaults, ...definition }
    this.dispatcher = scheduler.makeDispatcher()
    this.#context = context
    this.#clock = clock
  }

  now(): number {
    return monotonicMillis(this.#clock)
  }

  run(
    life: Effect.Effect<unknown, unknown, R | Scope.Scope>,
    scope: Scope.Scope
  ): Fiber.Fiber<unknown, unknown> {
    return Effect.runForkWith(Context.add(this.#context, Scope.Scope, scope))(life)
  }

  report(key: K, cause: Cause.Cause<unknown>): void {
    const report = Effect.logError("An actor crashed", cause)
    Effect.runForkWith(this.#context)(
      Effect.annotateLogs(report, { actor: this.options.name, key: String(key) })
    )
  }

  post(key: K, envelope: Envelope): ActorRefusal | undefined {
    return this.#counted(this.isStopping ? this.#stopped() : this.#slotOf(key).post(envelope), key)
  }

  acquire(key: K, acquirer: Acquirer): ActorRefusal | undefined {
    return this.#counted(this.isStopping ? this.#stopped() : this.#slotOf(key).acquire(acquirer), key)
  }

  withdraw(key: K, acquirer: Acquirer): void {
    this.#slots.get(key)?.withdraw(acquirer)
  }

  peek(key: K): State | undefined {
    return this.#slots.get(key)?.state
  }

  /** Passivates what has been idle for `maxIdleMillis`, and forgets crashes that no longer count. */
  sweep(): void {
    const now = this.now()
    for (const [key, slot] of this.#slots) {
      const idleMillis = slot.idleMillis(now)
      if (idleMillis !== undefined && idleMillis >= this.options.maxIdleMillis) slot.close()
      this.vacated(key)
    }
  }

  stats(): ActorStats {
    const stats = { ...this.counts, residents: 0, queued: 0, inFlight: 0 }
    for (const slot of this.#slots.values()) {
      if (!slot.isVacant) stats.residents++
      stats.queued += slot.mailbox.size
      stats.inFlight += slot.inFlightCount
    }
    return stats
  }

  /** Takes nothing new, works off what was taken within `drainMillis`, closes every actor. */
  readonly stop: Effect.Effect<void> = Effect.suspend(() => {
    this.isStopping = true
    const slots = Array.from(this.#slots.values())
    for (const slot of slots) slot.settle()
    const ended = Effect.forEach(slots, awaitVacant, { concurrency: "unbounded", discard: true })
    return Effect.flatMap(Effect.timeoutOption(ended, drainMillis), (drained) => {
      if (Option.isSome(drained)) return Effect.void
      for (const slot of slots) {
        slot.failWaiting(Cause.fail(this.#stopped()))
        slot.close()
      }
      return ended
    })
  })

  #slotOf(key: K): Slot<K, State, H, R> {
    const existing = this.#slots.get(key)
    if (existing !== undefined) return existing
    const slot = new Slot(key, this)
    this.#slots.set(key, slot)
    return slot
  }

  #stopped(): ActorsStopped {
    return new ActorsStopped({ actor: this.options.name })
  }

  #counted(refusal: ActorRefusal | undefined, key: K): ActorRefusal | undefined {
    if (refusal !== undefined) {
      this.counts.refused++
      this.vacated(key)
    }
    return refusal
  }

  /** Forgets the key where its slot has no life any more, no caller waits for one, and no crash counts. */
  vacated(key: K): void {
    if (this.#slots.get(key)?.isForgettable === true) this.#slots.delete(key)
  }

  /** Room for one more life: at the limit the longest idle one goes, and is over before the new one begins. */
  admit(): Effect.Effect<void> | TooManyActors {
    const { maxResidentActors, name } = this.options
    // The newcomer is among the slots already.
    if (this.#slots.size <= maxResidentActors) return Effect.void
    const now = this.now()
    let residents = 0
    let longest: { readonly slot: Slot<K, State, H, R>; readonly idleMillis: number } | undefined
    for (const slot of this.#slots.values()) {
      if (slot.isVacant) continue
      residents++
      const idleMillis = slot.idleMillis(now)
      if (idleMillis !== undefined && idleMillis > (longest?.idleMillis ?? -1)) longest = { slot, idleMillis }
    }
    if (residents < maxResidentActors) return Effect.void
    if (longest === undefined) return new TooManyActors({ actor: name, maxResidentActors })
    longest.slot.close()
    return longest.slot.awaitEnd()
  }
}

/** A slot with messages left begins another life: waits for the last one. */
const awaitVacant = <K extends ActorKey, State, H extends Handlers, R>(
  slot: Slot<K, State, H, R>
): Effect.Effect<void> =>
  Effect.suspend(() =>
    slot.isVacant ? Effect.void : Effect.flatMap(slot.awaitEnd(), () => awaitVacant(slot))
  )
