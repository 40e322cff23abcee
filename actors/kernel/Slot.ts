import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type { SchedulerDispatcher } from "effect/Scheduler"
import * as Scope from "effect/Scope"
import type { Actor, ActorDefinition, ActorKey, ActorOptions, ActorSelf, Handlers } from "./Actor.ts"
import {
  ActorCrashed,
  type ActorRefusal,
  ActorsStopped,
  MailboxFull,
  RestartIntensityExceeded,
  type TooManyActors
} from "./ActorError.ts"
import { type Envelope, Mailbox } from "./Mailbox.ts"

/** Continues a caller that waits for the actor to live. */
export type Acquirer = (exit: Exit.Exit<void, unknown>) => void

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
  /** lives ended because the actor was idle or had to make room */
  passivations: number
}

/** A supervisor's registry as its slots see it. */
export interface SlotHost<K extends ActorKey, State, H extends Handlers, R> {
  readonly options: Required<ActorOptions> & ActorDefinition<K, State, H, unknown, R>
  readonly dispatcher: SchedulerDispatcher
  readonly counts: ActorCounts
  readonly isStopping: boolean
  now(): number
  /** runs a life, which is given its own scope */
  run(
    life: Effect.Effect<unknown, unknown, R | Scope.Scope>,
    scope: Scope.Scope
  ): Fiber.Fiber<unknown, unknown>
  /** makes room for one more life: the wait before it may begin, or the reason why it may not */
  admit(): Effect.Effect<void> | TooManyActors
  /** the key's slot has no life any more, and no caller waits for one */
  vacated(key: K): void
  /** says in the log that an actor crashed */
  report(key: K, cause: Cause.Cause<unknown>): void
}

/** between crash and restart: at first, doubling with each crash of a window, and at most */
const pauseMillis = { first: 50, max: 5_000 }

/**
 * A key's place in its supervisor, over all lives of its actor:
 *
 *     vacant -> starting -> serving -> closing -> vacant, or starting again when messages came meanwhile
 *                  ^________ crash _______|
 *
 * One fiber spans a life: it builds the actor, serves the mailbox, and closes the actor's scope. The mailbox and the
 * crashes of the past belong to the slot. Everything that changes a slot is synchronous, so nothing comes in between.
 */
export class Slot<K extends ActorKey, State, H extends Handlers, R> {
  readonly key: K
  readonly mailbox: Mailbox
  readonly #host: SlotHost<K, State, H, R>
  #phase: "vacant" | "starting" | "serving" | "closing" = "vacant"
  #state: State | undefined
  /** whether the state was read or a message begun since `idleMillis` was last asked */
  #isUsed = false
  #fiber: Fiber.Fiber<unknown, unknown> | undefined
  #scope: Scope.Closeable | undefined
  /** why a fiber of the actor's own ended it */
  #crash: Cause.Cause<unknown> | undefined
  /** this life was ended on purpose */
  #isClosed = false
  #inFlight: Envelope | undefined
  #acquirers: Array<Acquirer> = []
  /** oldest first; those that have left the window are dropped when it is next read */
  #crashedAt: ReadonlyArray<number> = []
  #pauseMillis = pauseMillis.first
  #usedAt = 0

  constructor(key: K, host: SlotHost<K, State, H, R>) {
    this.key = key
    this.#host = host
    this.mailbox = new Mailbox(host.options.mailboxCapacity, host.dispatcher)
  }

  /** The state of the present life, or undefined when there is none right now. Counts as a use. */
  get state(): State | undefined {
    this.#isUsed = true
    return this.#state
  }

  get isVacant(): boolean {
    return this.#phase === "vacant"
  }

  /** Nothing here that would be missed: neither an actor nor a crash that still counts. */
  get isForgettable(): boolean {
    return this.isVacant && this.#recentCrashes().length === 0
  }

  get inFlightCount(): number {
    return this.#inFlight === undefined ? 0 : 1
  }

  /** Resolves at the end of the present life, or at once when there is none. */
  awaitEnd(): Effect.Effect<void> {
    return this.#fiber === undefined || this.isVacant ? Effect.void : Effect.asVoid(Fiber.await(this.#fiber))
  }

  /** Takes a message, waking the actor if need be, or says why not. */
  post(envelope: Envelope): ActorRefusal | undefined {
    const admission = this.isVacant ? this.#admission() : undefined
    if (admission !== undefined && !Effect.isEffect(admission)) return admission
    if (!this.mailbox.offer(envelope)) {
      const { name, mailboxCapacity } = this.#host.options
      return new MailboxFull({ actor: name, key: String(this.key), mailboxCapacity })
    }
    // After the offer: a life whose build is synchronous may be over when this returns.
    if (admission !== undefined) this.#start(admission)
    return undefined
  }

