import { Schema } from "effect"
import { openStruct } from "../core/OpenStruct.ts"
import { RouterBlock, TokenUsage } from "./ChatCompletion.ts"
import { ModelName } from "./ChatRequest.ts"

/** Texts to embed, and their vectors. Source: OpenAI, Embeddings; contract/llm#embeddings. */

const text = Schema.String.check(Schema.isMinLength(1, { expected: "a text that is not empty" }))
const tokenId = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0, { expected: "the id of a token" }))
const tokenIds = Schema.Array(tokenId).check(Schema.isMinLength(1, { expected: "at least one token" }))

export const EmbeddingsRequest = openStruct({
  model: ModelName.annotate({ description: "Id of a model", examples: ["sandbox/embed"] }),
  input: Schema.Union([
    text,
    tokenIds,
    Schema.Array(Schema.Union([text, tokenIds])).check(
      Schema.isBetweenLength(1, 2_048, { expected: "1 to 2,048 texts" })
    )
  ]).annotate({ description: "A text, up to 2,048 texts, or lists of token ids in place of texts" }),
  encoding_format: Schema.optionalKey(Schema.Literals(["float", "base64"])),
  dimensions: Schema.optionalKey(
    Schema.Int.check(Schema.isGreaterThan(0, { expected: "a whole number above 0" }))
  )
}).annotate({
  identifier: "EmbeddingsRequest",
  description: "Every other field is passed on to the model as it is"
})

export const EmbeddingList = openStruct({
  object: Schema.Literal("list"),
  data: Schema.Array(
    openStruct({
      index: Schema.Int,
      embedding: Schema.Union([Schema.Array(Schema.Finite), Schema.String])
    })
  ),
  model: Schema.String,
  usage: TokenUsage,
  router: RouterBlock
}).annotate({ identifier: "EmbeddingList", description: "One embedding for each input, in their order" })
