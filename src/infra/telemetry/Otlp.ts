import { Effect, Layer, Option, Predicate, References, Tracer } from "effect"
import { FetchHttpClient } from "effect/http"
import { Otlp, OtlpSerialization } from "effect/observability"
import { loggedPath } from "#src/http/LoggedPath.ts"

/**
 * Spans, log lines and metrics to an OTLP collector (OTEL_EXPORTER_OTLP_ENDPOINT, HTTP with JSON). A collector that is
 * away costs nothing but its data. Unset: nothing is collected, and no span is made.
 */
export const layer = (options: { readonly endpoint: string | undefined; readonly version: string }) =>
  options.endpoint === undefined
    ? Layer.succeed(References.TracerEnabled, false)
    : Layer.effect(Tracer.Tracer, Effect.map(Tracer.Tracer, ofRequests)).pipe(
        Layer.provideMerge(
          Otlp.layer({
            baseUrl: options.endpoint,
            resource: { serviceName: "signalbox", serviceVersion: options.version },
            // The log on standard output stays, with or without a collector.
            loggerMergeWithExisting: true
          })
        ),
        Layer.provide(OtlpSerialization.layerJson),
        Layer.provide(FetchHttpClient.layer)
      )

/**
 * Only what a request has asked for is traced: a server asks its stores all the time on its own account, and each of
 * these statements would be a trace of one span.
 */
const ofRequests = (tracer: Tracer.Tracer): Tracer.Tracer =>
  Tracer.make({
    ...(tracer.context === undefined ? {} : { context: tracer.context }),
    span: (options) => {
      const isServed = options.kind === "server"
      const isAsked = isServed || Option.exists(options.parent, ({ sampled }) => sampled)
      const span = tracer.span({ ...options, sampled: options.sampled && isAsked })
      return isServed ? namedByRoute(withoutSecrets(span)) : span
    }
  })

/** Links are secrets, and so may be queries; a request's address is an attribute of its span. */
const withoutSecrets = (span: Tracer.Span): Tracer.Span => {
  const set = span.attribute.bind(span)
  return Object.assign(span, {
    attribute: (key: string, value: unknown): void => {
      if (key === "url.query") return
      set(key, key.startsWith("url.") && Predicate.isString(value) ? loggedPath(value) : value)
    }
  })
}

/** `GET {http.route}`: the route is known only once the router has found it. Source: OpenTelemetry, HTTP spans. */
const namedByRoute = (span: Tracer.Span): Tracer.Span => {
  const set = span.attribute.bind(span)
  const method = span.name.split(" ", 1)[0] ?? ""
  return Object.assign(span, {
    attribute: (key: string, value: unknown): void => {
      set(key, value)
      if (key === "http.route") Object.assign(span, { name: `${method} ${String(value)}` })
    }
  })
}
