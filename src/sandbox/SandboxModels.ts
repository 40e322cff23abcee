import { type Behaviour, fromEntry, type SandboxModel } from "./SandboxModel.ts"

/** The properties of one model of the sandbox. */
interface Description {
  readonly id: string
  readonly name: string
  /** its behaviour in words; every description adds that it is no language model */
  readonly does: string
  readonly behaviour?: Behaviour
  readonly wordMillis?: number
  readonly contextLength?: number
  readonly maxCompletionTokens?: number
  readonly input?: ReadonlyArray<string>
  readonly output?: ReadonlyArray<string>
  readonly parameters?: ReadonlyArray<string>
  readonly pricing: Readonly<Record<string, string>>
}

const usual = ["max_tokens", "response_format", "seed", "stop", "structured_outputs", "temperature", "top_p"]
const withTools = [...usual, "tool_choice", "tools"]

const cheap = { prompt: "0.0000001", completion: "0.0000004" }

/** Carries out plans: agents can be tried without a language model, and without credits. */
const coder = {
  does:
    "Carries out a plan with the tools of a coding agent, a step on each line: `read a.txt`, " +
    '`edit a.txt: "old" => "new"`, `write b.txt: "text"`, `ls`, `find *.ts`, `grep "text"`, `run make`, ' +
    '`commit "Say why"`, `say Done.` and more; ask it anything and it says them all.',
  behaviour: "code",
  // A call of a tool has many pieces, and a plan many calls.
  wordMillis: 2,
  contextLength: 131_072,
  maxCompletionTokens: 32_768,
  parameters: [...withTools, "include_reasoning", "reasoning"]
} as const

const working: ReadonlyArray<Description> = [
  {
    id: "sandbox/echo",
    name: "Sandbox Echo",
    does: "Answers with what the last message said; `Write 50 words` writes as many.",
    contextLength: 131_072,
    pricing: {
      prompt: "0.00000008333333333333334",
      completion: "0.0000003300000000000001",
      input_cache_read: "0.00000002083333333333333"
    }
  },
  {
    id: "sandbox/free",
    name: "Sandbox Free",
    does: "Answers like Sandbox Echo and costs nothing.",
    contextLength: 32_768,
    pricing: { prompt: "0", completion: "0" }
  },
  {
    id: "sandbox/coder",
    name: "Sandbox Coder",
    ...coder,
    pricing: { ...cheap, input_cache_read: "0.00000002" }
  },
  {
    id: "sandbox/coder-free",
    name: "Sandbox Coder, free",
    ...coder,
    pricing: { prompt: "0", completion: "0" }
  },
  {
    id: "sandbox/thinker",
    name: "Sandbox Thinker",
    does: "Reasons before it answers, and calls tools.",
    behaviour: "think",
    contextLength: 200_000,
    maxCompletionTokens: 64_000,
    parameters: [...withTools, "include_reasoning", "reasoning"],
    pricing: {
      prompt: "0.000003",
      completion: "0.000015",
      input_cache_read: "0.0000003",
      internal_reasoning: "0.0000175"
    }
  },
  {
    id: "sandbox/vision",
    name: "Sandbox Vision",
    does: "Sees images: names their type, size and SHA-256.",
    contextLength: 65_536,
    input: ["text", "image"],
    pricing: { prompt: "0.00000035", completion: "0.0000014", image: "0.001445" }
  },
  {
    id: "sandbox/tools",
    name: "Sandbox Tools",
    does: "Calls the first tool it is given, then answers with the tool's result.",
    contextLength: 131_072,
    parameters: withTools,
    pricing: { prompt: "0.00000025", completion: "0.00000125", request: "0.00001" }
  },
  {
    id: "sandbox/long",
    name: "Sandbox Long",
    does: "Takes a million tokens, and audio, which it does not listen to.",
    contextLength: 1_048_576,
    input: ["text", "audio"],
    parameters: withTools,
    pricing: {
      prompt: "0.00000125",
      completion: "0.00001",
      audio: "0.0000007",
      input_cache_read: "0.000000125"
    }
  },
  {
    id: "sandbox/small",
    name: "Sandbox Small",
    does: "Has a context of 256 tokens and refuses longer prompts.",
    contextLength: 256,
    pricing: cheap
  },
  {
    id: "sandbox/auto",
    name: "Sandbox Auto",
    does: "Stands for a model that routes: it has no price (-1), only its answers say what they cost.",
    contextLength: 131_072,
    input: ["text", "image"],
    parameters: withTools,
    pricing: { prompt: "-1", completion: "-1" }
  },
  {
    id: "sandbox/embed",
    name: "Sandbox Embed",
    does: "Makes embeddings out of hashes: the same text has the same one, and similar texts have nothing in common.",
    behaviour: "embed",
    contextLength: 8_192,
    output: ["embeddings"],
    parameters: [],
    pricing: { prompt: "0.00000002", completion: "0" }
  }
]

