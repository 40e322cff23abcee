import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { LlmRoomApi } from "#schemas/llm/LlmRoomApi.ts"
import { orNotFound, storeAway } from "#src/http/StoreAway.ts"
import { Plans } from "./Plans.ts"

export const layer = HttpApiBuilder.group(
  LlmRoomApi,
  "plans",
  Effect.fnUntraced(function* (handlers) {
    const plans = yield* Plans
    return handlers.handleAll({
      listPlans: () => Effect.sync(() => ({ object: "list" as const, data: plans.list(undefined) })),
      readPlan: ({ params }) =>
        plans
          .find(params.id, undefined)
          .pipe(orNotFound("Plan not found", { code: "plan_not_found", param: "id" })),
      createPlan: ({ payload }) => storeAway(plans.create(payload))
    })
  })
)
