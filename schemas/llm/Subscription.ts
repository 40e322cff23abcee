import { Schema } from "effect"
import { PlanId, SubscriptionId, UserId } from "../core/Ids.ts"
import { Instant, Timestamp } from "../core/Timestamp.ts"

export const SubscriptionStatus = Schema.Literals(["active", "canceled", "expired"])

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

export const NewSubscription = Schema.Struct({
  user_id: UserId,
  plan_id: PlanId,
  current_period_end: Instant
}).annotate({ identifier: "NewSubscription" })
export type NewSubscription = typeof NewSubscription.Type

export const Subscription = Schema.Struct({
  id: SubscriptionId,
  user_id: UserId,
  plan_id: PlanId,
  status: SubscriptionStatus,
  current_period_end: Timestamp,
  created_at: Timestamp,
  canceled_at: Schema.NullOr(Timestamp)
}).annotate({ identifier: "Subscription", description: "A user's subscription to a plan" })
export type Subscription = typeof Subscription.Type

export const SubscriptionList = Schema.Struct({
  object: Schema.Literal("list"),
  data: Schema.Array(Subscription),
  meta: Schema.Struct({ limit: Schema.Int, offset: Schema.Int, total: Schema.Int })
}).annotate({ identifier: "SubscriptionList", description: "Subscriptions, newest first" })

export const subscriptionsLimitDefault = 100
