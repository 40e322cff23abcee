import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { AdministratorsOnly, OpenAiAuthorization } from "../core/Authorization.ts"
import { OpenAiErrorBoundary } from "../core/ErrorBoundary.ts"
import { PathId } from "../core/Ids.ts"
import { OpenAiJsonBody } from "../core/JsonBody.ts"
import { NewPlan, Plan, PlanList } from "./Plan.ts"
import { NotFound } from "../core/Problem.ts"

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
