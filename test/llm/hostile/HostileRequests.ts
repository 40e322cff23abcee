import { seededRandom } from "#test/harness/SeededRandom.ts"

/** A piece of JSON text that `JSON.stringify` cannot say: overflowing numbers, names that come twice, brackets without end. */
export class RawJson {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

/** As `JSON.stringify`, with raw pieces as they are. */
export const textOf = (value: unknown): string => {
  if (value instanceof RawJson) return value.text
  if (Array.isArray(value)) return `[${value.map(textOf).join()}]`
  if (typeof value === "object" && value !== null)
    return `{${Object.entries(value)
      .map(([name, member]) => `${JSON.stringify(name)}:${textOf(member)}`)
      .join()}}`
  return JSON.stringify(value) ?? "null"
}

export interface HostileRequest {
  readonly body: string
  /** which fields were replaced, for the report of a failure */
  readonly changed: ReadonlyArray<string>
}

const members = (count: number): string =>
  Array.from({ length: count }, (_, index) => `"k${index}":${index}`).join()

const texts: ReadonlyArray<unknown> = [
  "",
  "\ud800",
  "a\udc00b",
  "\ud83d\ude00",
  "\u0000",
  "\uffff\ufffe\ufeff",
  "\u202e\u2028\u2029",
  "'\";DROP TABLE calls;--",
  "a".repeat(5_000),
  "𝄞".repeat(2_000),
  "\\u0000\n\r\t\b",
  "__proto__",
  "collection/\ud800",
  new RawJson('"\\ud800\\u0000"'),
  new RawJson('"\\uD83D"')
]

const numbers: ReadonlyArray<unknown> = [
  0,
  -0,
  -1,
  0.5,
  2 ** 31,
  2 ** 53,
  -(2 ** 63),
  1e21,
  5e-324,
  Number.MAX_VALUE,
  new RawJson("1e400"),
  new RawJson("-1e999"),
  new RawJson("9".repeat(400)),
  new RawJson(`0.${"0".repeat(400)}1`)
]

const shapes: ReadonlyArray<unknown> = [
  null,
  true,
  false,
  [],
  {},
  [[]],
  [null],
  { __proto__x: { toString: 1 } },
  new RawJson('{"__proto__":{"stream":true},"constructor":1}'),
  new RawJson('{"a":1,"a":2,"\\u0061":3}'),
  new RawJson(`{${members(2_000)}}`),
  new RawJson(`{${members(6_000)}}`),
  new RawJson(`${"[".repeat(40)}${"]".repeat(40)}`),
  new RawJson(`${"[".repeat(200)}${"]".repeat(200)}`),
  new RawJson(`${'{"a":'.repeat(5_000)}1${"}".repeat(5_000)}`),
  new RawJson(`[${"0,".repeat(3_000)}0]`)
]

/** Now and then, since they are long. */
const heavy: ReadonlyArray<unknown> = [
  new RawJson(`{${members(50_000)}}`),
  new RawJson(`{${members(110_000)}}`),
  new RawJson(`[${"0,".repeat(300_000)}0]`),
  "long \ud83d\ude00 ".repeat(40_000),
  new RawJson("[".repeat(300_000))
]

type Path = ReadonlyArray<string | number>

/** Every field that a completion has, here and at other upstreams. */
const fields: ReadonlyArray<Path> = [
  ...[
    [
      "model",
      "models",
      "messages",
      "stream",
      "stream_options",
      "temperature",
      "top_p",
      "top_k",
      "min_p",
      "n",
      "seed"
    ],
    [
      "max_tokens",
      "max_completion_tokens",
      "frequency_penalty",
      "presence_penalty",
      "repetition_penalty",
      "stop"
    ],
    ["tools", "tool_choice", "parallel_tool_calls", "functions", "response_format", "logit_bias", "logprobs"],
    [
      "top_logprobs",
      "user",
      "metadata",
      "plugins",
      "provider",
      "reasoning",
      "prediction",
      "modalities",
      "preset"
    ],
    [
      "transforms",
      "web_search_options",
      "service_tier",
      "store",
      "usage",
      "\ud800",
      "__proto__",
      "\u0000",
      ""
    ]
  ]
    .flat()
    .map((name) => [name]),
  ["models", 0],
  ["stream_options", "include_usage"],
  ["stop", 0],
  ["messages", 0],
  ["messages", 0, "role"],
  ["messages", 0, "content"],
  ["messages", 0, "name"],
  ["messages", 0, "tool_calls"],
  ["messages", 0, "reasoning_details"],
  ["messages", 1, "content", 0],
  ["messages", 1, "content", 0, "type"],
  ["messages", 1, "content", 0, "text"],
  ["messages", 1, "content", 1, "image_url"],
  ["messages", 1, "content", 1, "image_url", "url"],
  ["messages", 1, "content", 1, "image_url", "detail"],
  ["tools", 0],
  ["tools", 0, "type"],
  ["tools", 0, "function"],
  ["tools", 0, "function", "name"],
  ["tools", 0, "function", "parameters"],
  ["response_format", "json_schema"]
]

const soundBody = (model: string, isStreamed: boolean): Record<string, unknown> => ({
  model,
  messages: [
    { role: "system", content: "Be brief." },
    { role: "user", content: [{ type: "text", text: "What is this?" }] }
  ],
  max_tokens: 20,
  stream: isStreamed
})

/** Puts a value at a path, with what has to be around it. */
const put = (target: unknown, [step, ...rest]: Path, value: unknown): unknown => {
  if (step === undefined) return value
  const isList = typeof step === "number"
  const around =
    target !== null && typeof target === "object" && !(target instanceof RawJson) ? target : isList ? [] : {}
  const entries = new Map<string, unknown>(Object.entries(around))
  const changed = put(entries.get(String(step)), rest, value)
  if (isList && Array.isArray(around)) return Object.assign([...around], { [step]: changed })
  // Not by assignment: `__proto__` has to become a member.
  return Object.fromEntries(entries.set(String(step), changed))
}

/** Requests without end, the same ones for the same seed. */
export function* hostileRequests(seed: number, models: ReadonlyArray<string>): Generator<HostileRequest> {
  const random = seededRandom(seed)
  const oneOf = <A>(from: ReadonlyArray<A>): A => {
    const one = from[Math.floor(random() * from.length)]
    if (one === undefined) throw new Error("nothing to choose from")
    return one
  }
  const value = (): unknown => oneOf(random() < 0.02 ? heavy : oneOf([texts, numbers, shapes]))
  for (;;) {
    let body: unknown = soundBody(oneOf(models), random() < 0.5)
    const changed: Array<string> = []
    for (let count = Math.floor(random() * 3); count >= 0; count--) {
      const path = oneOf(fields)
      body = put(body, path, value())
      changed.push(path.join("."))
    }
    let text = textOf(body)
    if (random() < 0.05) {
      text = text.slice(0, Math.floor(random() * text.length))
      changed.push("cut")
    }
    yield { body: text, changed }
  }
}
