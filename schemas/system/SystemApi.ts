import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"

/** Endpoints for operators of the server: no key, no version prefix. */

const Component = Schema.Struct({
  status: Schema.Literals(["up", "standby", "degraded", "down"]),
  detail: Schema.optionalKey(Schema.String)
})

const readinessFields = {
  status: Schema.Literals(["ready", "unready", "draining"]),
  components: Schema.Record(Schema.String, Component)
}

export const Ready = Schema.Struct(readinessFields).annotate({
  identifier: "Ready",
  description: "The server takes traffic; a component may be degraded"
})

/** 503: draining, or a component without which nothing is served is down. */
export class Unready extends Schema.Error<Unready>("Unready")(readinessFields, {
  httpApiStatus: 503,
  description: "Draining, or a needed component is down"
}) {
  readonly _tag = "Unready"
}

export class SystemApi extends HttpApiGroup.make("system")
  .add(
    HttpApiEndpoint.get("alive", "/healthz", {
      success: Schema.Struct({ status: Schema.Literal("ok") }).annotate({
        identifier: "Alive",
        description: "The process answers"
      })
    }).annotate(OpenApi.Summary, "Is the process alive?"),
    HttpApiEndpoint.get("ready", "/readyz", { success: Ready, error: Unready }).annotate(
      OpenApi.Summary,
      "Does the server take traffic, and how are its components?"
    ),
    HttpApiEndpoint.get("metrics", "/metrics", {
      success: Schema.String.pipe(
        HttpApiSchema.asText({ contentType: "text/plain; version=0.0.4; charset=utf-8" })
      )
    }).annotate(OpenApi.Summary, "Prometheus metrics")
  )
  .annotateMerge(
    OpenApi.annotations({ title: "System", description: "Health and metrics of the server." })
  ) {}
