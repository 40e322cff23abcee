import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { OpenAiAdministratorsOnly, OpenAiAuthorization } from "../core/Authorization.ts"
import { OpenAiFaults } from "../core/Faults.ts"
import { PathId } from "../core/Ids.ts"
import { OpenAiJsonBody } from "../core/JsonBody.ts"
import { OpenAiNotFound } from "../core/OpenAiProblem.ts"
import { OpenAiRateLimit } from "../core/RateLimit.ts"
import { NewPlan, Plan, PlanList } from "./Plan.ts"

/** Plans, which administrators make and all users may read. Source: contract/llm#plans-and-subscriptions. */
export class PlansApi extends HttpApiGroup.make("plans")
  .add(
    HttpApiEndpoint.get("listPlans", "/plans", { success: PlanList }).annotate(OpenApi.Summary, "List plans"),
    HttpApiEndpoint.get("readPlan", "/plans/:id", {
      params: { id: PathId },
      success: Plan,
      error: OpenAiNotFound
    }).annotate(OpenApi.Summary, "Read a plan"),
    HttpApiEndpoint.post("createPlan", "/plans", {
      payload: NewPlan,
      success: Plan.pipe(HttpApiSchema.status(201))
    })
      .middleware(OpenAiJsonBody)
      .middleware(OpenAiAdministratorsOnly)
      .annotate(OpenApi.Summary, "Make a plan")
      .annotate(OpenApi.Description, "For administrators.")
  )
  .middleware(OpenAiRateLimit)
  .middleware(OpenAiAuthorization)
  .middleware(OpenAiFaults)
  .annotateMerge(
    OpenApi.annotations({
      title: "Plans",
      description: "Token allowances by hour, day and week, for a price."
    })
  )
  .prefix("/api/v1") {}