const misbehaving: ReadonlyArray<Description> = [
  {
    id: "sandbox/slow",
    name: "Sandbox Slow",
    does: "Says a word every 200 ms.",
    wordMillis: 200,
    pricing: cheap
  },
  {
    id: "sandbox/stalls",
    name: "Sandbox Stalls",
    does: "Answers 200 and then says nothing.",
    behaviour: "stall",
    pricing: cheap
  },
  {
    id: "sandbox/empty",
    name: "Sandbox Empty",
    does: "Finishes without a word.",
    behaviour: "empty",
    pricing: cheap
  },
  {
    id: "sandbox/fails",
    name: "Sandbox Fails",
    does: "Answers 500.",
    behaviour: "fail",
    pricing: cheap
  },
  {
    id: "sandbox/limited",
    name: "Sandbox Limited",
    does: "Answers 429 with `Retry-After: 1`.",
    behaviour: "limit",
    pricing: cheap
  },
  {
    id: "sandbox/limited-silently",
    name: "Sandbox Limited Silently",
    does: "Answers 429 and does not say when to come back.",
    behaviour: "limit-silently",
    pricing: cheap
  },
  {
    id: "sandbox/unpaid",
    name: "Sandbox Unpaid",
    does: "Answers 402, as an upstream does whose own account is empty.",
    behaviour: "refuse-payment",
    pricing: cheap
  },
  {
    id: "sandbox/breaks",
    name: "Sandbox Breaks",
    does: "Breaks off with an error after five words of a stream; plain calls fail with 502.",
    behaviour: "break",
    pricing: cheap
  },
  {
    id: "sandbox/no-usage",
    name: "Sandbox No Usage",
    does: "Never says how many tokens it took.",
    behaviour: "no-usage",
    pricing: cheap
  },
  {
    id: "sandbox/no-cost",
    name: "Sandbox No Cost",
    does: "Says how many tokens it took, and not what they cost.",
    behaviour: "no-cost",
    pricing: cheap
  }
]

/** Epoch seconds at which the first of them was "made"; every further one is a day older. */
const newest = 1_767_225_600

const entryOf = (description: Description, index: number) => {
  const { contextLength = 32_768, does, id, input = ["text"], name, output = ["text"], pricing } = description
  return {
    id,
    canonical_slug: id,
    hugging_face_id: null,
    name,
    created: newest - index * 86_400,
    description: `${does} (A model of Signalbox's sandbox: a program, no language model.)`,
    context_length: contextLength,
    architecture: {
      modality: `${input.join("+")}->${output.join("+")}`,
      input_modalities: input,
      output_modalities: output,
      tokenizer: "Other",
      instruct_type: null
    },
    pricing,
    top_provider: {
      context_length: contextLength,
      max_completion_tokens: description.maxCompletionTokens ?? null,
      is_moderated: false
    },
    per_request_limits: null,
    supported_parameters: description.parameters ?? usual,
    default_parameters: {},
    expiration_date: null
  }
}

/** The sandbox's own models, the working ones first. */
export const sandboxModels: ReadonlyArray<SandboxModel> = [...working, ...misbehaving].flatMap(
  (description, index) =>
    fromEntry(entryOf(description, index), description.behaviour, description.wordMillis) ?? []
)
