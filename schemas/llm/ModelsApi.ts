import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { OpenAiAuthorization, OpenToRouterKeys } from "../core/Authorization.ts"
import { OpenAiErrorBoundary } from "../core/ErrorBoundary.ts"
import { line } from "../core/Text.ts"
import { ModelList, modelQuery, ModelOrCollection } from "./Model.ts"
import { Forbidden, NotFound } from "../core/Problem.ts"

const errors = [Forbidden.openai, NotFound.openai] as const

/**
 * Models and the caller's collections. A limited key sees the models that it may use; any other is 403 whether
 * or not it exists. Source: contract/llm#models-list.
 */
export class ModelsApi extends HttpApiGroup.make("models")
  .add(
    HttpApiEndpoint.get("listModels", "/models", { query: modelQuery, success: ModelList })
      .annotate(OpenApi.Summary, "List models")
      .annotate(
        OpenApi.Description,
        "Collections come first, outside paging, and are left out where models are filtered."
      ),
    HttpApiEndpoint.get("readModel", "/models/:id", {
      params: { id: line(1, 200).annotate({ description: "Id, its slash percent-encoded" }) },
      success: ModelOrCollection,
      error: errors
    }).annotate(OpenApi.Summary, "Read a model"),
    HttpApiEndpoint.get("readProvidersModel", "/models/:provider/:name", {
      params: {
        provider: line(1, 200).annotate({ description: "The id up to its slash, or `collection`" }),
        name: line(1, 200).annotate({ description: "The id behind its slash" })
      },
      success: ModelOrCollection,
      error: errors
    }).annotate(OpenApi.Summary, "Read a model by its id as it is written")
  )
  .middleware(OpenAiAuthorization)
  .middleware(OpenAiErrorBoundary)
  .annotate(OpenToRouterKeys, true)
  .annotateMerge(
    OpenApi.annotations({
      title: "Models",
      description: "What can be asked, and its prices: the upstream's, marked up by its provider."
    })
  )
  .prefix("/api/v1") {}