  /** Continues the acquirer once the present or next life serves, or says why not. */
  acquire(acquirer: Acquirer): ActorRefusal | undefined {
    if (this.#state !== undefined) {
      acquirer(Exit.void)
      return undefined
    }
    const admission = this.isVacant ? this.#admission() : undefined
    if (admission !== undefined && !Effect.isEffect(admission)) return admission
    this.#acquirers.push(acquirer)
    if (admission !== undefined) this.#start(admission)
    return undefined
  }

  withdraw(acquirer: Acquirer): void {
    this.#acquirers = this.#acquirers.filter((other) => other !== acquirer)
  }

  /** Milliseconds since it was last used, as far as this was asked in between; undefined unless it has nothing to do. */
  idleMillis(nowMillis: number): number | undefined {
    if (this.#phase !== "serving" || this.#inFlight !== undefined || this.mailbox.size > 0) return undefined
    if (this.#isUsed) this.#usedAt = nowMillis
    this.#isUsed = false
    return nowMillis - this.#usedAt
  }

  /** Closes the actor where it has nothing to do and its supervisor is closing. */
  settle(): void {
    if (this.#inFlight === undefined && this.#host.isStopping && !this.#isAwaited) this.close()
  }

  /** Ends the life now. A message in flight is interrupted and fails with `ActorsStopped`. */
  close(): void {
    if (this.#phase === "vacant" || this.#phase === "closing") return
    this.#phase = "closing"
    this.#isClosed = true
    this.#state = undefined
    this.#fiber?.interruptUnsafe()
  }

  /** Answers everyone who waits and has not been begun. */
  failWaiting(cause: Cause.Cause<unknown>): void {
    const exit = Exit.failCause(cause)
    const acquirers = this.#acquirers
    this.#acquirers = []
    const waiting: Array<Envelope> = []
    for (let next = this.mailbox.poll(); next !== undefined; next = this.mailbox.poll()) waiting.push(next)
    // Answered last: a caller that learns of the failure may ask again at once, and that is a new message.
    for (const acquirer of acquirers) acquirer(exit)
    for (const envelope of waiting) envelope.reply(exit)
  }

  get #isAwaited(): boolean {
    return this.mailbox.size > 0 || this.#acquirers.length > 0
  }

  /** The wait of a vacant slot before its next life, or the reason why there is none. */
  #admission(): Effect.Effect<void> | RestartIntensityExceeded | TooManyActors {
    return this.#mayStart() ? this.#host.admit() : this.#intensityExceeded()
  }

  #start(before: Effect.Effect<unknown>): void {
    this.#phase = "starting"
    this.#crash = undefined
    this.#isClosed = false
    const scope = Scope.makeUnsafe()
    this.#scope = scope
    const life = Effect.suspend(() => {
      // Known from inside: a life may come to its end before `run` returns.
      this.#fiber = Fiber.getCurrent()
      return before
    }).pipe(
      Effect.andThen(Effect.suspend(() => this.#host.options.build(this.key, this.#selfIn(scope)))),
      Effect.flatMap((actor) => this.#serve(actor)),
      Effect.onExit((exit) => {
        this.#phase = "closing"
        this.#state = undefined
        return Scope.close(scope, exit)
      })
    )
    this.#host.run(life, scope).addObserver((exit) => this.#ended(exit))
  }

  /** The `self` that `build` gets for one life. */
  #selfIn(scope: Scope.Scope): ActorSelf {
    return {
      fork: (effect) =>
        Effect.map(Effect.forkScoped(effect), (fiber) => {
          fiber.addObserver((exit) => {
            // Interruption is how the scope ends its fibers; and a fiber of an earlier life is no concern of this one.
            if (Exit.isSuccess(exit) || Cause.hasInterruptsOnly(exit.cause) || scope !== this.#scope) return
            this.#crash ??= exit.cause
            this.#fiber?.interruptUnsafe()
          })
        })
    }
  }

  #serve(actor: Actor<State, H>): Effect.Effect<void> {
    this.#state = actor.state
    this.#isUsed = true
    this.#phase = "serving"
    const acquirers = this.#acquirers
    this.#acquirers = []
    for (const acquirer of acquirers) acquirer(Exit.void)
    this.settle()
    return Effect.forever(
      Effect.suspend(() => {
        if (this.#phase !== "serving") return Effect.never
        const envelope = this.mailbox.poll()
        return envelope === undefined
          ? this.mailbox.awaitMessage
          : this.#handleMessage(actor.handlers, envelope)
      }),
      { disableYield: true }
    )
  }

  #handleMessage(handlers: H, envelope: Envelope): Effect.Effect<void> {
    this.#inFlight = envelope
    this.#isUsed = true
    const handler = handlers[envelope.tag] as (
      ...args: ReadonlyArray<unknown>
    ) => Effect.Effect<unknown, unknown>
    return Effect.flatMap(Effect.exit(Effect.suspend(() => handler(...envelope.args))), (exit) => {
      if (Exit.isFailure(exit) && !isTypedFailure(exit.cause)) return Effect.failCause(toDefect(exit.cause))
      this.#inFlight = undefined
      this.#host.counts.handled++
      envelope.reply(exit)
      this.settle()
      return Effect.void
    })
  }

  /** The life is over and its scope closed: decides what comes next, then answers the message that was in flight. */
  #ended(exit: Exit.Exit<unknown, unknown>): void {
    const inFlight = this.#inFlight
    this.#inFlight = undefined
    this.#phase = "vacant"
    const cause = this.#crash ?? (Exit.isFailure(exit) ? exit.cause : Cause.empty)
    const { name } = this.#host.options
    if (Cause.hasInterruptsOnly(cause)) {
      this.#host.counts.passivations++
      this.#next(Effect.void)
      inFlight?.reply(Exit.fail(new ActorsStopped({ actor: name })))
      return
    }
    if (this.#crash === undefined && isTypedFailure(cause)) {
      this.#host.counts.buildFailures++
      this.failWaiting(cause)
      return this.#host.vacated(this.key)
    }
    this.#crashed(cause)
    inFlight?.reply(
      Exit.fail(new ActorCrashed({ actor: name, key: String(this.key), cause: Cause.squash(cause) }))
    )
  }

  #crashed(cause: Cause.Cause<unknown>): void {
    this.#host.counts.crashes++
    this.#host.report(this.key, cause)
    const recent = this.#recentCrashes()
    if (recent.length === 0) this.#pauseMillis = pauseMillis.first
    // One more than the restarts that are allowed is all that matters.
    this.#crashedAt = [...recent, this.#host.now()].slice(-(this.#host.options.maxRestarts + 1))
    if (this.#mayStart()) {
      const pause = Effect.sleep(this.#pauseMillis)
      this.#pauseMillis = Math.min(this.#pauseMillis * 2, pauseMillis.max)
      return this.#next(pause)
    }
    this.#host.counts.escalations++
    this.failWaiting(Cause.fail(this.#intensityExceeded()))
    this.#host.vacated(this.key)
  }

  #mayStart(): boolean {
    return this.#recentCrashes().length <= this.#host.options.maxRestarts
  }

  #recentCrashes(): ReadonlyArray<number> {
    // Almost every actor has never crashed: read no clock and copy no empty list.
    if (this.#crashedAt.length === 0) return this.#crashedAt
    const since = this.#host.now() - this.#host.options.restartWindowMillis
    this.#crashedAt = this.#crashedAt.filter((at) => at > since)
    return this.#crashedAt
  }

  /** Begins the next life: after a crash always, after a life that was ended on purpose if a caller waits for it. */
  #next(before: Effect.Effect<unknown>): void {
    if (!this.#isAwaited && (this.#isClosed || this.#host.isStopping)) return this.#host.vacated(this.key)
    const admission = this.#host.admit()
    if (Effect.isEffect(admission)) return this.#start(Effect.andThen(admission, before))
    this.failWaiting(Cause.fail(admission))
    this.#host.vacated(this.key)
  }

  #intensityExceeded(): RestartIntensityExceeded {
    const { maxRestarts, name, restartWindowMillis } = this.#host.options
    return new RestartIntensityExceeded({
      actor: name,
      key: String(this.key),
      maxRestarts,
      restartWindowMillis
    })
  }
}

const isTypedFailure = (cause: Cause.Cause<unknown>): boolean =>
  cause.reasons.length > 0 && cause.reasons.every(Cause.isFailReason)

/** A handler that interrupts itself has no reply to give, which is as much a fault as a throw. */
const toDefect = (cause: Cause.Cause<unknown>): Cause.Cause<never> =>
  Cause.die(
    Cause.hasInterruptsOnly(cause) ? new Error("A message handler interrupted itself") : Cause.squash(cause)
  )
