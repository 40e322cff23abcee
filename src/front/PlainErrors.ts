import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import { causeResponse } from "effect/http/HttpServerError"
import * as Response from "effect/http/HttpServerResponse"
import { forStatus, jsonType } from "./FrontAnswer.ts"

/**
 * Failures that reach the front become empty answers in Effect; here they get the body `{"error": "..."}` that all
 * errors have. A client's error is an answer like any other; a server's error is still reported.
 */
export const plainErrors = <E, R>(
  app: Effect.Effect<Response.HttpServerResponse, E, R>
): Effect.Effect<Response.HttpServerResponse, E, R> =>
  Effect.catchCause(app, (cause) =>
    Effect.flatMap(causeResponse(cause), ([response]) => {
      const answer = response.body._tag === "Empty" ? forStatus(response.status) : undefined
      if (answer === undefined) return Effect.failCause(cause)
      const flat = Response.text(answer.body, { status: answer.status, contentType: jsonType[1] })
      if (answer.status < 500) return Effect.succeed(flat)
      // Not Cause.combine: it compares the reasons by structure, and some of them hold the whole request.
      return Effect.failCause(Cause.fromReasons([...cause.reasons, Cause.makeDieReason(flat)]))
    })
  )
