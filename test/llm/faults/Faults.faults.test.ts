import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { countTokens } from "gpt-tokenizer/encoding/o200k_base"
import * as Decimal from "#schemas/llm/Decimal.ts"
import { picoOf, picoOfNumber } from "#schemas/llm/Money.ts"
import type { Caller } from "../Caller.ts"
import type { ChatAnswer } from "../ChatClient.ts"
import { type Charged, type Fault, faults, playOf, type Seen } from "../upstream/Faults.ts"
import { plainRecording, recordedText, recordedUsage, streamRecording } from "../upstream/Recordings.ts"
import { modelEntry, scriptedPrices, ScriptedServer, waitsOf } from "../upstream/ScriptedServer.ts"

const question = "What do you say?"
const good = "good/model"

const decimal = (text: string): Decimal.Decimal => Decimal.parse(text) ?? Decimal.zero
const markup = decimal("1.02")
const times = (price: string, count: number): Decimal.Decimal =>
  Decimal.multiply(decimal(price), decimal(String(count)))

/** Pico-USD of a recorded answer. */
const priceOf = (charged: Charged, { usage }: ChatAnswer): bigint => {
  if (charged === "cost") return picoOf(Decimal.multiply(decimal(String(recordedUsage.cost)), markup))
  const { completion_tokens: completion = 0, prompt_tokens: prompt = 0 } = usage ?? {}
  const cost = Decimal.add(times(scriptedPrices.prompt, prompt), times(scriptedPrices.completion, completion))
  return picoOf(Decimal.multiply(cost, markup))
}

const chargedOf = ({ router }: ChatAnswer): bigint => picoOfNumber(router?.charged_usd ?? 0) ?? 0n

/** Tokens as they are to be said to the client. */
const assertUsage = ({ usage }: ChatAnswer, charged: Charged): void => {
  const { completion_tokens: completion = 0, prompt_tokens: prompt = 0 } = usage ?? {}
  if (charged === "counted") {
    assert.strictEqual(completion, countTokens(recordedText))
    assert.isAtLeast(prompt, countTokens(question))
  } else {
    assert.deepStrictEqual(
      [prompt, completion],
      [recordedUsage.prompt_tokens, recordedUsage.completion_tokens]
    )
  }
}

const assertSeen = (answer: ChatAnswer, sees: Seen): void => {
  if ("fails" in sees) {
    assert.deepStrictEqual([answer.status, answer.error?.code], [sees.fails, sees.code], answer.raw)
    assert.strictEqual(answer.headers.get("retry-after"), sees.retryAfter?.toString() ?? null)
    return
  }
  assert.strictEqual(answer.status, 200, answer.raw)
  if ("breaksOffAfter" in sees) {
    assert.deepStrictEqual([answer.text, answer.finishReason], [sees.breaksOffAfter, "error"], answer.raw)
    assert.deepInclude(answer.error, { type: "upstream_error", code: 502 }, answer.raw)
    assert.strictEqual(chargedOf(answer), 0n, answer.raw)
    return
  }
  assert.deepStrictEqual(
    [answer.text, answer.finishReason, answer.error],
    [recordedText, "stop", undefined],
    answer.raw
  )
  assertUsage(answer, sees.charged)
  assert.strictEqual(chargedOf(answer), priceOf(sees.charged, answer), answer.raw)
  assert.notInclude(answer.raw, `"cost":${recordedUsage.cost}`, "the upstream's own cost never shows")
}

/** Asks in both ways; a stream with its usage. */
const asking = (isStream: boolean): object =>
  isStream ? { stream: true, stream_options: { include_usage: true }, max_tokens: 100 } : { max_tokens: 100 }

const models = [...faults.map(({ name }) => modelEntry(`fault/${name}`)), modelEntry(good)]

/** Waits for upstreams that say nothing: short, and long enough for one that answers on a busy machine. */
const waitMillis = 2_500

/** Faults that are tried at once. */
const parallel = 12

/** The result of a fault, asked of its model alone and of a collection in which another model stands behind it. */
interface Tried {
  readonly plain: ChatAnswer
  readonly streamed: ChatAnswer
  /** where the first member fails before it has said anything */
  readonly plainBehind: ChatAnswer | undefined
  readonly streamedBehind: ChatAnswer | undefined
}

