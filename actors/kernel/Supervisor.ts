import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schedule from "effect/Schedule"
import { Scheduler } from "effect/Scheduler"
import * as Scope from "effect/Scope"
import type { ActorDefinition, ActorHandle, ActorKey, ActorOptions, Handlers } from "./Actor.ts"
import type { ActorError, ActorRefusal, ActorUnavailable, RestartIntensityExceeded } from "./ActorError.ts"
import { Envelope } from "./Mailbox.ts"
import { monotonicMillis } from "./Monotonic.ts"
import { type ActorStats, Registry } from "./Registry.ts"
import * as SampledMetrics from "./SampledMetrics.ts"
import type { Acquirer } from "./Slot.ts"
import type { SlotOptions } from "./SlotHost.ts"

/** Names of the messages without an error of their own: a tell cannot report a failure. */
type TellTag<H extends Handlers> = {
  readonly [Tag in keyof H & string]: [Effect.Error<ReturnType<H[Tag]>>] extends [never] ? Tag : never
}[keyof H & string]

/** The actors of one kind, by key. An actor is built when it is first needed, by one caller for all. */
export interface Supervisor<K extends ActorKey, State, H extends Handlers, E> {
  /**
   * Sends a message and waits for its reply. Messages of one sender to one key are handled in order (`concurrency` 1). A
   * message is handled at most once. Interrupting an ask withdraws a message that has not been begun; one that has been
   * is handled to its end. An actor must not ask itself: it would wait for its own loop.
   */
  readonly ask: <Tag extends keyof H & string>(
    key: K,
    tag: Tag,
    ...args: Parameters<H[Tag]>
  ) => Effect.Effect<Effect.Success<ReturnType<H[Tag]>>, Effect.Error<ReturnType<H[Tag]>> | E | ActorError>
  /** Sends a message and goes on. It is handled at most once, and lost if the actor cannot be built or is given up. */
  readonly tell: <Tag extends TellTag<H>>(
    key: K,
    tag: Tag,
    ...args: Parameters<H[Tag]>
  ) => Effect.Effect<void, ActorRefusal>
  /** A handle for synchronous calls, as soon as the actor lives. */
  readonly acquire: (key: K) => Effect.Effect<ActorHandle<State>, E | ActorUnavailable>
  /** The handle of the actor if it lives right now. */
  readonly peek: (key: K) => ActorHandle<State> | undefined
  /**
   * Ends the actor's present life after the messages in flight, and returns when its scope is closed. Messages that wait
   * go to the next life, which reads the store anew: also the way to make an actor see a change of its configuration.
   */
  readonly passivate: (key: K) => Effect.Effect<void>
  /** Fails when an actor is given up; for owners of actors that must not be missing. */
  readonly awaitEscalation: Effect.Effect<never, RestartIntensityExceeded>
  readonly stats: () => ActorStats
}

/**
 * Supervises the actors of a definition until the scope closes: then new messages fail (`ActorsStopped`), accepted ones
 * are handled within `drainTimeout`, and every actor's scope is closed.
 */
export const make = <K extends ActorKey, State, H extends Handlers, E, R>(
  definition: ActorDefinition<K, State, H, E, R>
): Effect.Effect<Supervisor<K, State, H, E>, never, R | Scope.Scope> =>
  Effect.gen(function* () {
    const context = yield* Effect.context<R>()
    const clock = yield* Clock.Clock
    const scheduler = yield* Scheduler
    const options = optionsOf(definition.name, definition)
    const escalated = Deferred.makeUnsafe<never, RestartIntensityExceeded>()
    const registry = new Registry<K, State, H, R>({
      options,
      dispatcher: scheduler.makeDispatcher(),
      now: () => monotonicMillis(clock),
      build: definition.build,
      run: (life, scope) => Effect.runForkWith(Context.add(context, Scope.Scope, scope))(life),
      report: (key, cause) => {
        const report = Effect.logError("An actor crashed", cause)
        Effect.runForkWith(context)(Effect.annotateLogs(report, { actor: options.name, key: String(key) }))
      },
      escalate: (error) => {
        Deferred.doneUnsafe(escalated, Exit.fail(error))
      }
    })
    yield* registerMetrics(options.name, () => registry.stats())
    yield* sweepAlways(registry, options)
    yield* Effect.addFinalizer(() => registry.stop)
    return supervisorOf<K, State, H, E, R>(registry, Deferred.await(escalated))
  })

