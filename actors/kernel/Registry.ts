import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { ActorHandle, ActorKey, Handlers } from "./Actor.ts"
import { type ActorRefusal, ActorsStopped, TooManyActors } from "./ActorError.ts"
import type { Envelope } from "./Mailbox.ts"
import { type Acquirer, Slot } from "./Slot.ts"
import type { ActorCounts, SlotHost, SlotOptions } from "./SlotHost.ts"

/** The part of a slot's host that the supervisor provides; the registry provides the rest. */
export type RegistryHost<K extends ActorKey, State, H extends Handlers, R> = Pick<
  SlotHost<K, State, H, R>,
  "options" | "dispatcher" | "now" | "build" | "run" | "report" | "escalate"
>

export interface ActorStats extends Readonly<ActorCounts> {
  /** actors alive, starting or closing */
  readonly residents: number
  /** messages waiting in all mailboxes */
  readonly queued: number
  readonly inFlight: number
}

/** The slots of one supervisor, by key: admission, passivation and the end of all. */
export class Registry<K extends ActorKey, State, H extends Handlers, R> {
  readonly #host: SlotHost<K, State, H, R>
  readonly #options: SlotOptions
  readonly #counts: ActorCounts = {
    handled: 0,
    refused: 0,
    crashes: 0,
    buildFailures: 0,
    escalations: 0,
    passivations: 0
  }
  readonly #slots = new Map<K, Slot<K, State, H, R>>()
  #isStopping = false

  constructor(host: RegistryHost<K, State, H, R>) {
    this.#options = host.options
    this.#host = {
      ...host,
      counts: this.#counts,
      isStopping: () => this.#isStopping,
      admit: () => this.#admit(),
      vacated: (key) => this.#forget(key)
    }
  }

  post(key: K, envelope: Envelope): ActorRefusal | undefined {
    return this.#counted(this.#isStopping ? this.#stopped() : this.#slotOf(key).post(envelope), key)
  }

  acquire(key: K, acquirer: Acquirer<State>): ActorRefusal | undefined {
    return this.#counted(this.#isStopping ? this.#stopped() : this.#slotOf(key).acquire(acquirer), key)
  }

  withdraw(key: K, acquirer: Acquirer<State>): void {
    this.#slots.get(key)?.withdraw(acquirer)
  }

  peek(key: K): ActorHandle<State> | undefined {
    return this.#slots.get(key)?.handle
  }

  passivate(key: K): Effect.Effect<void> {
    return Effect.suspend(() => {
      const slot = this.#slots.get(key)
      if (slot === undefined) return Effect.void
      slot.retire()
      return slot.awaitEnd()
    })
  }

  /** Passivates what has been idle for `maxIdleTime`, and forgets crashes that no longer count. */
  sweep(): void {
    const now = this.#host.now()
    for (const [key, slot] of this.#slots) {
      const idleMillis = slot.idleMillis(now)
      if (idleMillis !== undefined && idleMillis >= this.#options.maxIdleTimeMillis) slot.close()
      this.#forget(key)
    }
  }

  stats(): ActorStats {
    const stats = { ...this.#counts, residents: 0, queued: 0, inFlight: 0 }
    for (const slot of this.#slots.values()) {
      if (!slot.isVacant) stats.residents++
      stats.queued += slot.mailbox.size
      stats.inFlight += slot.inFlightCount
    }
    return stats
  }

  /** Takes nothing new, works off what was taken within `drainTimeout`, closes every actor. */
  readonly stop: Effect.Effect<void> = Effect.suspend(() => {
    this.#isStopping = true
    const slots = Array.from(this.#slots.values())
    for (const slot of slots) slot.settle()
    const ended = Effect.forEach(slots, awaitVacant, { concurrency: "unbounded", discard: true })
    return Effect.flatMap(Effect.timeoutOption(ended, this.#options.drainTimeoutMillis), (drained) => {
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
    const slot = new Slot(key, this.#host)
    this.#slots.set(key, slot)
    return slot
  }

  #stopped(): ActorsStopped {
    return new ActorsStopped({ actor: this.#options.name })
  }

  #counted(refusal: ActorRefusal | undefined, key: K): ActorRefusal | undefined {
    if (refusal !== undefined) {
      this.#counts.refused++
      this.#forget(key)
    }
    return refusal
  }

  #forget(key: K): void {
    if (this.#slots.get(key)?.isForgettable === true) this.#slots.delete(key)
  }

  /** Room for one more life: at the limit the longest idle one goes, and is over before the new one begins. */
  #admit(): Effect.Effect<void> | TooManyActors {
    const { maxResidentActors, name } = this.#options
    // The newcomer is among the slots already.
    if (this.#slots.size <= maxResidentActors) return Effect.void
    const now = this.#host.now()
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
