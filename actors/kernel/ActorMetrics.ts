import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import type * as Scope from "effect/Scope"
import type { ActorStats } from "./Registry.ts"

const gauges = {
  residents: Metric.gauge("signalbox_actors_resident", { description: "Actors alive" }),
  queued: Metric.gauge("signalbox_actor_messages_queued", { description: "Messages waiting in mailboxes" }),
  inFlight: Metric.gauge("signalbox_actor_messages_in_flight", { description: "Messages being handled" })
}

const counters = {
  handled: Metric.counter("signalbox_actor_messages_handled_total", { description: "Messages answered" }),
  refused: Metric.counter("signalbox_actor_messages_refused_total", { description: "Messages not taken" }),
  crashes: Metric.counter("signalbox_actor_crashes_total", { description: "Lives that ended in a defect" }),
  buildFailures: Metric.counter("signalbox_actor_build_failures_total", {
    description: "Builds that failed typed"
  }),
  escalations: Metric.counter("signalbox_actor_escalations_total", {
    description: "Times an actor was given up"
  }),
  passivations: Metric.counter("signalbox_actor_passivations_total", {
    description: "Lives ended on purpose"
  })
}

const nothing = (): void => undefined

/** Shows a supervisor's numbers on `/metrics`, read when they are asked for: a message pays nothing for them. */
export const register = (actor: string, stats: () => ActorStats): Effect.Effect<void, never, Scope.Scope> =>
  Effect.gen(function* () {
    const context = yield* Effect.context<never>()
    const labelled = Context.add(context, Metric.CurrentMetricAttributes, { actor })
    const registrations = [
      ...typedKeys(gauges).map((name) =>
        Metric.registerUnsafe(gauges[name], labelled, {
          get: () => ({ value: stats()[name] }),
          update: nothing,
          modify: nothing
        })
      ),
      ...typedKeys(counters).map((name) =>
        Metric.registerUnsafe(counters[name], labelled, {
          get: () => ({ count: stats()[name], incremental: true }),
          update: nothing,
          modify: nothing
        })
      )
    ]
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => registrations.forEach((registration) => registration.remove()))
    )
  })

const typedKeys = <A extends object>(record: A): ReadonlyArray<keyof A> =>
  Object.keys(record) as Array<keyof A & string>