const defaultRetryPolicy = Schedule.min([Schedule.exponential("50 millis"), Schedule.spaced("5 seconds")])

const optionsOf = (name: string, options: ActorOptions): SlotOptions => ({
  name,
  maxIdleTimeMillis: Duration.toMillis(options.maxIdleTime ?? Duration.infinity),
  mailboxCapacity: options.mailboxCapacity ?? 4096,
  concurrency: options.concurrency ?? 1,
  maxResidentActors: options.maxResidentActors ?? 10_000,
  maxRestarts: options.maxRestarts ?? 5,
  restartWindowMillis: Duration.toMillis(options.restartWindow ?? "1 minute"),
  defectRetryPolicy: options.defectRetryPolicy ?? defaultRetryPolicy,
  drainTimeoutMillis: Duration.toMillis(options.drainTimeout ?? "10 seconds")
})

const supervisorOf = <K extends ActorKey, State, H extends Handlers, E, R>(
  registry: Registry<K, State, H, R>,
  awaitEscalation: Effect.Effect<never, RestartIntensityExceeded>
): Supervisor<K, State, H, E> => ({
  ask: (key, tag, ...args) =>
    Effect.callback<unknown, unknown>((resume) => {
      const envelope = new Envelope(tag, args, resume)
      const refusal = registry.post(key, envelope)
      if (refusal !== undefined) return resume(Effect.fail(refusal))
      return Effect.sync(() => {
        envelope.isWithdrawn = true
      })
      // Its type is that of the handler called `tag`; the mailbox carries messages and replies of all kinds untyped.
    }) as Effect.Effect<never>,
  tell: (key, tag, ...args) =>
    Effect.suspend(() => {
      const refusal = registry.post(key, new Envelope(tag, args, undefined))
      return refusal === undefined ? Effect.void : Effect.fail(refusal)
    }),
  acquire: (key) =>
    Effect.callback<ActorHandle<State>, unknown>((resume) => {
      const acquirer: Acquirer<State> = resume
      const refusal = registry.acquire(key, acquirer)
      if (refusal !== undefined) return resume(Effect.fail(refusal))
      return Effect.sync(() => registry.withdraw(key, acquirer))
      // The unknown part is the failure of `build`.
    }) as Effect.Effect<ActorHandle<State>>,
  peek: (key) => registry.peek(key),
  passivate: (key) => registry.passivate(key),
  awaitEscalation,
  stats: () => registry.stats()
})

const shown = [
  ["residents", "signalbox_actors_resident", "Actors alive"],
  ["queued", "signalbox_actor_messages_queued", "Messages waiting in mailboxes"],
  ["inFlight", "signalbox_actor_messages_in_flight", "Messages being handled"],
  ["handled", "signalbox_actor_messages_handled_total", "Messages answered"],
  ["refused", "signalbox_actor_messages_refused_total", "Messages not taken"],
  ["crashes", "signalbox_actor_crashes_total", "Lives that ended in a defect"],
  ["buildFailures", "signalbox_actor_build_failures_total", "Builds that failed with a typed error"],
  ["escalations", "signalbox_actor_escalations_total", "Times an actor was given up"],
  ["passivations", "signalbox_actor_passivations_total", "Lives that were ended on purpose"]
] as const

/** Shows a supervisor's numbers on `/metrics`, by the name of its actors. */
const registerMetrics = (actor: string, stats: () => ActorStats): Effect.Effect<void, never, Scope.Scope> =>
  SampledMetrics.register(
    shown.map(([field, name, description]) => [name, description, () => stats()[field]]),
    { actor }
  )

/**
 * Sweeps until the scope closes, often enough that an idle actor outstays `maxIdleTime` by a quarter at most, and at
 * least every second pass of a restart window, which is when a given-up actor without callers can be forgotten.
 */
const sweepAlways = (
  swept: { readonly sweep: () => void },
  options: { readonly maxIdleTimeMillis: number; readonly restartWindowMillis: number }
): Effect.Effect<void, never, Scope.Scope> => {
  const periodMillis = Math.max(1, Math.min(options.maxIdleTimeMillis / 4, options.restartWindowMillis))
  return Effect.sync(() => swept.sweep()).pipe(
    Effect.delay(periodMillis),
    Effect.forever,
    Effect.forkScoped,
    Effect.asVoid
  )
}
