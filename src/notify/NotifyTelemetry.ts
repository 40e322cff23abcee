import { Effect, Layer, Schedule } from "effect"
import * as SampledMetrics from "#actors/kernel/SampledMetrics.ts"
import { AppConfig } from "#src/Config.ts"
import { Jobs } from "#src/infra/jobs/Jobs.ts"
import { type ComponentState, degraded, Readiness, up } from "#src/infra/telemetry/Readiness.ts"
import { deliveries } from "./delivery/Deliveries.ts"
import { HeldDeliveries } from "./digests/HeldDeliveries.ts"
import { silenceOf } from "./telegram/Poller.ts"
import { TelegramBot } from "./telegram/TelegramBot.ts"

/** Deliveries on `/metrics`, and on `/readyz` where they are late: those of all processes, mostly as their jobs are counted. */
export const telemetry = Layer.effectDiscard(
  Effect.gen(function* () {
    const { limits } = yield* AppConfig
    const { register } = yield* Readiness
    const jobs = yield* Jobs
    const sampled = () => jobs.sampled(deliveries)
    const held = yield* HeldDeliveries
    const { bot } = yield* TelegramBot
    let silence: string | undefined
    const look = bot === undefined ? Effect.void : Effect.map(silenceOf(bot), (text) => void (silence = text))
    const looked = Effect.catch(look, (error) => Effect.logDebug("Telegram's silence was not read", error))
    yield* Effect.forkScoped(Effect.repeat(looked, Schedule.spaced(limits.deliveriesCountedEveryMillis)))

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
        if (isLong(held.lateMillis()))
          return degraded(`a digest has been due for ${seconds(held.lateMillis())} and was not made`)
        if (isLong(busyMillis))
          return degraded(
            `a delivery has been put off for ${seconds(busyMillis)}: its host or its sender has as many attempts as it may have`
          )
        return silence === undefined ? up : degraded(silence)
      })
    )
    yield* SampledMetrics.register([
      ["signalbox_notify_waiting", "Deliveries that wait for their turn", () => sampled().waiting],
      ["signalbox_notify_held", "Deliveries that are held for a digest", held.count],
      [
        "signalbox_notify_held_late_seconds",
        "Time for which the digest that is due longest has waited to be made",
        () => held.lateMillis() / 1_000
      ],
      ["signalbox_notify_dead", "Deliveries that were given up and are kept", () => sampled().dead],
      [
        "signalbox_notify_oldest_waiting_seconds",
        "Time for which the delivery that is due longest has waited",
        () => Math.max(sampled().lateMillis, sampled().busyMillis) / 1_000
      ]
    ])
  })
)
