import { Context, Effect, Layer, Semaphore } from "effect"
import { HttpServerRequest } from "effect/http"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Metering } from "#schemas/core/Authorization.ts"
import { CurrentSubscriber, SubscriberAuthorization } from "#schemas/notify/SubscriberToken.ts"
import { Admission, invalidKey } from "#src/accounts/Admission.ts"
import { AppConfig } from "#src/Config.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import { hashOf, newSecret } from "#src/infra/crypto/Tokens.ts"

/** A subscriber's proof of who they are: the part of their settings page's address after `#`. Rows have its hash alone. */
export const newToken = (): string => newSecret("sbt_")

const form = /^bearer +(sbt_[0-9A-Za-z]{40}) *$/i

/** Look-ups under way at once: guesses must not take Postgres's connections. */
const lookupsAtOnce = 2

/** Finds the subscriber whose token a request has. */
export class SubscriberTokens extends Context.Service<
  SubscriberTokens,
  {
    /** the token in the header `Authorization`; undefined: there is none */
    readonly shown: (authorization: string | undefined) => string | undefined
    readonly holder: (token: string) => Effect.Effect<string | undefined, SqlError>
  }
>()("signalbox/notify/SubscriberTokens") {
  static readonly layer = Layer.effect(
    SubscriberTokens,
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const lookUp = (yield* Semaphore.make(lookupsAtOnce)).withPermits(1)
      return SubscriberTokens.of({
        shown: (authorization) => form.exec(authorization ?? "")?.[1],
        // The hash is the key of an index: no comparison takes longer the more of a token is right.
        holder: (token) =>
          Effect.map(
            lookUp(sql<{ id: string }>`SELECT id FROM subscribers
              WHERE token_hash = ${hashOf(token)} OR bot_token_hash = ${hashOf(token)}`),
            ([row]) => row?.id
          )
      })
    })
  )
}

/** The middleware of the endpoints of settings. Requests are counted before their token is looked at. */
export const authorization = Layer.effect(
  SubscriberAuthorization,
  Effect.gen(function* () {
    const admission = yield* Admission
    const tokens = yield* SubscriberTokens
    const { limits } = yield* AppConfig
    const requests: Metering = {
      meter: {
        name: "Settings",
        shape: "bucket",
        per: "address",
        limit: limits.settingsRequestsPerMinute,
        seconds: 60
      },
      cost: 1
    }
    return SubscriberAuthorization.of({
      subscriberToken: (httpEffect) =>
        Effect.gen(function* () {
          const request = yield* HttpServerRequest.HttpServerRequest
          yield* admission.enterWithoutKey(request, requests)
          const token = tokens.shown(request.headers["authorization"])
          const id = token === undefined ? undefined : yield* storeAway(tokens.holder(token))
          if (id === undefined) return yield* invalidKey()
          return yield* Effect.provideService(httpEffect, CurrentSubscriber, { id })
        })
    })
  })
)
