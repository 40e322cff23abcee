import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { OpenAiAuthorization } from "../core/Authorization.ts"
import { OpenAiErrorBoundary } from "../core/ErrorBoundary.ts"
import { KeyId, PathId } from "../core/Ids.ts"
import { OpenAiJsonBody } from "../core/JsonBody.ts"
import { pageQuery } from "../core/Page.ts"
import { ApiKey, ApiKeyChange, CreatedApiKey, NewApiKey } from "./ApiKey.ts"
import { Conflict, Forbidden, NotFound } from "../core/Problem.ts"

export const keysLimitDefault = 100

export const ApiKeyList = Schema.Struct({
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
        "`models`, `collections` and `spend_limit_usd` are for router keys. A rate above 6,000 requests a minute " +
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
