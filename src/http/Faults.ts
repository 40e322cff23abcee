import { Cause, Effect, Layer, Predicate } from "effect"
import type { Types } from "effect"
import { HttpEffect, HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiError } from "effect/http-api"
import { Faults, OpenAiFaults } from "#schemas/core/Faults.ts"
import { flat, nested } from "./ErrorFormat.ts"
import { fieldFault } from "./FieldFault.ts"
import { RequestId } from "./RequestId.ts"

/** When a caller may try again after a 503: long enough for a store to restart, short enough to be worth it. */
const retryAfterSeconds = 5

type Response = HttpServerResponse.HttpServerResponse

const answerFaults =
  <B, S>(family: { badRequest(field: string, text: string): B; serverError(text: string): S }) =>
  (httpEffect: Effect.Effect<Response, Types.unhandled>) =>
    Effect.catchCause(
      httpEffect,
      (cause): Effect.Effect<never, Types.unhandled | B | S, HttpServerRequest.HttpServerRequest> => {
        const failure = cause.reasons.find(Cause.isFailReason)
        if (failure !== undefined && !HttpApiError.HttpApiSchemaError.is(failure.error)) {
          return isUnavailable(failure.error)
            ? Effect.andThen(sayWhenToRetry, Effect.failCause(cause))
            : Effect.failCause(cause)
        }
        if (failure !== undefined && isCallersFault(failure.error)) {
          const { field, text } = fieldFault(failure.error)
          return Effect.fail(family.badRequest(field, text))
        }
        if (Cause.hasInterruptsOnly(cause)) return Effect.failCause(cause)
        return Effect.andThen(
          logFault(cause),
          Effect.flatMap(faultText, (text) => Effect.fail(family.serverError(text)))
        )
      }
    )

/** The text of a server fault for the caller: nothing of its cause, but the id under which the log has it. */
export const faultText = Effect.map(RequestId, (id) => `Internal error (request ${id})`)

export const logFault = (cause: Cause.Cause<unknown>) => Effect.logError("A request failed", cause)

const isUnavailable = (error: unknown): boolean =>
  Predicate.hasProperty(error, "_tag") &&
  (error._tag === "ServiceUnavailable" || error._tag === "OpenAiServiceUnavailable")

/** An answer that does not fit its own schema is the server's fault, everything else the caller's. */
const isCallersFault = (error: unknown): error is HttpApiError.HttpApiSchemaError =>
  HttpApiError.HttpApiSchemaError.is(error) && error.kind !== "Body" && error.kind !== "ResponseHeaders"

const sayWhenToRetry = HttpEffect.appendPreResponseHandler((_, response) =>
  Effect.succeed(HttpServerResponse.setHeader(response, "retry-after", String(retryAfterSeconds)))
)

/** `Faults` of both families. */
export const layer = Layer.mergeAll(
  Layer.succeed(Faults, answerFaults(flat)),
  Layer.succeed(OpenAiFaults, answerFaults(nested))
)
