import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Authorization } from "../core/Authorization.ts"
import { ErrorBoundary } from "../core/ErrorBoundary.ts"
import { PathId } from "../core/Ids.ts"
import { JsonBody } from "../core/JsonBody.ts"
import { openStruct } from "../core/OpenStruct.ts"
import { BadRequest } from "../core/Problem.ts"

const redriveIdsMax = 1_000

const one = (description: string) => Schema.optionalKey(PathId.annotate({ description }))

/** Which dead deliveries wait again: exactly one of these is given. */
export const Redrive = openStruct({
  ids: Schema.optionalKey(
    Schema.Array(PathId)
      .check(Schema.isMinLength(1), Schema.isMaxLength(redriveIdsMax))
      .annotate({ description: "These deliveries" })
  ),
  message: one("Those of this message"),
  project: one("Those of messages to this project, by id or slug"),
  channel: one("Those to this channel")
}).annotate({ identifier: "Redrive", description: "One of its fields: the dead deliveries that wait again" })
export type Redrive = typeof Redrive.Type

/** Deliveries that were given up. Source: contract/notify#deliveries. */
export class DeliveriesApi extends HttpApiGroup.make("deliveries")
  .add(
    HttpApiEndpoint.post("redriveDeliveries", "/deliveries/redrive", {
      payload: Redrive,
      success: Schema.Struct({
        redriven: Schema.Int.annotate({
          description: "Deliveries that wait again: at most 10,000, the oldest"
        })
      }).annotate({ identifier: "Redriven" }),
      error: BadRequest.plain
    })
      .middleware(JsonBody)
      .annotate(OpenApi.Summary, "Have dead deliveries wait again")
      .annotate(
        OpenApi.Description,
        "One's own, in the order in which they were accepted, behind what waits on their channels, for 72 hours more."
      )
  )
  .middleware(Authorization)
  .middleware(ErrorBoundary)
  .annotateMerge(OpenApi.annotations({ title: "Deliveries", description: "Deliveries that were given up." }))
  .prefix("/api/v1") {}
