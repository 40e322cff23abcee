import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { OpenAiAuthorization, OpenToRouterKeys } from "../core/Authorization.ts"
import { OpenAiErrorBoundary } from "../core/ErrorBoundary.ts"
import { ChatCompletion } from "./ChatCompletion.ts"
import { ChatRequest } from "./ChatRequest.ts"
import { IdempotencyKey } from "./Credits.ts"
import { EmbeddingList, EmbeddingsRequest } from "./Embeddings.ts"
import {
  BadGateway,
  Conflict,
  Forbidden,
  NotFound,
  PayloadTooLarge,
  PaymentRequired
} from "../core/Problem.ts"

const headers = { "idempotency-key": Schema.optionalKey(IdempotencyKey) }

const errors = [
  PaymentRequired.openai,
  Forbidden.openai,
  NotFound.openai,
  Conflict.openai,
  PayloadTooLarge.openai,
  BadGateway.openai
] as const

/**
 * Calls of models, as the document describes them. These endpoints are served beside the Effect pipeline, by
 * src/llm/calls/CompletionRoutes.ts with hand-written decoders; a property test holds them to these schemas.
 * Source: contract/llm#completions.
 */
export class CompletionsApi extends HttpApiGroup.make("completions")
  .add(
    HttpApiEndpoint.post("complete", "/chat/completions", {
      headers,
      payload: ChatRequest,
      success: ChatCompletion,
      error: errors
    })
      .annotate(OpenApi.Summary, "Complete a conversation")
      .annotate(
        OpenApi.Description,
        "With `stream: true` the answer is `text/event-stream`: the model's own chunks (`chat.completion.chunk`); with " +
          "`stream_options.include_usage` one with the usage, what was charged as its `cost`; then the summary, `event: " +
          "router.summary`, a chunk of the same stream with an empty choice, that usage where it was not told before, " +
          "`type: router.summary` and `router`; then `[DONE]`. Comments keep the connection alive. A model that fails after its first word " +
          "ends the stream with a chunk that has `finish_reason: error` and `error`, whose `code` is the status and " +
          "whose `type` says what happened, and nothing is charged. A key that ends, ends its streams: with such a " +
          "chunk of code 401, charged for what was sent."
      ),
    HttpApiEndpoint.post("embed", "/embeddings", {
      headers,
      payload: EmbeddingsRequest,
      success: EmbeddingList,
      error: errors
    }).annotate(OpenApi.Summary, "Embed texts")
  )
  .middleware(OpenAiAuthorization)
  .middleware(OpenAiErrorBoundary)
  .annotate(OpenToRouterKeys, true)
  .annotateMerge(
    OpenApi.annotations({
      title: "Completions",
      description: "Calls of models, charged to the credits of the key's owner or drawn from a plan."
    })
  )
  .prefix("/api/v1") {}
