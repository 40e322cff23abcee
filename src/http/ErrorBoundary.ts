import { Cause, Effect, Layer } from "effect"
import type { Types } from "effect"
import { HttpEffect, type HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiError } from "effect/http-api"
import { ErrorBoundary, OpenAiErrorBoundary } from "#schemas/core/ErrorBoundary.ts"
import { type BadRequest, headersOf, invalidField, Problem, ServerError } from "#schemas/core/Problem.ts"
import { fieldFault } from "#schemas/core/FieldFault.ts"
import { RequestId } from "./RequestId.ts"

type Request = HttpServerRequest.HttpServerRequest

const boundary = (httpEffect: Effect.Effect<HttpServerResponse.HttpServerResponse, Types.unhandled>) =>
  Effect.catchCause(
    httpEffect,
    (cause): Effect.Effect<never, Types.unhandled | BadRequest | ServerError, Request> => {
      const failure: unknown = cause.reasons.find(Cause.isFailReason)?.error
      if (failure instanceof Problem) {
        return Effect.andThen(setHeaders(headersOf(failure)), Effect.failCause(cause))
      }
      if (failure !== undefined && !HttpApiError.HttpApiSchemaError.is(failure))
        return Effect.failCause(cause)
      if (isCallersFault(failure)) {
        const { field, text } = fieldFault(failure)
        return Effect.fail(invalidField(field, text))
      }
      if (Cause.hasInterruptsOnly(cause)) return Effect.failCause(cause)
      return Effect.andThen(
        logFault(cause),
        Effect.flatMap(faultText, (text) => Effect.fail(ServerError.of(text)))
      )
    }
  )

/** The text of a server fault for the caller: nothing of its cause, but the id under which the log has it. */
export const faultText = Effect.map(RequestId, (id) => `Internal error (request ${id})`)

export const logFault = (cause: Cause.Cause<unknown>) => Effect.logError("A request failed", cause)

/** An answer that does not fit its own schema is the server's fault, everything else the caller's. */
const isCallersFault = (error: unknown): error is HttpApiError.HttpApiSchemaError =>
  HttpApiError.HttpApiSchemaError.is(error) && error.kind !== "Body" && error.kind !== "ResponseHeaders"

const setHeaders = (headers: Record<string, string>) =>
  HttpEffect.appendPreResponseHandler((_, response) =>
    Effect.succeed(HttpServerResponse.setHeaders(response, headers))
  )

/** `ErrorBoundary` in both forms. */
export const layer = Layer.merge(
  Layer.succeed(ErrorBoundary, boundary),
  Layer.succeed(OpenAiErrorBoundary, boundary)
)
