import { Effect, Layer } from "effect"
import * as SampledMetrics from "#actors/kernel/SampledMetrics.ts"
import { AppConfig } from "#src/Config.ts"
import { Jobs } from "#src/infra/jobs/Jobs.ts"
import { type ComponentState, degraded, Readiness, up } from "#src/infra/telemetry/Readiness.ts"
import { mailDeliveries } from "./delivery/MailDeliveries.ts"
import { MailGates } from "./delivery/MailGates.ts"

/** Deliveries on `/metrics`, and on `/readyz` where they do not go: those of all processes, but for the pause of the route. */
export const telemetry = Layer.effectDiscard(
  Effect.gen(function* () {
    const { limits } = yield* AppConfig
    const { register } = yield* Readiness
    const { paused } = yield* MailGates
    const jobs = yield* Jobs
    const sampled = () => jobs.sampled(mailDeliveries)

    yield* register(
      "mail",
      Effect.sync((): ComponentState => {
        const { ageMillis, busyMillis, lateMillis } = sampled()
        const isLong = (millis: number) => millis > limits.mailLateMillis
        const minutes = (millis: number) => `${Math.floor(millis / 60_000)} min`
        const reply = paused()
        if (reply !== undefined) return degraded(`the relay takes no mail: ${reply}`)
        // Reading that fails says that Postgres is away: what is known grows old.
        if (isLong(ageMillis)) return degraded(`mail was not counted for ${minutes(ageMillis)}`)
        const waitedMillis = Math.max(lateMillis, busyMillis)
        return isLong(waitedMillis)
          ? degraded(`a mail has been due for ${minutes(waitedMillis)} and was not tried`)
          : up
      })
    )
    yield* SampledMetrics.register([
      ["signalbox_mail_queued", "Deliveries that have not ended", () => sampled().waiting],
      [
        "signalbox_mail_oldest_seconds",
        "Time for which the delivery that is due longest has waited",
        () => Math.max(sampled().lateMillis, sampled().busyMillis) / 1_000
      ]
    ])
  })
)
