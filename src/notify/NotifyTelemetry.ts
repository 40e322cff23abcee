import { Effect, Layer, Schedule } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import * as SampledMetrics from "#actors/kernel/SampledMetrics.ts"
import { AppConfig } from "#src/Config.ts"
import { Jobs } from "#src/infra/jobs/Jobs.ts"
import { type ComponentState, degraded, Readiness, up } from "#src/infra/telemetry/Readiness.ts"
import { deliveries } from "./delivery/Deliveries.ts"

/** Deliveries on `/metrics`, and on `/readyz` where they are late: those of all processes, mostly as their jobs are counted. */
export const telemetry = Layer.effectDiscard(
  Effect.gen(function* () {
    const { limits } = yield* AppConfig
    const { register } = yield* Readiness
    const jobs = yield* Jobs
    const sql = yield* SqlClient
    const sampled = () => jobs.sampled(deliveries)
    let held = 0

    const count = sql<{
      held: number
    }>`SELECT count(*)::float8 AS held FROM deliveries WHERE held_until IS NOT NULL`.pipe(
      Effect.map(([row]) => void (held = row?.held ?? 0)),
      Effect.catch((error) => Effect.logDebug("deliveries that are held were not counted", error))
    )
    yield* Effect.forkScoped(Effect.repeat(count, Schedule.spaced(limits.deliveriesCountedEveryMillis)))

    yield* register(
      "notify",
      Effect.sync((): ComponentState => {
        const { ageMillis, busyMillis, lateMillis } = sampled()
        const isLong = (millis: number) => millis > limits.deliveriesLateMillis
        const seconds = (millis: number) => `${Math.round(millis / 1_000)} s`
        // Reading that fails says that Postgres is away: what is known grows old.
        if (isLong(ageMillis)) return degraded(`deliveries were not counted for ${seconds(ageMillis)}`)
        if (isLong(lateMillis))
          return degraded(`a delivery has been due for ${seconds(lateMillis)} and was not begun`)
        return isLong(busyMillis)
          ? degraded(
              `a delivery has been put off for ${seconds(busyMillis)}: its host or its sender has as many attempts as it may have`
            )
          : up
      })
    )
    yield* SampledMetrics.register([
      ["signalbox_notify_waiting", "Deliveries that wait for their turn", () => sampled().waiting],
      ["signalbox_notify_held", "Deliveries that are held for a digest", () => held],
      ["signalbox_notify_dead", "Deliveries that were given up and are kept", () => sampled().dead],
      [
        "signalbox_notify_oldest_waiting_seconds",
        "Time for which the delivery that is due longest has waited",
        () => Math.max(sampled().lateMillis, sampled().busyMillis) / 1_000
      ]
    ])
  })
)
