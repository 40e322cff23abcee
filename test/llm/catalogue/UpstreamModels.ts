/** An entry of an upstream's list, as OpenRouter-shaped upstreams write them. */
export const upstreamModel = (id: string, fields: object = {}): object => ({
  id,
  name: id,
  created: 1_700_000_000,
  description: "",
  context_length: 8_192,
  architecture: { input_modalities: ["text"], output_modalities: ["text"] },
  pricing: { prompt: "0.000001", completion: "0.000002" },
  top_provider: { context_length: 8_192, max_completion_tokens: null, is_moderated: false },
  supported_parameters: ["max_tokens"],
  ...fields
})

export const listOf = (...models: ReadonlyArray<unknown>): string => JSON.stringify({ data: models })

/** A small list with every trap of the real ones: see the notes beside each. */
export const trappedList = listOf(
  upstreamModel("acme/large", {
    name: "Acme: Large",
    created: 1_700_000_005,
    description: "Sees and THINKS.\nSecond line.",
    context_length: 200_000,
    architecture: { input_modalities: ["text", "image"], output_modalities: ["text"] },
    // 19 digits behind the point, and a price that JavaScript prints with an exponent
    pricing: {
      prompt: "0.0000005",
      completion: "0.000003",
      image: "0.00000008333333333333334",
      request: "0.018",
      input_cache_read: "0.00000005",
      internal_reasoning: "0.000004"
    },
    top_provider: { context_length: 200_000, max_completion_tokens: 64_000 },
    supported_parameters: ["max_tokens", "reasoning", "tools"]
  }),
  upstreamModel("acme/free:free", {
    name: "Acme: Free",
    created: 1_700_000_003,
    // absent request and image are 0
    pricing: { prompt: "0", completion: "0" },
    context_length: 100_000,
    supported_parameters: ["tools"]
  }),
  upstreamModel("router/auto", {
    name: "Auto Router",
    created: 1_700_000_009,
    // neither marked up nor free
    pricing: { prompt: "-1", completion: "-1" },
    context_length: 2_000_000
  }),
  upstreamModel("borealis/talk", {
    name: "borealis talk",
    created: 1_700_000_001,
    architecture: { input_modalities: ["text", "audio"], output_modalities: ["text", "audio"] },
    // JSON numbers in place of text
    pricing: { prompt: 5e-7, completion: 2.5e-6, web_search: 0.01 },
    context_length: 99_999
  }),
  upstreamModel("borealis/nearly", {
    name: "Borealis: Nearly free",
    created: 1_700_000_002,
    // free of all that the contract shows
    pricing: { prompt: "0", completion: "0", web_search: "0.01" }
  })
)
