import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { OpenAiAuthorization, OpenToRouterKeys } from "../core/Authorization.ts"
import { OpenAiErrorBoundary } from "../core/ErrorBoundary.ts"
import { CollectionId, PathId } from "../core/Ids.ts"
import { OpenAiJsonBody } from "../core/JsonBody.ts"
import { Collection, CollectionChange, CollectionList, NewCollection } from "./Collection.ts"
import { Conflict, Forbidden, NotFound } from "../core/Problem.ts"

const Deleted = Schema.Struct({ id: CollectionId, deleted: Schema.Literal(true) }).annotate({
  identifier: "DeletedCollection",
  description: "Nothing is routed by it any more"
})

/**
 * Collections of the caller, or of anyone for an administrator. Router keys read the ones that they may use.
 * Source: contract/llm#collections.
 */
export class CollectionsApi extends HttpApiGroup.make("collections")
  .add(
    HttpApiEndpoint.get("listCollections", "/collections", {
      query: {
        user_id: Schema.optionalKey(PathId.annotate({ description: "Whose (administrators only)" }))
      },
      success: CollectionList,
      error: [Forbidden.openai, NotFound.openai]
    })
      .annotate(OpenToRouterKeys, true)
      .annotate(OpenApi.Summary, "List collections"),
    HttpApiEndpoint.post("createCollection", "/collections", {
      payload: NewCollection,
      success: Collection.pipe(HttpApiSchema.status(201)),
      error: [Forbidden.openai, NotFound.openai, Conflict.openai]
    })
      .middleware(OpenAiJsonBody)
      .annotate(OpenApi.Summary, "Make a collection"),
    HttpApiEndpoint.get("readCollection", "/collections/:id", {
      params: { id: PathId },
      success: Collection,
      error: [Forbidden.openai, NotFound.openai]
    })
      .annotate(OpenToRouterKeys, true)
      .annotate(OpenApi.Summary, "Read a collection"),
    HttpApiEndpoint.patch("updateCollection", "/collections/:id", {
      params: { id: PathId },
      payload: CollectionChange,
      success: Collection,
      error: [NotFound.openai, Conflict.openai]
    })
      .middleware(OpenAiJsonBody)
      .annotate(OpenApi.Summary, "Change a collection"),
    HttpApiEndpoint.delete("deleteCollection", "/collections/:id", {
      params: { id: PathId },
      success: Deleted,
      error: NotFound.openai
    }).annotate(OpenApi.Summary, "Delete a collection")
  )
  .middleware(OpenAiAuthorization)
  .middleware(OpenAiErrorBoundary)
  .annotateMerge(
    OpenApi.annotations({
      title: "Collections",
      description: "Models under one name, tried in order: pass `collection/{slug}` as `model`."
    })
  )
  .prefix("/api/v1") {}
