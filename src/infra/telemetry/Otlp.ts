import { Layer } from "effect"
import { FetchHttpClient } from "effect/http"
import { Otlp, OtlpSerialization } from "effect/observability"

/**
 * Spans, log lines and metrics to an OTLP collector (OTEL_EXPORTER_OTLP_ENDPOINT, HTTP with JSON). A collector that is
 * away costs nothing but its data. Unset: nothing is collected.
 */
export const layer = (options: { readonly endpoint: string | undefined; readonly version: string }) =>
  options.endpoint === undefined
    ? Layer.empty
    : Otlp.layer({
        baseUrl: options.endpoint,
        resource: { serviceName: "signalbox", serviceVersion: options.version },
        // The log on standard output stays, whatever the collector does.
        loggerMergeWithExisting: true
      }).pipe(Layer.provide(OtlpSerialization.layerJson), Layer.provide(FetchHttpClient.layer))
