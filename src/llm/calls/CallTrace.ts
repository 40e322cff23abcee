import { Effect, Option, type Tracer } from "effect"
import { Headers, HttpTraceContext } from "effect/http"
import type { CatalogueModel } from "#src/llm/catalogue/CatalogueModel.ts"
import type { AttemptFailure } from "./AttemptFailure.ts"
import type { CallExchange } from "./CallExchange.ts"
import type { CallParts } from "./CallParts.ts"

/** Spans of calls. Names and attributes are OpenTelemetry's, of HTTP and of generative AI. */

/** W3C Trace Context: the caller's span. */
export const traceHeaders = ["traceparent"]

const parentOf = (traceparent: string): Tracer.ExternalSpan | undefined =>
  Option.getOrUndefined(HttpTraceContext.w3c(Headers.fromInput({ traceparent })))

/** The span of a request that is served beside the Effect pipeline; only where there is a collector. */
export const traceCall = <E, R>(
  calling: Effect.Effect<void, E, R>,
  exchange: CallExchange,
  path: string,
  traceparent: string
): Effect.Effect<void, E, R> => {
  const parent = traceparent === "" ? undefined : parentOf(traceparent)
  const status = Effect.suspend(() =>
    Effect.annotateCurrentSpan("http.response.status_code", exchange.status)
  )
  return Effect.withSpan(Effect.ensuring(calling, status), `POST ${path}`, {
    kind: "server",
    ...(parent === undefined ? {} : { parent }),
    attributes: {
      "http.request.method": "POST",
      "http.route": path,
      "signalbox.request_id": exchange.requestId
    }
  })
}

/** The outcome of a try, as far as its span has it. */
interface Tried {
  readonly _tag: string
  readonly failure?: AttemptFailure
  readonly streamed?: { readonly failure: AttemptFailure | undefined }
}

/** The span of one try of one model, and so of all upstream traffic. Without a collector the try as it is. */
export const traceAttempt = <A extends Tried>(
  { isTraced, upstream }: CallParts,
  operation: "chat" | "embeddings",
  { id }: CatalogueModel,
  attempt: Effect.Effect<A>
): Effect.Effect<A> =>
  isTraced
    ? Effect.withSpan(Effect.tap(attempt, annotate), `${operation} ${id}`, {
        kind: "client",
        attributes: {
          "gen_ai.operation.name": operation,
          "gen_ai.request.model": id,
          "server.address": new URL(upstream.url).host
        }
      })
    : attempt

const annotate = ({ _tag, failure, streamed }: Tried): Effect.Effect<void> => {
  const reason = (failure ?? streamed?.failure)?.reason
  return Effect.annotateCurrentSpan({
    "signalbox.outcome": _tag,
    ...(reason === undefined ? {} : { "error.type": reason })
  })
}
