import { Effect, Option, type Tracer } from "effect"
import { Headers, HttpTraceContext } from "effect/http"

/** W3C Trace Context: the caller's span. */
export const traceHeaders = ["traceparent"]

const parentOf = (traceparent: string): Tracer.ExternalSpan | undefined =>
  Option.getOrUndefined(HttpTraceContext.w3c(Headers.fromInput({ traceparent })))

interface Served {
  readonly requestId: string
  /** of the answer, once there is one */
  readonly status: number
}

interface Requested {
  readonly method: string
  /** the path of the route, with its parameters' names */
  readonly route: string
  /** the header, "" where it is absent */
  readonly traceparent: string
}

/**
 * The span of a request that is served beside the Effect pipeline, as that makes them; only where there is a collector.
 * Names and attributes are OpenTelemetry's, of HTTP.
 */
export const withRequestSpan = <A, E, R>(
  handling: Effect.Effect<A, E, R>,
  exchange: Served,
  { method, route, traceparent }: Requested
): Effect.Effect<A, E, R> => {
  const parent = traceparent === "" ? undefined : parentOf(traceparent)
  const status = Effect.suspend(() =>
    Effect.annotateCurrentSpan("http.response.status_code", exchange.status)
  )
  return Effect.withSpan(Effect.ensuring(handling, status), `${method} ${route}`, {
    kind: "server",
    ...(parent === undefined ? {} : { parent }),
    attributes: {
      "http.request.method": method,
      "http.route": route,
      "signalbox.request_id": exchange.requestId
    }
  })
}
