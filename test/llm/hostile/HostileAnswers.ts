import { picoOfNumber } from "#schemas/llm/Money.ts"
import { seededRandom } from "#test/harness/SeededRandom.ts"
import { modelEntry } from "../upstream/ScriptedServer.ts"
import {
  answer,
  chunk,
  lastChunk,
  openEndedHead,
  type Step,
  streamHead
} from "../upstream/ScriptedUpstream.ts"
import { dearCost, dearPrices } from "./UpstreamAccount.ts"

/** One call of the generator: its request, the upstream's answer, and the expected ledger entry. */
export interface HostileCall {
  readonly model: string
  readonly stream: boolean
  readonly maxTokens: number | undefined
  readonly prompt: string
  /** the client leaves after so many milliseconds */
  readonly leavesAfter: number | undefined
  readonly steps: ReadonlyArray<Step>
  readonly expected: Expected
  /** pico-USD of its usage, where that is plausible: booked without an estimate, if anything arrived */
  readonly told: bigint | undefined
  /** for the message of a failure */
  readonly what: string
}

/**
 * Plausible pico-USD of the upstream's report; "estimate": a listed one; "refused": nothing; "either": the answer is
 * open to both.
 */
export type Expected = bigint | "estimate" | "refused" | "either"

const listed = { pricing: dearPrices }
export const hostileModels: ReadonlyArray<object> = [
  modelEntry("hostile/paid", listed),
  modelEntry("hostile/thinking", { ...listed, supported_parameters: ["max_tokens", "reasoning"] }),
  modelEntry("hostile/routes", { pricing: { prompt: "-1", completion: "-1" } }),
  modelEntry("hostile/gratis", { pricing: { prompt: "0", completion: "0" } })
]

class Dice {
  readonly #random: () => number

  constructor(seed: number) {
    this.#random = seededRandom(seed)
  }

  chance(part: number): boolean {
    return this.#random() < part
  }

