import { Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { AppConfig } from "#src/Config.ts"
import { Secrets } from "#src/infra/secrets/Secrets.ts"
import { subjectFault, Vapid } from "#streams/notify/channels/Vapid.ts"

/**
 * This installation as push services know it: one key pair, made once and kept in Postgres, and a subject at which its
 * operator is reached. Browsers subscribe with `publicKey`. Source: contract/notify#deliveries.
 */
export class VapidKey extends Context.Service<VapidKey, Vapid>()("signalbox/notify/VapidKey") {
  static readonly layer: Layer.Layer<VapidKey, SqlError, AppConfig | Secrets> = Layer.effect(
    VapidKey,
    Effect.gen(function* () {
      const { baseUrl, vapidSubject } = yield* AppConfig
      const subject = vapidSubject ?? subjectOf(baseUrl)
      if (subject === undefined)
        yield* Effect.logWarning(
          "Pushes name no operator: set VAPID_SUBJECT (mailto:… or https:…) or a BASE_URL with https. Apple refuses pushes without it"
        )
      const secret = yield* (yield* Secrets).of("vapid")
      return new Vapid({ secret, ...(subject === undefined ? {} : { subject }) })
    })
  )
}

/** The address of this server, where push services take it. */
const subjectOf = (baseUrl: string | undefined): string | undefined =>
  baseUrl !== undefined && subjectFault(baseUrl) === undefined ? baseUrl : undefined
