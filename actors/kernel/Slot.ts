import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Pull from "effect/Pull"
import * as Schedule from "effect/Schedule"
import * as Scope from "effect/Scope"
import { type Actor, ActorHandle, type ActorKey, type ActorSelf, type Handlers } from "./Actor.ts"
import {
  ActorCrashed,
  type ActorRefusal,
  ActorsStopped,
  MailboxFull,
  RestartIntensityExceeded,
  type TooManyActors
} from "./ActorError.ts"
import { type Envelope, Mailbox } from "./Mailbox.ts"
import type { SlotHost } from "./SlotHost.ts"

/** Continues a caller that waits for a handle. */
export type Acquirer<State> = (exit: Exit.Exit<ActorHandle<State>, unknown>) => void

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
  readonly #restarts: RestartIntensity
  #phase: "vacant" | "starting" | "serving" | "closing" = "vacant"
  #handle: ActorHandle<State> | undefined
  #fiber: Fiber.Fiber<unknown, unknown> | undefined
  #scope: Scope.Closeable | undefined
  /** why a fiber of the actor's own ended it */
  #crash: Cause.Cause<unknown> | undefined
  /** to end this life as soon as no message is in flight */
  #isRetiring = false
  /** this life was ended on purpose */
  #isClosed = false
  #inFlight = new Set<Envelope>()
  #acquirers: Array<Acquirer<State>> = []
  #nextPause: ((cause: Cause.Cause<unknown>) => Effect.Effect<unknown>) | undefined
  #usedAt = 0

  constructor(key: K, host: SlotHost<K, State, H, R>) {
    this.key = key
    this.#host = host
    this.mailbox = new Mailbox(host.options.mailboxCapacity, host.dispatcher)
    this.#restarts = new RestartIntensity(host.options.maxRestarts, host.options.restartWindowMillis)
  }

  /** The handle of the present life, or undefined when there is none right now. */
  get handle(): ActorHandle<State> | undefined {
    return this.#handle
  }

  get isVacant(): boolean {
    return this.#phase === "vacant"
  }

  /** Nothing here that would be missed: neither an actor nor a crash that still counts. */
  get isForgettable(): boolean {
    return this.isVacant && this.#restarts.isCalm(this.#host.now())
  }

  get inFlightCount(): number {
    return this.#inFlight.size
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

  /** Continues the acquirer with the handle of the present or next life, or says why not. */
  acquire(acquirer: Acquirer<State>): ActorRefusal | undefined {
    if (this.#handle !== undefined) {
      acquirer(Exit.succeed(this.#handle))
      return undefined
    }
    const admission = this.isVacant ? this.#admission() : undefined
    if (admission !== undefined && !Effect.isEffect(admission)) return admission
    this.#acquirers.push(acquirer)
    if (admission !== undefined) this.#start(admission)
    return undefined
  }

  withdraw(acquirer: Acquirer<State>): void {
    this.#acquirers = this.#acquirers.filter((other) => other !== acquirer)
  }

  /** Ends this life once the messages in flight are done; the ones that wait go to the next life. */
  retire(): void {
    if (this.#phase === "vacant" || this.#phase === "closing") return
    this.#isRetiring = true
    this.settle()
  }

  /** Milliseconds since it was last used, as far as this was asked in between; undefined unless it has nothing to do. */
  idleMillis(nowMillis: number): number | undefined {
    if (this.#phase !== "serving" || this.#inFlight.size > 0 || this.mailbox.size > 0) return undefined
    if (this.#handle?.takeUsed() === true) this.#usedAt = nowMillis
    return nowMillis - this.#usedAt
  }

  /** Closes the actor where it has nothing to do and is to go. */
  settle(): void {
    if (this.#inFlight.size > 0) return
    const isLeaving = this.#isRetiring && this.#phase === "serving"
    if (isLeaving || (this.#host.isStopping() && !this.#isAwaited)) this.close()
  }

  /** Ends the life now. Messages in flight, if any, are interrupted and fail with `ActorsStopped`. */
  close(): void {
    if (this.#phase === "vacant" || this.#phase === "closing") return
    this.#phase = "closing"
    this.#isClosed = true
    this.#dropHandle()
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
    for (const envelope of waiting) envelope.reply?.(exit)
  }

  get #isAwaited(): boolean {
    return this.mailbox.size > 0 || this.#acquirers.length > 0
  }

  /** The wait of a vacant slot before its next life, or the reason why there is none. */
  #admission(): Effect.Effect<void> | RestartIntensityExceeded | TooManyActors {
    return this.#restarts.mayStart(this.#host.now()) ? this.#host.admit() : this.#intensityExceeded()
  }

  #start(before: Effect.Effect<unknown>): void {
    this.#phase = "starting"
    this.#crash = undefined
    this.#isRetiring = false
    this.#isClosed = false
    const scope = Scope.makeUnsafe()
    this.#scope = scope
    const life = Effect.suspend(() => {
      // Known from inside: a life may come to its end before `run` returns.
      this.#fiber = Fiber.getCurrent()
      return before
    }).pipe(
      Effect.andThen(Effect.suspend(() => this.#host.build(this.key, this.#selfIn(scope)))),
      Effect.flatMap((actor) => this.#serve(actor)),
      Effect.onExit((exit) => {
        this.#phase = "closing"
        this.#dropHandle()
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
    const handle = new ActorHandle(actor.state)
    this.#handle = handle
    this.#phase = "serving"
    const acquirers = this.#acquirers
    this.#acquirers = []
    for (const acquirer of acquirers) acquirer(Exit.succeed(handle))
    this.settle()
    const loop = Effect.forever(
      Effect.suspend(() => {
        if (this.#phase !== "serving") return Effect.never
        const envelope = this.mailbox.poll()
        return envelope === undefined
          ? this.mailbox.awaitMessage
          : this.#handleMessage(actor.handlers, envelope)
      }),
      { disableYield: true }
    )
    const { concurrency } = this.#host.options
    if (concurrency === 1) return loop
    return Effect.all(
      Array.from({ length: concurrency }, () => loop),
      { concurrency: "unbounded", discard: true }
    )
  }

  #handleMessage(handlers: H, envelope: Envelope): Effect.Effect<void> {
    this.#inFlight.add(envelope)
    this.#handle?.get()
    const handler = handlers[envelope.tag] as (
      ...args: ReadonlyArray<unknown>
    ) => Effect.Effect<unknown, unknown>
    return Effect.flatMap(Effect.exit(Effect.suspend(() => handler(...envelope.args))), (exit) => {
      if (Exit.isFailure(exit) && !isTypedFailure(exit.cause)) return Effect.failCause(toDefect(exit.cause))
      this.#inFlight.delete(envelope)
      this.#host.counts.handled++
      envelope.reply?.(exit)
      this.settle()
      return Effect.void
    })
  }

  /** The life is over and its scope closed: decides what comes next, then answers the messages that were in flight. */
  #ended(exit: Exit.Exit<unknown, unknown>): void {
    const inFlight = this.#inFlight
    this.#inFlight = new Set()
    this.#phase = "vacant"
    const cause = this.#crash ?? (Exit.isFailure(exit) ? exit.cause : Cause.empty)
    const { name } = this.#host.options
    if (Cause.hasInterruptsOnly(cause)) {
      this.#host.counts.passivations++
      this.#next(Effect.void)
      for (const envelope of inFlight) envelope.reply?.(Exit.fail(new ActorsStopped({ actor: name })))
      return
    }
    if (this.#crash === undefined && isTypedFailure(cause)) {
      this.#host.counts.buildFailures++
      this.failWaiting(cause)
      return this.#host.vacated(this.key)
    }
    this.#crashed(cause)
    const failure = Exit.fail(
      new ActorCrashed({ actor: name, key: String(this.key), cause: Cause.squash(cause) })
    )
    for (const envelope of inFlight) envelope.reply?.(failure)
  }

  #crashed(cause: Cause.Cause<unknown>): void {
    const now = this.#host.now()
    this.#host.counts.crashes++
    this.#host.report(this.key, cause)
    if (this.#restarts.isCalm(now)) this.#nextPause = undefined
    this.#restarts.crashed(now)
    if (this.#restarts.mayStart(now)) return this.#next(this.#pause(cause))
    const error = this.#intensityExceeded()
    this.#host.counts.escalations++
    this.#host.escalate(error)
    this.failWaiting(Cause.fail(error))
    this.#host.vacated(this.key)
  }

  /** Begins the next life: after a crash always, after a life that was ended on purpose if a caller waits for it. */
  #next(before: Effect.Effect<unknown>): void {
    if (!this.#isAwaited && (this.#isClosed || this.#host.isStopping())) return this.#host.vacated(this.key)
    const admission = this.#host.admit()
    if (Effect.isEffect(admission)) return this.#start(Effect.andThen(admission, before))
    this.failWaiting(Cause.fail(admission))
    this.#host.vacated(this.key)
  }

  #pause(cause: Cause.Cause<unknown>): Effect.Effect<unknown> {
    if (this.#nextPause !== undefined) return this.#nextPause(cause)
    return Effect.flatMap(Schedule.toStepWithSleep(this.#host.options.defectRetryPolicy), (step) => {
      this.#nextPause = (cause) => Pull.catchDone(step(cause), () => Effect.void)
      return this.#nextPause(cause)
    })
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

  #dropHandle(): void {
    this.#handle?.close()
    this.#handle = undefined
  }
}

const isTypedFailure = (cause: Cause.Cause<unknown>): boolean =>
  cause.reasons.length > 0 && cause.reasons.every(Cause.isFailReason)

/** A handler that interrupts itself has no reply to give, which is as much a fault as a throw. */
const toDefect = (cause: Cause.Cause<unknown>): Cause.Cause<never> =>
  Cause.die(
    Cause.hasInterruptsOnly(cause) ? new Error("A message handler interrupted itself") : Cause.squash(cause)
  )

/** Counts crashes in a sliding window, to tell a fault that passes from one that stays. */
class RestartIntensity {
  readonly #maxRestarts: number
  readonly #windowMillis: number
  /** oldest first; at most `maxRestarts + 1` of them matter */
  #crashedAt: ReadonlyArray<number> = []

  constructor(maxRestarts: number, windowMillis: number) {
    this.#maxRestarts = maxRestarts
    this.#windowMillis = windowMillis
  }

  crashed(nowMillis: number): void {
    this.#crashedAt = [...this.#recent(nowMillis), nowMillis].slice(-(this.#maxRestarts + 1))
  }

  mayStart(nowMillis: number): boolean {
    return this.#recent(nowMillis).length <= this.#maxRestarts
  }

  isCalm(nowMillis: number): boolean {
    return this.#recent(nowMillis).length === 0
  }

  #recent(nowMillis: number): ReadonlyArray<number> {
    const oldest = this.#crashedAt[0]
    // Almost every actor has never crashed: don't copy an empty list.
    if (oldest === undefined || nowMillis - oldest < this.#windowMillis) return this.#crashedAt
    return this.#crashedAt.filter((at) => nowMillis - at < this.#windowMillis)
  }
}
