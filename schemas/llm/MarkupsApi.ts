import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { AdministratorsOnly, Authorization } from "../core/Authorization.ts"
import { ErrorBoundary } from "../core/ErrorBoundary.ts"
import { JsonBody } from "../core/JsonBody.ts"
import { Markup, MarkupChange, MarkupList, Provider } from "./Markup.ts"

/** The markup on each provider's models, for administrators. Errors in the plain form. Source: contract/llm#prices. */
export class MarkupsApi extends HttpApiGroup.make("markups")
  .add(
    HttpApiEndpoint.get("listMarkups", "/markups", { success: MarkupList }).annotate(
      OpenApi.Summary,
      "List markups"
    ),
    HttpApiEndpoint.get("readMarkup", "/markups/:provider", {
      params: { provider: Provider },
      success: Markup
    }).annotate(OpenApi.Summary, "Read a provider's markup"),
    HttpApiEndpoint.put("setMarkup", "/markups/:provider", {
      params: { provider: Provider },
      payload: MarkupChange,
      success: Markup
    })
      .middleware(JsonBody)
      .annotate(OpenApi.Summary, "Set a provider's markup")
      .annotate(OpenApi.Description, "For calls from then on, everywhere within a second.")
  )
  .annotate(AdministratorsOnly, true)
  .middleware(Authorization)
  .middleware(ErrorBoundary)
  .annotateMerge(
    OpenApi.annotations({
      title: "Markups",
      description: "For account keys of administrators: what is added to the upstream's prices."
    })
  )
  .prefix("/api/v1/admin") {}
