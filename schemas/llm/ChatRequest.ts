import { Schema } from "effect"
import { openStruct } from "../core/OpenStruct.ts"
import { integer } from "../core/Text.ts"

/**
 * The body of a completion, as the document describes it. The hot route reads it by hand (src/llm/requests/ChatRequest.ts); a
 * property test holds the two to each other. Source: contract/llm#completions; OpenAI, Chat Completions.
 */

/** null counts as absent. */
const optional = <S extends Schema.Constraint>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

const between = (minimum: number, maximum: number) =>
  Schema.Finite.check(
    Schema.isBetween({ minimum, maximum }, { expected: `a number between ${minimum} and ${maximum}` })
  )

const listOf = <S extends Schema.Constraint>(items: S, minimum: number, maximum: number) =>
  Schema.Array(items).check(
    Schema.isBetweenLength(minimum, maximum, { expected: `a list of ${minimum} to ${maximum}` })
  )

const anyObject = Schema.Record(Schema.String, Schema.Unknown)
const anyList = Schema.Array(Schema.Unknown)

export const ModelName = Schema.String.check(
  Schema.isBetweenLength(1, 200, { expected: "the id of a model, at most 200 characters" })
)

const TextPart = openStruct({ type: Schema.Literal("text"), text: Schema.String })

const imageAddress =
  /^([Hh][Tt][Tt][Pp][Ss]?:\/\/[^\s/]|[Dd][Aa][Tt][Aa]:image\/(png|jpe?g|gif|webp|avif|heic|heif);base64,[A-Za-z0-9+/])/u

const ImagePart = openStruct({
  type: Schema.Literal("image_url"),
  image_url: openStruct({
    url: Schema.String.check(
      Schema.isPattern(imageAddress, { expected: "an http(s) address or an image as data" })
    ).annotate({
      description:
        "An address of at most 8,192 characters, or data:image/(png|jpeg|gif|webp|avif|heic|heif);base64,…",
      examples: ["https://example.org/cat.png"]
    })
  })
})

/** Audio, files and other parts that a model takes. */
const OtherPart = openStruct({
  type: Schema.String.check(
    Schema.isPattern(/^(?!(text|image_url)$)/u, { expected: "another type than text and image_url" })
  )
})

const partsOf = (minimum: number) => listOf(Schema.Union([TextPart, ImagePart, OtherPart]), minimum, 1_000)

const Content = Schema.Union([Schema.String, partsOf(1)])

const messageFields = { tool_calls: optional(anyList) }

const Message = Schema.Union([
  openStruct({
    ...messageFields,
    role: Schema.Literals(["system", "developer", "user", "tool", "function"]),
    content: Content
  }),
  openStruct({
    ...messageFields,
    role: Schema.Literal("assistant"),
    content: optional(Schema.Union([Schema.String, partsOf(0)]))
  })
]).annotate({ identifier: "ChatMessage" })

const Tool = Schema.Union([
  openStruct({
    type: Schema.Literal("function"),
    function: openStruct({
      name: Schema.String.check(Schema.isMinLength(1, { expected: "the function's name" }))
    })
  }),
  openStruct({
    type: Schema.String.check(Schema.isPattern(/^(?!function$)/u, { expected: "another type than function" }))
  })
])

const tokens = integer(1, 10_000_000)

export const ChatRequest = openStruct({
  model: ModelName.annotate({
    description: "Id of a model, or `collection/{slug}`",
    examples: ["sandbox/echo"]
  }),
  messages: listOf(Message, 1, 10_000),
  models: optional(listOf(ModelName, 0, 20)).annotate({
    description: "Further models to try, in order, when `model` fails"
  }),
  stream: optional(Schema.Boolean),
  stream_options: optional(openStruct({ include_usage: optional(Schema.Boolean) })),
  tools: optional(listOf(Tool, 0, 1_000)),
  temperature: optional(between(0, 2)),
  top_p: optional(between(0, 1)),
  top_k: optional(integer(-1, 10_000_000)),
  min_p: optional(between(0, 1)),
  frequency_penalty: optional(between(-2, 2)),
  presence_penalty: optional(between(-2, 2)),
  repetition_penalty: optional(between(0, 2)),
  max_tokens: optional(tokens),
  max_completion_tokens: optional(tokens),
  n: optional(integer(1, 16)),
  seed: optional(integer(Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER)),
  logprobs: optional(Schema.Boolean),
  top_logprobs: optional(integer(0, 20)),
  logit_bias: optional(anyObject),
  response_format: optional(anyObject),
  stop: optional(Schema.Union([Schema.String, listOf(Schema.String, 0, 16)]))
}).annotate({
  identifier: "ChatRequest",
  description: "Every other field is passed on to the model as it is"
})
