import { Schema } from "effect"
import { PlanId } from "../core/Ids.ts"
import { integer, line } from "../core/Text.ts"
import { Timestamp } from "../core/Timestamp.ts"

const tokens = integer(0, Number.MAX_SAFE_INTEGER).annotate({ description: "Tokens" })

const allowances = Schema.Struct({ hour: tokens, day: tokens, week: tokens }).annotate({
  description: "Tokens of each window, prompt and answer together; a call has to fit all three"
})

const models = Schema.Union([
  Schema.Literal("*"),
  Schema.Array(line(1, 200)).check(Schema.isMaxLength(1000, { expected: "at most 1000 model ids" }))
]).annotate({ description: "Ids of the models that the plan covers, or * for all" })

const fields = {
  name: line(1, 100),
  price_usd: Schema.Finite.check(
    Schema.isBetween({ minimum: 0, maximum: 1_000_000 }, { expected: "an amount between 0 and 1000000" })
  ).annotate({ description: "USD" }),
  scope: line(1, 100),
  covers_direct_api: Schema.Boolean.annotate({
    description: "Whether the plan also pays for direct completion calls or only for agent sessions"
  }),
  models,
  allowances
}

export const NewPlan = Schema.Struct(fields).annotate({ identifier: "NewPlan" })
export type NewPlan = typeof NewPlan.Type

/** Source: contract/llm#plans-and-subscriptions. */
export const Plan = Schema.Struct({
  id: PlanId,
  ...fields,
  name: Schema.String,
  price_usd: Schema.Finite,
  scope: Schema.String,
  created_at: Timestamp
}).annotate({ identifier: "Plan", description: "A plan. It does not change; a new offer is a new plan" })
export type Plan = typeof Plan.Type

export const PlanList = Schema.Struct({
  object: Schema.Literal("list"),
  data: Schema.Array(Plan)
}).annotate({ identifier: "PlanList", description: "All plans, oldest first" })
