import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { Scheduler } from "effect/Scheduler"
import type * as Scope from "effect/Scope"
import type { ActorDefinition, ActorKey, Handlers } from "./Actor.ts"
import type { ActorError, ActorUnavailable } from "./ActorError.ts"
import { Envelope } from "./Mailbox.ts"
import { type ActorStats, Registry } from "./Registry.ts"
import * as SampledMetrics from "./SampledMetrics.ts"
import type { Acquirer } from "./Slot.ts"

/** The actors of one kind, by key. An actor is built when it is first needed, by one caller for all. */
export interface Supervisor<K extends ActorKey, State, H extends Handlers, E> {
  /**
   * Sends a message and waits for its reply. Messages of one sender to one key are handled in order. A
   * message is handled at most once. Interrupting an ask withdraws a message that has not been begun; one that has been
   * is handled to its end. An actor must not ask itself: it would wait for its own loop.
   */
  readonly ask: <Tag extends keyof H & string>(
    key: K,
    tag: Tag,
    ...args: Parameters<H[Tag]>
  ) => Effect.Effect<Effect.Success<ReturnType<H[Tag]>>, Effect.Error<ReturnType<H[Tag]>> | E | ActorError>
  /** The actor's state for a synchronous call now, as soon as the actor lives; not to be kept. Counts as a use. */
  readonly acquire: (key: K) => Effect.Effect<State, E | ActorUnavailable>
  /** The same where the actor lives right now; else undefined. */
  readonly peek: (key: K) => State | undefined
  readonly stats: () => ActorStats
}

/**
 * Supervises the actors of a definition until the scope closes: then new messages fail (`ActorsStopped`), accepted ones
 * are handled within 10 s, and every actor's scope is closed.
 */
export const make = <K extends ActorKey, State extends object, H extends Handlers, E, R>(
  definition: ActorDefinition<K, State, H, E, R>
): Effect.Effect<Supervisor<K, State, H, E>, never, R | Scope.Scope> =>
  Effect.gen(function* () {
    const registry = new Registry(
      definition,
      yield* Effect.context<R>(),
      yield* Clock.Clock,
      yield* Scheduler
    )
    yield* registerMetrics(definition.name, () => registry.stats())
    yield* sweepAlways(registry)
    yield* Effect.addFinalizer(() => registry.stop)
    return supervisorOf<K, State, H, E, R>(registry)
  })

const supervisorOf = <K extends ActorKey, State, H extends Handlers, E, R>(
  registry: Registry<K, State, H, R>
): Supervisor<K, State, H, E> => {
  const acquire = (key: K): Effect.Effect<State, unknown> =>
    Effect.callback<void, unknown>((resume) => {
      const acquirer: Acquirer = resume
      const refusal = registry.acquire(key, acquirer)
      if (refusal !== undefined) return resume(Effect.fail(refusal))
      return Effect.sync(() => registry.withdraw(key, acquirer))
    }).pipe(
      Effect.flatMap(() => {
        const state = registry.peek(key)
        // Passivated between being built and being asked: the next one is.
        return state === undefined ? acquire(key) : Effect.succeed(state)
      })
    )
  return {
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
    // The unknown part is the failure of `build`.
    acquire: acquire as (key: K) => Effect.Effect<State>,
    peek: (key) => registry.peek(key),
    stats: () => registry.stats()
  }
}

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
 * Sweeps until the scope closes, often enough that an idle actor outstays `maxIdleMillis` by a quarter at most, and at
 * least every second pass of a restart window, which is when a given-up actor without callers can be forgotten.
 */
const sweepAlways = <K extends ActorKey, State, H extends Handlers, R>(registry: Registry<K, State, H, R>) =>
  Effect.sync(() => registry.sweep()).pipe(
    Effect.delay(
      Math.max(1, Math.min(registry.options.maxIdleMillis / 4, registry.options.restartWindowMillis))
    ),
    Effect.forever,
    Effect.forkScoped
  )
