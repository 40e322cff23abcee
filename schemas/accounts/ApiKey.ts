import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Model } from "effect/schema"
import { OpenAiAuthorization } from "../core/Authorization.ts"
import { Scopes } from "../core/Credential.ts"
import { OpenAiErrorBoundary } from "../core/ErrorBoundary.ts"
import { CollectionId, KeyId, PathId, UserId } from "../core/Ids.ts"
import { OpenAiJsonBody } from "../core/JsonBody.ts"
import { given, made, madeAt, maybeGiven, shape } from "../core/Noun.ts"
import { Conflict, Forbidden, NotFound } from "../core/Problem.ts"
import { pageQuery } from "../core/Page.ts"
import { integer, line } from "../core/Text.ts"
import { Instant, TimestampOfDate } from "../core/Timestamp.ts"

const KeyKindSchema = Schema.Literals(["account", "router"])

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

const sentInstant = Schema.optionalKey(Schema.NullOr(Instant))
const storedInstant = Schema.NullOr(Schema.Date)

const names = (description: string) => Schema.NullOr(Schema.Array(Schema.String)).annotate({ description })

/** A row of `keys`. Source: contract/accounts#keys. */
export class KeyRow extends Model.Class<KeyRow>("KeyRow")({
  id: made(KeyId),
  name: given(Schema.String, KeyName),
  kind: Model.FieldExcept(["update", "jsonUpdate"])(KeyKindSchema),
  prefix: Model.GeneratedByApp(Schema.String.annotate({ description: "The key's first 12 characters" })),
  user_id: made(UserId),
  scopes: maybeGiven(Schema.Array(Schema.String).annotate({ description: "Of a router key: none" }), Scopes, {
    default: ["full"]
  }),
  models: maybeGiven(
    names("null with `collections` null too: every model; else none but through them"),
    Schema.NullOr(ModelIds)
  ),
  collections: maybeGiven(
    names("null with `models` null too: every collection; else none"),
    Schema.NullOr(CollectionIds)
  ),
  expires_at: Model.Field({
    select: storedInstant,
    insert: storedInstant,
    update: storedInstant,
    json: Schema.NullOr(TimestampOfDate),
    jsonCreate: sentInstant,
    jsonUpdate: sentInstant
  }),
  spend_limit_usd: maybeGiven(Schema.NullOr(Schema.Finite), Schema.NullOr(SpendLimit)),
  rate_limit_per_minute: maybeGiven(Schema.NullOr(Schema.Int), Schema.NullOr(RatePerMinute)),
  created_at: madeAt,
  /** SHA-256 of the key: lower-case hexadecimal in memory */
  hash: Model.Field({ select: Schema.String, insert: Schema.Uint8Array })
}) {}

const ApiKey = shape("ApiKey", KeyRow.json, "A key")

export const NewApiKey = Schema.Struct({
  ...KeyRow.jsonCreate.fields,
  user_id: Schema.optionalKey(UserId.annotate({ description: "Whose key it is to be (administrators only)" }))
}).annotate({ identifier: "NewApiKey" })
export type NewApiKey = typeof NewApiKey.Type

/** The secret is shown once, by `POST /keys`. */
const CreatedApiKey = Schema.Struct({
  ...ApiKey.fields,
  key: Schema.String.annotate({ description: "The key itself: shown now and never again" })
}).annotate({ identifier: "CreatedApiKey", description: "The new key" })

/** A change of a key: `null` lifts a restriction, an absent field keeps its value. */
export const ApiKeyChange = shape("ApiKeyChange", KeyRow.jsonUpdate)
export type ApiKeyChange = typeof ApiKeyChange.Type

export const keysLimitDefault = 100

const ApiKeyList = Schema.Struct({
  object: Schema.Literal("list"),
  data: Schema.Array(ApiKey),
  meta: Schema.Struct({ limit: Schema.Int, offset: Schema.Int, total: Schema.Int })
}).annotate({ identifier: "ApiKeyList", description: "Keys that are not revoked, newest first" })

const Revoked = Schema.Struct({ id: KeyId, deleted: Schema.Literal(true) }).annotate({
  identifier: "RevokedApiKey",
  description: "The key works nowhere within a second"
})

const lastKeyStays =
  "409 `last_administrator_key` where no account key of an administrator would be left: it is neither revoked nor made " +
  "to expire."

/** Keys of the caller, or of anyone for an administrator. Errors in the OpenAI form. Source: contract/accounts#keys. */
export class KeysApi extends HttpApiGroup.make("keys")
  .add(
    HttpApiEndpoint.get("listKeys", "/keys", {
      query: {
        ...pageQuery({ limitDefault: keysLimitDefault, limitMax: 100 }),
        user_id: Schema.optionalKey(PathId.annotate({ description: "Whose keys (administrators only)" }))
      },
      success: ApiKeyList,
      error: [Forbidden.openai, NotFound.openai]
    }).annotate(OpenApi.Summary, "List keys"),
    HttpApiEndpoint.post("createKey", "/keys", {
      payload: NewApiKey,
      success: CreatedApiKey.pipe(HttpApiSchema.status(201)),
      error: [Forbidden.openai, NotFound.openai, Conflict.openai]
    })
      .middleware(OpenAiJsonBody)
      .annotate(OpenApi.Summary, "Make a key")
      .annotate(
        OpenApi.Description,
        "`models`, `collections` and `spend_limit_usd` are for router keys, `scopes` for account keys. A rate above 6,000 requests a minute " +
          "(`RATE_PER_MINUTE_MAX`) is an administrator's to give. A user has at most 100 keys (409)."
      ),
    HttpApiEndpoint.patch("updateKey", "/keys/:id", {
      params: { id: PathId },
      payload: ApiKeyChange,
      success: ApiKey,
      error: [NotFound.openai, Conflict.openai]
    })
      .middleware(OpenAiJsonBody)
      .annotate(OpenApi.Summary, "Change a key")
      .annotate(OpenApi.Description, lastKeyStays),
    HttpApiEndpoint.delete("revokeKey", "/keys/:id", {
      params: { id: PathId },
      success: Revoked,
      error: [NotFound.openai, Conflict.openai]
    })
      .annotate(OpenApi.Summary, "Revoke a key")
      .annotate(OpenApi.Description, lastKeyStays)
  )
  .middleware(OpenAiAuthorization)
  .middleware(OpenAiErrorBoundary)
  .annotateMerge(OpenApi.annotations({ title: "Keys", description: "API keys and their restrictions." }))
  .prefix("/api/v1") {}