  below(most: number): number {
    return Math.floor(this.#random() * most)
  }

  pick<A>(list: ReadonlyArray<A>): A {
    const one = list[this.below(list.length)]
    if (one === undefined && list.length === 0) throw new Error("nothing to pick from")
    return one as A
  }
}

const words = [
  "one",
  "Grüße",
  "世界",
  "👋",
  "ꀀꀁ",
  "\u0000",
  "\ufeff",
  "data:",
  '"usage"',
  "a\\nb",
  "x".repeat(40)
]

const textOf = (dice: Dice, most: number): ReadonlyArray<string> =>
  Array.from({ length: dice.below(most) }, () => `${dice.pick(words)} `)

/** Values that no count of tokens can have, and possible ones that are wrong. */
const counts: ReadonlyArray<unknown> = [
  -1,
  1.5,
  1e15,
  1e27,
  1e308,
  2 ** 53,
  1_000_000_001,
  900_000_000,
  "9",
  "",
  null,
  true,
  [],
  {},
  [9],
  "Infinity"
]
const absurdCosts: ReadonlyArray<unknown> = [
  1e9,
  1e25,
  1e27,
  1e39,
  1e60,
  1e101,
  1e300,
  Number.MAX_VALUE,
  -1,
  -1e27
]
const oddCosts: ReadonlyArray<unknown> = [
  "0.5",
  null,
  true,
  [],
  {},
  1e-30,
  5e-324,
  0,
  0.000_000_000_000_1,
  9.99
]

interface Told {
  readonly usage: unknown
  /** as far as the usage goes */
  readonly expected: Expected
  readonly what: string
}

/** An upstream that bills by its list prices, or lies. */
const usageOf = (dice: Dice, model: string, promptTokens: number, outputTokens: number): Told => {
  const cost =
    model === "hostile/gratis"
      ? Number((dice.below(100) / 10_000).toFixed(4))
      : dearCost(promptTokens, outputTokens)
  const honest = {
    prompt_tokens: promptTokens,
    completion_tokens: outputTokens,
    total_tokens: promptTokens + outputTokens,
    cost
  }
  const pico = picoOfNumber(cost) ?? 0n
  const kind = dice.below(8)
  if (kind <= 2) return { usage: honest, expected: pico, what: "honest" }
  if (kind === 3) return { usage: undefined, expected: "estimate", what: "none" }
  if (kind === 4) {
    const absurd = dice.pick(absurdCosts)
    return { usage: { ...honest, cost: absurd }, expected: "estimate", what: `cost ${String(absurd)}` }
  }
  if (kind === 5) {
    const odd = dice.pick(oddCosts)
    return { usage: { ...honest, cost: odd }, expected: "either", what: `cost ${JSON.stringify(odd)}` }
  }
  const field = dice.pick(["prompt_tokens", "completion_tokens", "total_tokens", "all", "details", "shape"])
  const lie = dice.pick(counts)
  const what = `${field} ${JSON.stringify(lie)}`
  if (field === "all") return { usage: lie, expected: "estimate", what }
  if (field === "shape")
    return { usage: { usage: honest, prompt_tokens_details: lie }, expected: "estimate", what }
  if (field === "details") {
    const details = { cached_tokens: lie, cache_write_tokens: lie, reasoning_tokens: lie }
    const usage = {
      ...honest,
      prompt_tokens_details: details,
      completion_tokens_details: dice.pick([details, lie])
    }
    return { usage, expected: "either", what }
  }
  const usage = { ...honest, [field]: lie }
  if (field === "total_tokens") return { usage, expected: pico, what }
  // An upstream may leave out what it says nothing of.
  return { usage, expected: lie === null ? "either" : "estimate", what }
}

const finishes: ReadonlyArray<unknown> = [
  "stop",
  "stop",
  "stop",
  "length",
  "content_filter",
  "tool_calls",
  "error",
  "",
  "null",
  null,
  5,
  true,
  {},
  "no such reason",
  undefined
]

/** A finish reason that ends an answer in any reading of the contract. */
const isSound = (finish: unknown): boolean =>
  typeof finish === "string" && !["error", "", "null"].includes(finish)

interface Made {
  readonly steps: ReadonlyArray<Step>
  readonly expected: Expected
  readonly what: string
}

const frame = (fields: object): string =>
  `data: ${JSON.stringify({ id: "gen-h", object: "chat.completion.chunk", created: 1_767_225_600, ...fields })}\n\n`

const cutEnd = (dice: Dice): Step => ({ end: dice.pick(["close", "reset"] as const) })

const streamOf = (dice: Dice, said: ReadonlyArray<string>, told: Told): Made => {
  const finish = dice.pick(finishes)
  const delta = (fields: object, reason: unknown = null) =>
    frame({ choices: [{ index: 0, delta: fields, finish_reason: reason }] })
  const key = dice.pick(["content", "content", "content", "reasoning", "refusal"])
  const content = said.map((text) => delta({ [key]: text }))
  const end = delta({}, finish)
  const usage = told.usage === undefined ? [] : [frame({ choices: [], usage: told.usage })]
  const well: ReadonlyArray<string> = [...content, end, ...usage, "data: [DONE]\n\n"]
  const what = `finish ${JSON.stringify(finish)}`
  const isAnswer = content.length > 0 || isSound(finish)
  const form = dice.below(8)
  const sent = (frames: ReadonlyArray<string>): ReadonlyArray<Step> => [
    { send: streamHead },
    ...frames.flatMap((one) => [
      { send: chunk(one) },
      ...(dice.chance(0.1) ? [{ pauseMillis: dice.below(8) }] : [])
    ]),
    { send: lastChunk }
  ]
  if (form <= 3) {
    // A reason that says that it failed ends the reading before the usage.
    const expected =
      finish === "error" ? (content.length > 0 ? "estimate" : "refused") : isAnswer ? told.expected : "either"
    return { steps: sent(well), expected, what }
  }
  if (form === 4) {
    const at = dice.below(well.length)
    const broken = dice.pick([
      frame({ error: { code: 502, message: "It broke" } }),
      'data: {"choices":[{"index":0,"delta":{"content":"cut\n\n',
      "data: <html>\n\n"
    ])
    return {
      steps: sent([...well.slice(0, at), broken]),
      expected: "either",
      what: `${what}, broken at ${at}`
    }
  }
  if (form === 5)
    return {
      steps: sent([...usage, ...content, end, "data: [DONE]\n\n"]),
      expected: "either",
      what: `${what}, usage first`
    }
  const bytes = Buffer.from(well.join(""))
  const at = dice.below(bytes.length)
  return {
    steps: [{ send: openEndedHead }, { send: bytes.subarray(0, at) }, cutEnd(dice)],
    expected: "either",
    what: `${what}, cut at ${at}`
  }
}

const plainOf = (dice: Dice, said: ReadonlyArray<string>, told: Told): Made => {
  const finish = dice.pick(finishes)
  const message = { role: "assistant", content: said.join("") }
  const choices = [{ index: 0, message, finish_reason: finish }]
  const body = JSON.stringify({ id: "gen-h", object: "chat.completion", choices, usage: told.usage })
  const what = `finish ${JSON.stringify(finish)}`
  const form = dice.below(8)
  if (form === 0) {
    const status = dice.pick([400, 401, 402, 404, 429, 500, 502, 503])
    const fault = JSON.stringify({ error: { code: status, message: "No" }, usage: told.usage })
    // A plausible charge for a refusal counts; without one, nothing does.
    const expected =
      typeof told.expected === "bigint" ? told.expected : told.expected === "estimate" ? "either" : "either"
    return { steps: [{ send: answer(status, fault) }], expected, what: `status ${status}` }
  }
  if (form === 1) {
    const bytes = answer(200, body)
    const at = dice.below(bytes.length)
    return {
      steps: [{ send: bytes.subarray(0, at) }, cutEnd(dice)],
      expected: "either",
      what: `${what}, cut at ${at}`
    }
  }
  const isEmpty = message.content === "" && !isSound(finish)
  const expected =
    isEmpty || finish === "error"
      ? typeof told.expected === "bigint"
        ? told.expected
        : "either"
      : told.expected
  return { steps: [{ send: answer(200, body) }], expected, what }
}

/** The call of a number, always the same for a seed. */
export const hostileCall = (seed: number, number: number): HostileCall => {
  const dice = new Dice((seed * 1_000_003 + number * 7_919) | 0)
  const model = dice.pick([
    "hostile/paid",
    "hostile/paid",
    "hostile/thinking",
    "hostile/routes",
    "hostile/gratis"
  ])
  const stream = dice.chance(0.6)
  const said = textOf(dice, 40)
  const prompt = `Say it. ${textOf(dice, 30).join("")}`
  const promptTokens = 1 + dice.below(Buffer.byteLength(prompt))
  const told = usageOf(dice, model, promptTokens, said.length + dice.below(200) + 1)
  const made = stream ? streamOf(dice, said, told) : plainOf(dice, said, told)
  const maxTokens = dice.chance(0.8) ? 400 + dice.below(2_000) : undefined
  const leavesAfter = dice.chance(0.12) ? dice.below(30) : undefined
  return {
    model,
    stream,
    maxTokens,
    prompt,
    leavesAfter,
    steps: made.steps,
    expected: made.expected,
    told: typeof told.expected === "bigint" ? told.expected : undefined,
    what: `${model}, ${stream ? "streamed" : "plain"}, usage: ${told.what}, ${made.what}`
  }
}
