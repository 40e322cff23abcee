import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Model } from "effect/schema"
import { AdministratorsOnly, OpenAiAuthorization, OpenToRouterKeys } from "../core/Authorization.ts"
import { OpenAiErrorBoundary } from "../core/ErrorBoundary.ts"
import { PathId, PlanId, SubscriptionId, UserId } from "../core/Ids.ts"
import { OpenAiJsonBody } from "../core/JsonBody.ts"
import { made, madeAt, shape } from "../core/Noun.ts"
import { Conflict, NotFound } from "../core/Problem.ts"
import { pageQuery } from "../core/Page.ts"
import { Instant, Timestamp, TimestampOfDate } from "../core/Timestamp.ts"
import { OfUser } from "./Credits.ts"

const SubscriptionStatus = Schema.Literals(["active", "canceled", "expired"])

const Allowance = Schema.Struct({
  window: Schema.Literals(["hour", "day", "week"]),
  token_limit: Schema.Int,
  tokens_used: Schema.Int,
  tokens_remaining: Schema.Int,
  resets_at: Timestamp
}).annotate({
  identifier: "Allowance",
  description: "Windows are of the calendar, in UTC; weeks begin on Monday"
})
export type Allowance = typeof Allowance.Type

/** Source: contract/llm#plans-and-subscriptions. */
export const OwnSubscription = Schema.Struct({
  subscribed: Schema.Boolean.annotate({ description: "false: usage is charged to the credits" }),
  plan: Schema.NullOr(
    Schema.Struct({
      id: PlanId,
      name: Schema.String,
      price_usd: Schema.Finite,
      scope: Schema.String,
      covers_direct_api: Schema.Boolean
    })
  ),
  subscription: Schema.NullOr(
    Schema.Struct({ id: SubscriptionId, status: SubscriptionStatus, current_period_end: Timestamp })
  ),
  allowances: Schema.Array(Allowance)
}).annotate({ identifier: "OwnSubscription", description: "The caller's subscription" })
export type OwnSubscription = typeof OwnSubscription.Type

const named = <S extends Schema.Top>(id: S) =>
  Model.Field({ select: Schema.String, insert: Schema.String, json: id, jsonCreate: id })

/** A row of `subscriptions`. */
export class SubscriptionRow extends Model.Class<SubscriptionRow>("SubscriptionRow")({
  id: made(SubscriptionId),
  user_id: named(UserId),
  plan_id: named(PlanId),
  status: Model.GeneratedByDb(SubscriptionStatus),
  current_period_end: Model.Field({
    select: Schema.Date,
    insert: Schema.Date,
    json: TimestampOfDate,
    jsonCreate: Instant
  }),
  created_at: madeAt,
  canceled_at: Model.Field({ select: Schema.NullOr(Schema.Date), json: Schema.NullOr(TimestampOfDate) })
}) {}

const NewSubscription = shape("NewSubscription", SubscriptionRow.jsonCreate)

const Subscription = shape("Subscription", SubscriptionRow.json, "A user's subscription to a plan")

const SubscriptionList = Schema.Struct({
  object: Schema.Literal("list"),
  data: Schema.Array(Subscription),
  meta: Schema.Struct({ limit: Schema.Int, offset: Schema.Int, total: Schema.Int })
}).annotate({ identifier: "SubscriptionList", description: "Subscriptions, newest first" })

export const subscriptionsLimitDefault = 100

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
