import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { LlmRoomApi } from "#schemas/llm/LlmRoomApi.ts"
import { usdOf } from "#schemas/llm/Money.ts"
import type { Plan } from "#schemas/llm/Plan.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import type { PlanRow } from "./PlanDirectory.ts"
import { Plans } from "./Plans.ts"
import { NotFound } from "#schemas/core/Problem.ts"

const planResource = (plan: PlanRow): Plan => ({
  id: plan.id,
  name: plan.name,
  price_usd: usdOf(plan.price),
  scope: plan.scope,
  covers_direct_api: plan.coversDirectApi,
  models: plan.models === null ? "*" : Array.from(plan.models),
  allowances: plan.allowances,
  created_at: plan.createdAt.toISOString()
})

export const layer = HttpApiBuilder.group(
  LlmRoomApi,
  "plans",
  Effect.fnUntraced(function* (handlers) {
    const plans = yield* Plans
    return handlers.handleAll({
      listPlans: () => Effect.sync(() => ({ object: "list" as const, data: plans.list().map(planResource) })),
      readPlan: ({ params }) =>
        Effect.suspend(() => {
          const plan = plans.get(params.id)
          return plan === undefined
            ? Effect.fail(NotFound.of("Plan not found", { code: "plan_not_found", param: "id" }))
            : Effect.succeed(planResource(plan))
        }),
      createPlan: ({ payload }) => Effect.map(storeAway(plans.create(payload)), planResource)
    })
  })
)