const tryOut = async ({ name, plain, stream }: Fault, caller: Caller): Promise<Tried> => {
  const alone = (isStream: boolean) => caller.say(`fault/${name}`, question, asking(isStream))
  const behind = async (sees: Seen, isStream: boolean) =>
    // A collection of its own: a member that is rate-limited is left alone by the next call.
    "fails" in sees
      ? caller.say(await caller.collect([`fault/${name}`, good]), question, asking(isStream))
      : undefined
  return {
    plain: await alone(false),
    streamed: await alone(true),
    plainBehind: await behind(plain.sees, false),
    streamedBehind: await behind(stream.sees, true)
  }
}

layer(ScriptedServer.layer(models, { limits: waitsOf(waitMillis) }), {
  excludeTestServices: true
})("an upstream that fails", (it) => {
  const tried = new Map<Fault, Promise<Tried>>()
  const spenders: Array<Caller> = []

  /** Begins them all, some at a time, when the first is asked for. */
  const outcomeOf = (fault: Fault) =>
    Effect.gen(function* () {
      const { caller, upstream } = yield* ScriptedServer
      if (tried.size === 0) {
        upstream.script(good, ({ body }) => [
          { send: body.includes(`"stream":true`) ? streamRecording : plainRecording }
        ])
        const lanes = Array.from({ length: parallel }, () => {
          const asker = caller(10)
          void asker.then((made) => spenders.push(made))
          return { asker, last: Promise.resolve<unknown>(undefined) }
        })
        for (const [index, one] of faults.entries()) {
          upstream.script(`fault/${one.name}`, playOf(one))
          const lane = lanes[index % parallel]!
          const outcome = lane.last.then(async () => tryOut(one, await lane.asker))
          lane.last = Promise.allSettled([outcome])
          tried.set(one, outcome)
        }
      }
      return yield* Effect.promise(() => tried.get(fault)!)
    })

  for (const fault of faults) {
    it.effect(`${fault.name}: the caller of a single model sees what the rules say and pays no more`, () =>
      Effect.gen(function* () {
        const { plain, streamed } = yield* outcomeOf(fault)
        assertSeen(plain, fault.plain.sees)
        assertSeen(streamed, fault.stream.sees)
        assert.isTrue(streamed.isDone)
      })
    )
  }

  for (const fault of faults.filter(({ plain, stream }) => "fails" in plain.sees || "fails" in stream.sees)) {
    it.effect(`${fault.name}: the next member answers and the client does not notice`, () =>
      Effect.gen(function* () {
        const { plainBehind, streamedBehind } = yield* outcomeOf(fault)
        for (const answer of [plainBehind, streamedBehind]) {
          if (answer === undefined) continue
          assertSeen(answer, { answers: "recorded", charged: "cost" })
          assert.deepInclude(answer.router, { attempts: 2, resolved: good, auto_route: true })
        }
      })
    )
  }

  it.effect("leaves nothing held, and in the ledger what the answers said", () =>
    Effect.gen(function* () {
      const { settled } = yield* ScriptedServer
      yield* Effect.promise(async () => {
        const outcomes = await Promise.all(tried.values())
        const answers = outcomes.flatMap((outcome) => Object.values<ChatAnswer | undefined>({ ...outcome }))
        const charged = answers.reduce(
          (sum, answer) => sum + (answer === undefined ? 0n : chargedOf(answer)),
          0n
        )
        assert.strictEqual(spenders.length, parallel)
        await settled(spenders, charged)
      })
    })
  )

  it.effect("that refuses connections is 502, and answers again when it is back", () =>
    Effect.gen(function* () {
      const { caller, settled, upstream } = yield* ScriptedServer
      yield* Effect.promise(async () => {
        const asker = await caller(1)
        upstream.script(good, () => [{ send: plainRecording }])
        await upstream.refuse()
        const refused = await asker.say(good, question)
        assert.deepStrictEqual([refused.status, refused.error?.code], [502, "upstream_error"])
        await upstream.listen()
        const answered = await asker.say(good, question)
        assert.strictEqual(answered.status, 200, answered.raw)
        await settled([asker], chargedOf(answered))
      })
    })
  )

  it.effect("is asked once by each call, and never hears the caller's key", () =>
    Effect.gen(function* () {
      const { caller, upstream } = yield* ScriptedServer
      yield* Effect.promise(async () => {
        const asker = await caller(1)
        const before = upstream.askedOf("fault/status-500").length
        await asker.say("fault/status-500", question)
        const asked = upstream.askedOf("fault/status-500").slice(before)
        assert.strictEqual(asked.length, 1)
        assert.notInclude(JSON.stringify(asked), asker.key)
      })
    })
  )
})
