import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { AdministratorsOnly, OpenAiAuthorization, OpenToRouterKeys } from "../core/Authorization.ts"
import { OpenAiErrorBoundary } from "../core/ErrorBoundary.ts"
import { OpenAiJsonBody } from "../core/JsonBody.ts"
import { pageQuery } from "../core/Page.ts"
import {
  CallingKey,
  Credits,
  IdempotencyKey,
  NewTopUp,
  OfUser,
  TopUp,
  TopUpList,
  topUpsLimitDefault
} from "./Credits.ts"
import { Conflict, Forbidden, NotFound } from "../core/Problem.ts"

/** Credits and spend limits. Source: contract/llm#credits. */
export class CreditsApi extends HttpApiGroup.make("credits")
  .add(
    HttpApiEndpoint.get("readCredits", "/credits", { success: Credits })
      .annotate(OpenToRouterKeys, true)
      .annotate(OpenApi.Summary, "Read the credits"),
    HttpApiEndpoint.get("readKey", "/key", { success: CallingKey })
      .annotate(OpenToRouterKeys, true)
      .annotate(OpenApi.Summary, "Read the key that asks"),
    HttpApiEndpoint.get("listTopUps", "/credits/topups", {
      query: { ...pageQuery({ limitDefault: topUpsLimitDefault, limitMax: 1_000 }), ...OfUser },
      success: TopUpList,
      error: [Forbidden.openai, NotFound.openai]
    }).annotate(OpenApi.Summary, "List top-ups"),
    HttpApiEndpoint.post("topUp", "/credits/topups", {
      headers: { "idempotency-key": Schema.optionalKey(IdempotencyKey) },
      payload: NewTopUp,
      success: TopUp.pipe(HttpApiSchema.status(201)),
      error: [NotFound.openai, Conflict.openai]
    })
      .middleware(OpenAiJsonBody)
      .annotate(AdministratorsOnly, true)
      .annotate(OpenApi.Summary, "Add credits")
      .annotate(OpenApi.Description, "For administrators.")
  )
  .middleware(OpenAiAuthorization)
  .middleware(OpenAiErrorBoundary)
  .annotateMerge(OpenApi.annotations({ title: "Credits", description: "Prepaid credits and top-ups." }))
  .prefix("/api/v1") {}
