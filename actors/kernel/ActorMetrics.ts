import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { ActorStats } from "./Registry.ts"
import * as SampledMetrics from "./SampledMetrics.ts"

const shown = [
  ["residents", "gauge", "signalbox_actors_resident", "Actors alive"],
  ["queued", "gauge", "signalbox_actor_messages_queued", "Messages waiting in mailboxes"],
  ["inFlight", "gauge", "signalbox_actor_messages_in_flight", "Messages being handled"],
  ["handled", "counter", "signalbox_actor_messages_handled_total", "Messages answered"],
  ["refused", "counter", "signalbox_actor_messages_refused_total", "Messages not taken"],
  ["crashes", "counter", "signalbox_actor_crashes_total", "Lives that ended in a defect"],
  [
    "buildFailures",
    "counter",
    "signalbox_actor_build_failures_total",
    "Builds that failed with a typed error"
  ],
  ["escalations", "counter", "signalbox_actor_escalations_total", "Times an actor was given up"],
  ["passivations", "counter", "signalbox_actor_passivations_total", "Lives that were ended on purpose"]
] as const

/** Shows a supervisor's numbers on `/metrics`, by the name of its actors. */
export const register = (actor: string, stats: () => ActorStats): Effect.Effect<void, never, Scope.Scope> =>
  SampledMetrics.register(
    shown.map(([field, kind, name, description]) => ({
      kind,
      name,
      description,
      read: () => stats()[field]
    })),
    { actor }
  )
