import { Cause, Clock, Context, Effect, Exit, Layer, Redacted, type Types } from "effect"
import type { HttpServerResponse } from "effect/http"
import type { SqlError } from "effect/sql/SqlError"
import {
  Authorization,
  CurrentKey,
  OpenAiAuthorization,
  OpenToRouterKeys,
  type Principal
} from "#schemas/core/Authorization.ts"
import { flat, nested } from "#src/http/ErrorFormat.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import { Keys } from "./Keys.ts"
import { endingWithKey, KeyWatch } from "./KeyWatch.ts"
import { RequestCounts } from "./RequestCounts.ts"

/** Source: contract/http#credentials. */
const invalidKey = "Invalid or missing API key"

interface Answers<U, F, A> {
  unauthorized(text: string): U
  forbidden(text: string): F
  unavailable(text: string): A
}

interface Annotated {
  readonly annotations: Context.Context<never>
}

type Handled = Effect.Effect<HttpServerResponse.HttpServerResponse, Types.unhandled, CurrentKey>

/** Whether the endpoint, or else its group, allows router keys. */
const isOpenToRouterKeys = (endpoint: Annotated, group: Annotated): boolean =>
  Context.get(Context.merge(group.annotations, endpoint.annotations), OpenToRouterKeys)

const authenticate = <U, F, A>(
  keys: Keys["Service"],
  counts: RequestCounts["Service"],
  watch: KeyWatch["Service"],
  family: Answers<U, F, A>
) => ({
  apiKey: (
    httpEffect: Handled,
    options: {
      readonly credential: Redacted.Redacted
      readonly endpoint: Annotated
      readonly group: Annotated
    }
  ) =>
    Effect.gen(function* () {
      const key = yield* keys
        .authenticate(Redacted.value(options.credential))
        .pipe(asUnavailable(family.unavailable))
      if (key === undefined) return yield* Effect.fail(family.unauthorized(invalidKey))
      const mayCall = key.kind === "account" || isOpenToRouterKeys(options.endpoint, options.group)
      return yield* Effect.gen(function* () {
        if (!mayCall)
          return yield* Effect.fail(family.forbidden("A router key may not do this; use an account key"))
        const response = yield* Effect.provideService(httpEffect, CurrentKey, key)
        return endingWithKey(watch, key.keyId, response)
      }).pipe(
        Effect.onExit((exit) => record(counts, key, exit)),
        Effect.annotateLogs({ keyId: key.keyId, userId: key.userId })
      )
    })
})

/** A key that memory does not know while Postgres is away may well be good: that is 503, not 401. */
const asUnavailable =
  <A>(unavailable: (text: string) => A) =>
  <B>(self: Effect.Effect<B, SqlError>): Effect.Effect<B, A> =>
    Effect.mapError(storeAway(self), ({ error }) => unavailable(error))

/** A declared failure is an answer of 400 or more; a request that its client gave up is no answer. */
const record = (
  counts: RequestCounts["Service"],
  key: Principal,
  exit: Exit.Exit<HttpServerResponse.HttpServerResponse, unknown>
): Effect.Effect<void> =>
  Effect.map(Clock.currentTimeMillis, (now) => {
    if (Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause)) return
    counts.record(key.userId, Exit.isFailure(exit) || exit.value.status >= 400, now)
  })

/** `Authorization` of both families. */
export const layer = Layer.mergeAll(
  Layer.effect(
    Authorization,
    Effect.gen(function* () {
      return authenticate(yield* Keys, yield* RequestCounts, yield* KeyWatch, flat)
    })
  ),
  Layer.effect(
    OpenAiAuthorization,
    Effect.gen(function* () {
      return authenticate(yield* Keys, yield* RequestCounts, yield* KeyWatch, nested)
    })
  )
)
