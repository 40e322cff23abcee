import { Schema } from "effect"
import { openStruct } from "../core/OpenStruct.ts"

const tokens = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

/** The additive block of an answer. Source: contract/llm#router-block. */
export const RouterBlock = Schema.Struct({
  requested: Schema.String.annotate({ description: "As sent" }),
  resolved: Schema.String.annotate({ description: "Id of the model that answered; empty where none did" }),
  collection: Schema.optionalKey(Schema.String.annotate({ description: "Slug of the collection asked" })),
  auto_route: Schema.Boolean,
  attempts: Schema.Int.annotate({ description: "Models asked, over all stages" }),
  stages: Schema.Array(Schema.Literals(["vision", "primary"])),
  charged_usd: Schema.Finite.annotate({ description: "USD taken from the credits" }),
  covered_by_subscription: Schema.Boolean.annotate({ description: "A plan's allowance paid" }),
  truncated: Schema.optionalKey(
    Schema.Literal("credits").annotate({ description: "The answer ends where the credits did" })
  )
}).annotate({ identifier: "RouterBlock" })

export const TokenUsage = openStruct({
  prompt_tokens: tokens,
  completion_tokens: Schema.optionalKey(tokens),
  total_tokens: tokens
}).annotate({ identifier: "TokenUsage", description: "Of all stages together" })

/** Source: contract/llm#completions. */
export const ChatCompletion = openStruct({
  id: Schema.String,
  object: Schema.Literal("chat.completion"),
  model: Schema.String.annotate({ description: "The model that answered" }),
  choices: Schema.Array(
    openStruct({
      index: Schema.Int,
      message: openStruct({ role: Schema.String, content: Schema.NullOr(Schema.String) }),
      finish_reason: Schema.NullOr(Schema.String)
    })
  ),
  usage: TokenUsage,
  router: RouterBlock
}).annotate({ identifier: "ChatCompletion", description: "With whatever else the model answers" })
