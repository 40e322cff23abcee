import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { AdministratorsOnly, OpenAiAuthorization, OpenToRouterKeys } from "../core/Authorization.ts"
import { OpenAiErrorBoundary } from "../core/ErrorBoundary.ts"
import { PathId } from "../core/Ids.ts"
import { OpenAiJsonBody } from "../core/JsonBody.ts"
import { pageQuery } from "../core/Page.ts"
import { OfUser } from "./Credits.ts"
import {
  NewSubscription,
  OwnSubscription,
  Subscription,
  SubscriptionList,
  subscriptionsLimitDefault
} from "./Subscription.ts"
import { Conflict, NotFound } from "../core/Problem.ts"

/** The caller's subscription, and all users' for administrators. Source: contract/llm#plans-and-subscriptions. */
export class SubscriptionsApi extends HttpApiGroup.make("subscriptions")
  .add(
    HttpApiEndpoint.get("readSubscription", "/subscription", { success: OwnSubscription })
      .annotate(OpenToRouterKeys, true)
      .annotate(OpenApi.Summary, "Read the caller's subscription"),
    HttpApiEndpoint.get("listSubscriptions", "/subscriptions", {
      query: { ...pageQuery({ limitDefault: subscriptionsLimitDefault, limitMax: 1_000 }), ...OfUser },
      success: SubscriptionList
    })
      .annotate(AdministratorsOnly, true)
      .annotate(OpenApi.Summary, "List subscriptions"),
    HttpApiEndpoint.post("createSubscription", "/subscriptions", {
      payload: NewSubscription,
      success: Subscription.pipe(HttpApiSchema.status(201)),
      error: [NotFound.openai, Conflict.openai]
    })
      .middleware(OpenAiJsonBody)
      .annotate(AdministratorsOnly, true)
      .annotate(OpenApi.Summary, "Subscribe a user")
      .annotate(OpenApi.Description, "A user has one active subscription; a second one is 409."),
    HttpApiEndpoint.delete("cancelSubscription", "/subscriptions/:id", {
      params: { id: PathId },
      success: Subscription,
      error: NotFound.openai
    })
      .annotate(AdministratorsOnly, true)
      .annotate(OpenApi.Summary, "Cancel a subscription")
      .annotate(OpenApi.Description, "At once: further calls are charged to the credits.")
  )
  .middleware(OpenAiAuthorization)
  .middleware(OpenAiErrorBoundary)
  .annotateMerge(
    OpenApi.annotations({
      title: "Subscriptions",
      description: "Who has which plan, and what is left of it."
    })
  )
  .prefix("/api/v1") {}
