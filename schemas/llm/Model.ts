import { Schema } from "effect"
import { CollectionId } from "../core/Ids.ts"
import { integer, line } from "../core/Text.ts"

const price = (of: string) =>
  Schema.String.annotate({
    description: `USD ${of}, markup included; \`-1\`: the model routes, and what it costs is known afterwards`,
    examples: ["0.000000255"]
  })

const Modalities = Schema.Array(Schema.String).annotate({ examples: [["text", "image"]] })

/**
 * A model that may be asked. `created`, `description`, `supported_parameters` and `top_provider` are there for clients of
 * OpenRouter-shaped lists. Source: contract/llm#models-list.
 */
export const Model = Schema.Struct({
  id: Schema.String.annotate({ examples: ["openai/gpt-5"] }),
  object: Schema.Literal("model"),
  created: Schema.Int.annotate({ description: "Epoch seconds; 0 where the upstream does not say" }),
  owned_by: Schema.String.annotate({ description: "The id's first segment" }),
  name: Schema.String,
  description: Schema.String,
  context_length: Schema.Int.annotate({ description: "Tokens; 0 where the upstream does not say" }),
  architecture: Schema.Struct({ input_modalities: Modalities, output_modalities: Modalities }),
  categories: Schema.Array(Schema.String).annotate({
    description: "Some of vision, tools, long-context (from 100,000 tokens), free, reasoning, audio"
  }),
  pricing: Schema.Struct({
    prompt: price("per token"),
    completion: price("per token"),
    request: price("per request"),
    image: price("per image")
  }),
  supported_parameters: Schema.Array(Schema.String),
  top_provider: Schema.Struct({
    context_length: Schema.Int,
    max_completion_tokens: Schema.NullOr(Schema.Int)
  })
}).annotate({ identifier: "Model", description: "A model of the upstream" })
export type Model = typeof Model.Type

/** A collection in the list of models; completions take its id as `model`. Source: contract/llm#models-list. */
export const CollectionModel = Schema.Struct({
  id: Schema.String.annotate({ description: "`collection/{slug}`" }),
  object: Schema.Literal("model"),
  owned_by: Schema.String,
  name: Schema.String,
  collection: Schema.Struct({ id: CollectionId, auto_route: Schema.Boolean })
}).annotate({ identifier: "CollectionModel", description: "A collection, as a model" })
export type CollectionModel = typeof CollectionModel.Type

export const ModelOrCollection = Schema.Union([CollectionModel, Model])

/** Source: contract/llm#models-list. */
export const ModelList = Schema.Struct({
  object: Schema.Literal("list"),
  data: Schema.Array(ModelOrCollection),
  meta: Schema.Struct({
    total: Schema.Int.annotate({ description: "Models that match" }),
    returned: Schema.Int.annotate({ description: "Models on this page" }),
    collections: Schema.Int.annotate({ description: "Collections ahead of them" })
  })
}).annotate({ identifier: "ModelList", description: "Collections first, then models" })

const words = (of: string) => line(0, 200).annotate({ description: `Comma-separated ${of}, all required` })

export const modelSorts = [
  "name",
  "newest",
  "price-asc",
  "price-desc",
  "context-desc",
  "context-asc"
] as const

/** Source: contract/llm#models-list. */
export const modelQuery = {
  search: Schema.optionalKey(
    line(0, 200).annotate({ description: "Part of id, name or description, in any case" })
  ),
  category: Schema.optionalKey(words("tags")),
  input_modality: Schema.optionalKey(words("input modalities")),
  free: Schema.optionalKey(Schema.Boolean.annotate({ description: "`true`: models that cost nothing" })),
  tools: Schema.optionalKey(Schema.Boolean.annotate({ description: "`true`: models that call tools" })),
  min_context: Schema.optionalKey(
    integer(0, Number.MAX_SAFE_INTEGER).annotate({ description: "Smallest context, in tokens" })
  ),
  max_prompt_price: Schema.optionalKey(
    Schema.Finite.check(
      Schema.isBetween(
        { minimum: 0, maximum: 1_000_000_000 },
        { expected: "a price between 0 and 1000000000" }
      )
    ).annotate({ description: "USD per million prompt tokens" })
  ),
  sort: Schema.optionalKey(Schema.Literals(modelSorts).annotate({ default: "name" })),
  limit: Schema.optionalKey(
    integer(1, 2_147_483_647).annotate({ description: "Page size; default: all that match" })
  ),
  offset: Schema.optionalKey(
    integer(0, 2_147_483_647).annotate({ description: "Models to skip", default: 0 })
  ),
  include_collections: Schema.optionalKey(
    Schema.Boolean.annotate({ description: "`false`: models alone", default: true })
  )
}

const ModelQuery = Schema.Struct(modelQuery)
export type ModelQuery = typeof ModelQuery.Type
