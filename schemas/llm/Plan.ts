import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Model } from "effect/schema"
import { AdministratorsOnly, OpenAiAuthorization } from "../core/Authorization.ts"
import { OpenAiErrorBoundary } from "../core/ErrorBoundary.ts"
import { PathId, PlanId } from "../core/Ids.ts"
import { OpenAiJsonBody } from "../core/JsonBody.ts"
import { computed, given, made, madeAt, shape } from "../core/Noun.ts"
import { NotFound } from "../core/Problem.ts"
import { integer, line } from "../core/Text.ts"

const tokens = integer(0, Number.MAX_SAFE_INTEGER).annotate({ description: "Tokens" })

const allowances = Schema.Struct({ hour: tokens, day: tokens, week: tokens }).annotate({
  description: "Tokens of each window, prompt and answer together; a call has to fit all three"
})

const price = Schema.Finite.check(
  Schema.isBetween({ minimum: 0, maximum: 1_000_000 }, { expected: "an amount between 0 and 1000000" })
).annotate({ description: "USD" })

const direct = Schema.Boolean.annotate({
  description: "Whether the plan also pays for direct completion calls or only for agent sessions"
})

const models = Schema.Union([
  Schema.Literal("*"),
  Schema.Array(line(1, 200)).check(Schema.isMaxLength(1000, { expected: "at most 1000 model ids" }))
]).annotate({ description: "Ids of the models that the plan covers, or * for all" })

/** A row of `plans`. Source: contract/llm#plans-and-subscriptions. */
export class PlanRow extends Model.Class<PlanRow>("PlanRow")({
  id: made(PlanId),
  name: given(Schema.String, line(1, 100)),
  price_usd: computed(Schema.Finite, price),
  scope: given(Schema.String, line(1, 100)),
  covers_direct_api: given(direct, direct),
  models: computed(models, models),
  allowances: computed(allowances, allowances),
  created_at: madeAt
}) {}

export const NewPlan = shape("NewPlan", PlanRow.jsonCreate)
export type NewPlan = typeof NewPlan.Type

const Plan = shape("Plan", PlanRow.json, "A plan. It does not change; a new offer is a new plan")

const PlanList = Schema.Struct({ object: Schema.Literal("list"), data: Schema.Array(Plan) }).annotate({
  identifier: "PlanList",
  description: "All plans, oldest first"
})

/** Plans, which administrators make and all users may read. Source: contract/llm#plans-and-subscriptions. */
export class PlansApi extends HttpApiGroup.make("plans")
  .add(
    HttpApiEndpoint.get("listPlans", "/plans", { success: PlanList }).annotate(OpenApi.Summary, "List plans"),
    HttpApiEndpoint.get("readPlan", "/plans/:id", {
      params: { id: PathId },
      success: Plan,
      error: NotFound.openai
    }).annotate(OpenApi.Summary, "Read a plan"),
    HttpApiEndpoint.post("createPlan", "/plans", {
      payload: NewPlan,
      success: Plan.pipe(HttpApiSchema.status(201))
    })
      .middleware(OpenAiJsonBody)
      .annotate(AdministratorsOnly, true)
      .annotate(OpenApi.Summary, "Make a plan")
      .annotate(OpenApi.Description, "For administrators.")
  )
  .middleware(OpenAiAuthorization)
  .middleware(OpenAiErrorBoundary)
  .annotateMerge(
    OpenApi.annotations({
      title: "Plans",
      description: "Token allowances by hour, day and week, for a price."
    })
  )
  .prefix("/api/v1") {}
