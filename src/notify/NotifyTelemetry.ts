import { Clock, Effect, Layer, Schedule } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import * as SampledMetrics from "#actors/kernel/SampledMetrics.ts"
import { AppConfig } from "#src/Config.ts"
import { type ComponentState, degraded, Readiness, up } from "#src/infra/telemetry/Readiness.ts"

interface Counted {
  readonly waiting: number
  /** how long the delivery has been due whose turn is overdue longest */
  readonly lateSeconds: number
  readonly held: number
  readonly dead: number
}

const nothing: Counted = { waiting: 0, lateSeconds: 0, held: 0, dead: 0 }

/** Deliveries on `/metrics`, and on `/readyz` where they are late. Those of all processes, counted every few seconds. */
export const telemetry = Layer.effectDiscard(
  Effect.gen(function* () {
    const { limits } = yield* AppConfig
    const { register } = yield* Readiness
    const sql = yield* SqlClient
    let counted = nothing
    let countedAt = yield* Clock.currentTimeMillis

    const count = sql<Counted>`SELECT * FROM
        (SELECT coalesce(sum(waiting), 0)::float8 AS waiting,
          greatest(coalesce(extract(epoch FROM jobs_now() - min(due_at)), 0), 0)::float8 AS "lateSeconds"
          FROM job_lanes WHERE queue = 'deliveries' AND due_at < 'infinity') AS lanes,
        (SELECT count(*)::float8 AS held FROM deliveries WHERE held_until IS NOT NULL) AS held,
        (SELECT count(*)::float8 AS dead FROM jobs_ended WHERE queue = 'deliveries' AND outcome = 'dead') AS dead`.pipe(
      Effect.flatMap(([row = nothing]) =>
        Effect.map(Clock.currentTimeMillis, (now) => {
          counted = row
          countedAt = now
        })
      ),
      Effect.catch((error) => Effect.logDebug("deliveries were not counted", error))
    )
    yield* Effect.forkScoped(Effect.repeat(count, Schedule.spaced(limits.deliveriesCountedEveryMillis)))

    yield* register(
      "notify",
      Effect.map(Clock.currentTimeMillis, (now): ComponentState => {
        // Counts that fail say that Postgres is away: what is known grows old.
        const unknownMillis = now - countedAt
        if (unknownMillis > limits.deliveriesLateMillis)
          return degraded(`deliveries were not counted for ${Math.round(unknownMillis / 1_000)} s`)
        const { lateSeconds } = counted
        return lateSeconds * 1_000 > limits.deliveriesLateMillis
          ? degraded(`a delivery has been due for ${Math.round(lateSeconds)} s and was not begun`)
          : up
      })
    )
    yield* SampledMetrics.register([
      ["signalbox_notify_waiting", "Deliveries that wait for their turn", () => counted.waiting],
      ["signalbox_notify_held", "Deliveries that are held for a digest", () => counted.held],
      ["signalbox_notify_dead", "Deliveries that were given up and are kept", () => counted.dead],
      [
        "signalbox_notify_oldest_waiting_seconds",
        "Time for which the delivery that is due longest has waited",
        () => counted.lateSeconds
      ]
    ])
  })
)
