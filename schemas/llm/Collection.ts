import { Schema } from "effect"
import { CollectionId, UserId } from "../core/Ids.ts"
import { line } from "../core/Text.ts"

/** Longest slug, in characters. */
export const slugLengthMax = 64

const slugExpected = `1 to ${slugLengthMax} characters a-z, 0-9 and inner hyphens`

const Slug = Schema.String.check(
  Schema.isMaxLength(slugLengthMax, { expected: slugExpected }),
  Schema.isPattern(/^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/u, { expected: slugExpected })
).annotate({ description: "Name in `collection/{slug}`, unique among its owner's", examples: ["coding"] })

const Name = line(1, 100)

const Models = Schema.Array(line(1, 200))
  .check(Schema.isMinLength(1, { expected: "at least one model id" }))
  .annotate({ description: "Ids of models, in the order in which they are tried" })

const AutoRoute = Schema.Boolean.annotate({
  description:
    "Try the next model when one fails or is rate-limited; otherwise the first available one answers alone"
})

const Member = Schema.Struct({
  position: Schema.Int.annotate({ description: "From 0" }),
  id: Schema.String,
  vision: Schema.Boolean,
  free: Schema.Boolean,
  available: Schema.Boolean.annotate({ description: "`false`: the upstream offers it no more" })
}).annotate({ identifier: "CollectionMember" })

/** Source: contract/llm#collections. */
export const Collection = Schema.Struct({
  id: CollectionId,
  model: Schema.String.annotate({ description: "`collection/{slug}`: what a completion takes as `model`" }),
  name: Schema.String,
  slug: Schema.String,
  auto_route: Schema.Boolean,
  models: Schema.Array(Member)
}).annotate({ identifier: "Collection", description: "An ordered list of models under one name" })
export type Collection = typeof Collection.Type

export const CollectionList = Schema.Struct({
  object: Schema.Literal("list"),
  data: Schema.Array(Collection)
}).annotate({ identifier: "CollectionList", description: "Oldest first" })

/** Source: contract/llm#collections. */
export const NewCollection = Schema.Struct({
  name: Name,
  slug: Schema.optionalKey(Slug.annotate({ description: "Default: made from the name" })),
  auto_route: Schema.optionalKey(AutoRoute.annotate({ default: true })),
  models: Models,
  user_id: Schema.optionalKey(UserId.annotate({ description: "Whose it is to be (administrators only)" }))
}).annotate({ identifier: "NewCollection" })
export type NewCollection = typeof NewCollection.Type

/** An absent field stays as it is. */
export const CollectionChange = Schema.Struct({
  name: Schema.optionalKey(Name),
  slug: Schema.optionalKey(Slug),
  auto_route: Schema.optionalKey(AutoRoute),
  models: Schema.optionalKey(Models)
}).annotate({ identifier: "CollectionChange" })
export type CollectionChange = typeof CollectionChange.Type
