import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { LlmRoomApi } from "#schemas/llm/LlmRoomApi.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import { Plans } from "./Plans.ts"
import { NotFound } from "#schemas/core/Problem.ts"

const notFound = () => Effect.fail(NotFound.of("Plan not found", { code: "plan_not_found", param: "id" }))

export const layer = HttpApiBuilder.group(
  LlmRoomApi,
  "plans",
  Effect.fnUntraced(function* (handlers) {
    const plans = yield* Plans
    return handlers.handleAll({
      listPlans: () => Effect.sync(() => ({ object: "list" as const, data: plans.list(undefined) })),
      readPlan: ({ params }) =>
        plans.find(params.id, undefined).pipe(Effect.catchTag("RowNotFound", notFound)),
      createPlan: ({ payload }) => storeAway(plans.create(payload))
    })
  })
)
