import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { NestedAdministratorsOnly, NestedAuthorization, OpenToRouterKeys } from "../core/Authorization.ts"
import { NestedFaults } from "../core/Faults.ts"
import { PathId } from "../core/Ids.ts"
import { NestedJsonBody } from "../core/JsonBody.ts"
import { NestedConflict, NestedNotFound } from "../core/NestedProblem.ts"
import { pageQuery } from "../core/Page.ts"
import { NestedRateLimit } from "../core/RateLimit.ts"
import { OfUser } from "./Credits.ts"
import {
  NewSubscription,
  OwnSubscription,
  Subscription,
  SubscriptionList,
  subscriptionsLimitDefault
} from "./Subscription.ts"

/** The caller's subscription, and everybody's for administrators. Source: spec 1, Subscription; decisions, LLM (Plans). */
export class SubscriptionsApi extends HttpApiGroup.make("subscriptions")
  .add(
    HttpApiEndpoint.get("readSubscription", "/subscription", { success: OwnSubscription })
      .annotate(OpenToRouterKeys, true)
      .annotate(OpenApi.Summary, "Read the caller's subscription"),
    HttpApiEndpoint.get("listSubscriptions", "/subscriptions", {
      query: { ...pageQuery({ limitDefault: subscriptionsLimitDefault, limitMax: 1_000 }), ...OfUser },
      success: SubscriptionList
    })
      .middleware(NestedAdministratorsOnly)
      .annotate(OpenApi.Summary, "List subscriptions"),
    HttpApiEndpoint.post("createSubscription", "/subscriptions", {
      payload: NewSubscription,
      success: Subscription.pipe(HttpApiSchema.status(201)),
      error: [NestedNotFound, NestedConflict]
    })
      .middleware(NestedJsonBody)
      .middleware(NestedAdministratorsOnly)
      .annotate(OpenApi.Summary, "Subscribe a user")
      .annotate(OpenApi.Description, "A user has one active subscription; a second one is 409."),
    HttpApiEndpoint.delete("cancelSubscription", "/subscriptions/:id", {
      params: { id: PathId },
      success: Subscription,
      error: NestedNotFound
    })
      .middleware(NestedAdministratorsOnly)
      .annotate(OpenApi.Summary, "Cancel a subscription")
      .annotate(OpenApi.Description, "At once: further calls are charged to the credits.")
  )
  .middleware(NestedRateLimit)
  .middleware(NestedAuthorization)
  .middleware(NestedFaults)
  .annotateMerge(
    OpenApi.annotations({
      title: "Subscriptions",
      description: "Who has which plan, and what is left of it."
    })
  )
  .prefix("/api/v1") {}
