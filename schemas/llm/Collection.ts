import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Model } from "effect/schema"
import { OpenAiAuthorization, OpenToRouterKeys } from "../core/Authorization.ts"
import { OpenAiErrorBoundary } from "../core/ErrorBoundary.ts"
import { CollectionId, PathId, UserId } from "../core/Ids.ts"
import { OpenAiJsonBody } from "../core/JsonBody.ts"
import { given, hidden, made, madeAt, maybeGiven, shape } from "../core/Noun.ts"
import { Conflict, Forbidden, NotFound } from "../core/Problem.ts"
import { line } from "../core/Text.ts"

/** Longest slug, in characters. */
export const slugLengthMax = 64

const slugExpected = `1 to ${slugLengthMax} characters a-z, 0-9 and inner hyphens`

const Slug = Schema.String.check(
  Schema.isMaxLength(slugLengthMax, { expected: slugExpected }),
  Schema.isPattern(/^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/u, { expected: slugExpected })
).annotate({ description: "Name in `collection/{slug}`, unique among its owner's", examples: ["coding"] })

const Models = Schema.Array(line(1, 200))
  .check(Schema.isMinLength(1, { expected: "at least one model id" }))
  .annotate({ description: "Ids of models, in the order in which they are tried" })

const AutoRoute = Schema.Boolean.annotate({
  description:
    "Try the next model when one fails or is rate-limited; otherwise the first available one answers alone"
})

/** A row of `collections`. Source: contract/llm#collections. */
export class CollectionRow extends Model.Class<CollectionRow>("CollectionRow")({
  id: made(CollectionId),
  user_id: hidden,
  name: given(Schema.String, line(1, 100)),
  /** unique among those of its owner */
  slug: maybeGiven(Schema.String, Slug, { description: "Default: made from the name" }),
  auto_route: maybeGiven(Schema.Boolean, AutoRoute, { default: true }),
  /** ids, in the order in which they are tried */
  models: given(Schema.Array(Schema.String), Models),
  created_at: madeAt
}) {}

const Member = Schema.Struct({
  position: Schema.Int.annotate({ description: "From 0" }),
  id: Schema.String,
  vision: Schema.Boolean,
  free: Schema.Boolean,
  available: Schema.Boolean.annotate({ description: "`false`: the upstream offers it no more" })
}).annotate({ identifier: "CollectionMember" })

export const Collection = Schema.Struct({
  id: CollectionId,
  model: Schema.String.annotate({ description: "`collection/{slug}`: what a completion takes as `model`" }),
  name: Schema.String,
  slug: Schema.String,
  auto_route: Schema.Boolean,
  models: Schema.Array(Member)
}).annotate({ identifier: "Collection", description: "An ordered list of models under one name" })
export type Collection = typeof Collection.Type

const CollectionList = Schema.Struct({
  object: Schema.Literal("list"),
  data: Schema.Array(Collection)
}).annotate({ identifier: "CollectionList", description: "Oldest first" })

export const NewCollection = Schema.Struct({
  ...CollectionRow.jsonCreate.fields,
  user_id: Schema.optionalKey(UserId.annotate({ description: "Whose it is to be (administrators only)" }))
}).annotate({ identifier: "NewCollection" })
export type NewCollection = typeof NewCollection.Type

/** An absent field stays as it is. */
export const CollectionChange = shape("CollectionChange", CollectionRow.jsonUpdate)
export type CollectionChange = typeof CollectionChange.Type

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
