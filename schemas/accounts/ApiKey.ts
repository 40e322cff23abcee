import { Schema } from "effect"
import { CollectionId, KeyId, UserId } from "../core/Ids.ts"
import { integer, line } from "../core/Text.ts"
import { Instant, Timestamp } from "../core/Timestamp.ts"

export const KeyKindSchema = Schema.Literals(["account", "router"])

const KeyName = line(1, 100)
const ModelIds = Schema.Array(line(1, 200)).check(
  Schema.isMaxLength(1000, { expected: "at most 1000 model ids" })
)
const CollectionIds = Schema.Array(CollectionId).check(
  Schema.isMaxLength(1000, { expected: "at most 1000 collection ids" })
)
const SpendLimit = Schema.Finite.check(
  Schema.isBetween({ minimum: 0, maximum: 1_000_000_000 }, { expected: "an amount between 0 and 1000000000" })
).annotate({ description: "USD" })
const RatePerMinute = integer(1, 1_000_000).annotate({
  description: "Requests per minute, instead of the default"
})

/** A key as its owner sees it; the secret is shown once, by `POST /keys`. Source: contract/accounts#keys. */
const fields = {
  id: KeyId,
  name: Schema.String,
  kind: KeyKindSchema,
  prefix: Schema.String.annotate({ description: "The key's first 12 characters" }),
  user_id: UserId,
  models: Schema.NullOr(Schema.Array(Schema.String)).annotate({
    description: "null with `collections` null too: every model; else none but through them"
  }),
  collections: Schema.NullOr(Schema.Array(Schema.String)).annotate({
    description: "null with `models` null too: every collection; else none"
  }),
  expires_at: Schema.NullOr(Timestamp),
  spend_limit_usd: Schema.NullOr(Schema.Finite),
  rate_limit_per_minute: Schema.NullOr(Schema.Int),
  created_at: Timestamp
}

export const ApiKey = Schema.Struct(fields).annotate({ identifier: "ApiKey", description: "A key" })
export type ApiKey = typeof ApiKey.Type

export const NewApiKey = Schema.Struct({
  name: KeyName,
  kind: KeyKindSchema,
  models: Schema.optionalKey(Schema.NullOr(ModelIds)),
  collections: Schema.optionalKey(Schema.NullOr(CollectionIds)),
  expires_at: Schema.optionalKey(Schema.NullOr(Instant)),
  spend_limit_usd: Schema.optionalKey(Schema.NullOr(SpendLimit)),
  rate_limit_per_minute: Schema.optionalKey(Schema.NullOr(RatePerMinute)),
  user_id: Schema.optionalKey(UserId.annotate({ description: "Whose key it is to be (administrators only)" }))
}).annotate({ identifier: "NewApiKey" })
export type NewApiKey = typeof NewApiKey.Type

/** A key and its secret. */
export const CreatedApiKey = Schema.Struct({
  ...fields,
  key: Schema.String.annotate({ description: "The key itself: shown now and never again" })
}).annotate({ identifier: "CreatedApiKey", description: "The new key" })
export type CreatedApiKey = typeof CreatedApiKey.Type

/** A change of a key: `null` lifts a restriction, an absent field keeps its value. */
export const ApiKeyChange = Schema.Struct({
  name: Schema.optionalKey(KeyName),
  models: Schema.optionalKey(Schema.NullOr(ModelIds)),
  collections: Schema.optionalKey(Schema.NullOr(CollectionIds)),
  expires_at: Schema.optionalKey(Schema.NullOr(Instant)),
  spend_limit_usd: Schema.optionalKey(Schema.NullOr(SpendLimit)),
  rate_limit_per_minute: Schema.optionalKey(Schema.NullOr(RatePerMinute))
}).annotate({ identifier: "ApiKeyChange" })
export type ApiKeyChange = typeof ApiKeyChange.Type
