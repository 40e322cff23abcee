import { assert, layer } from "@effect/vitest"
import { countTokens } from "gpt-tokenizer/encoding/o200k_base"
import { ask, textAt } from "#test/harness/ApiClient.ts"
import { until } from "#test/harness/Eventually.ts"
import { chat } from "../ChatClient.ts"
import type { Caller } from "../Caller.ts"
import { chunk, type Script, streamHead } from "../upstream/ScriptedUpstream.ts"
import { says } from "../upstream/Recordings.ts"
import { modelEntry, ScriptedServer } from "../upstream/ScriptedServer.ts"
import { assertFault, chargeIn, onStage, type Stage, spends } from "./RoutedServer.ts"
import { answersWith, priceOf, tokens } from "./Scripts.ts"

const [model, other, free] = ["pay/model", "pay/other", "pay/free"]
const models = [
  modelEntry(model),
  modelEntry(other),
  modelEntry(free, { pricing: { prompt: "0", completion: "0" } })
]
const limits = { streamHoldTokens: 20, ledgerWaitMillis: 150 }

const used = { usage: tokens(10, 5) }
const price = priceOf(10, 5)
const said = { messages: [{ role: "user", content: "hi" }] }
/** Tokens that are reckoned for the message above. */
const promptEstimate = 17

/** A plan of these models, to which the caller is subscribed from now on. */
const subscribe = async ({ server }: Stage, { userId }: Caller, plan: object): Promise<void> => {
  const allowances = { hour: 1_000_000, day: 1_000_000, week: 1_000_000 }
  const fields = {
    name: "Plan",
    price_usd: 20,
    scope: "all",
    covers_direct_api: true,
    models: "*",
    allowances,
    ...plan
  }
  const planId = textAt(await ask(server, "POST", "/api/v1/plans", { json: fields }), "id")
  const current_period_end = new Date(Date.now() + 86_400_000).toISOString()
  const json = { user_id: userId, plan_id: planId, current_period_end }
  textAt(await ask(server, "POST", "/api/v1/subscriptions", { json }), "id")
}

/** Waits until each window says that so many tokens were drawn. */
const draws = ({ server }: Stage, { key }: Caller, drawn: number): Promise<void> =>
  until("the allowances say what was drawn", async () => {
    const { body } = await ask(server, "GET", "/api/v1/subscription", { key })
    const { allowances } = body as { readonly allowances: ReadonlyArray<{ readonly tokens_used: number }> }
    const all = allowances.map(({ tokens_used }) => tokens_used)
    return all.length === 3 && all.every((tokens) => tokens === drawn) ? undefined : `${all} of ${drawn}`
  })

/** Streams slowly until the client leaves, a token an event. */
const endless: Script = function* () {
  yield { send: streamHead }
  for (let index = 0; index < 10_000; index++) {
    yield { send: chunk(says(" cat")) }
    yield { pauseMillis: 2 }
  }
}

layer(ScriptedServer.layer(models, { limits }), { excludeTestServices: true })(
  "what completions cost:",
  (it) => {
    for (const fields of [{ max_tokens: 50 }, { max_tokens: 50, stream: true }]) {
      const way = "stream" in fields ? "streamed" : "plain"

      it.effect(
        `4, ${way}: a plan that covers the model and direct calls pays, and the credits stay as they are`,
        () =>
          onStage(async (stage) => {
            stage.play({ [model]: answersWith("covered", used), [other]: answersWith("charged", used) })
            const asker = await stage.caller(1)
            await subscribe(stage, asker, { models: [model] })
            const covered = await asker.say(model, "hi", fields)
            assert.deepInclude(covered.router, { covered_by_subscription: true, charged_usd: 0 }, covered.raw)
            await draws(stage, asker, 15)
            const charged = await asker.say(other, "hi", fields)
            assert.deepInclude(charged.router, { covered_by_subscription: false }, charged.raw)
            assert.strictEqual(chargeIn(charged), price, "the plan does not cover this model")
            // Each model that may come to answer has to be covered.
            const mixed = await asker.say(model, "hi", { ...fields, models: [other] })
            assert.deepInclude(mixed.router, { covered_by_subscription: false, resolved: model })
            await spends(asker, 2 * (charged.router?.charged_usd ?? 0))
            await draws(stage, asker, 15)
          })
      )

      it.effect(`5, ${way}: a plan without covers_direct_api leaves direct calls to the credits`, () =>
        onStage(async (stage) => {
          stage.play({ [model]: answersWith("charged", used) })
          const asker = await stage.caller(1)
          await subscribe(stage, asker, { covers_direct_api: false })
          const answer = await asker.say(model, "hi", fields)
          assert.deepInclude(answer.router, { covered_by_subscription: false })
          assert.strictEqual(chargeIn(answer), price)
          await spends(asker, answer.router?.charged_usd ?? 0)
          await draws(stage, asker, 0)
        })
      )
    }

    it.effect(
      "4: a call that one of the windows cannot take is charged to credits, and 402 without any",
      () =>
        onStage(async (stage) => {
          stage.play({ [model]: answersWith("charged", used) })
          const allowances = { hour: 1_000_000, day: 1_000_000, week: promptEstimate }
          const [rich, poor] = [await stage.caller(1), await stage.caller(0)]
          for (const asker of [rich, poor]) await subscribe(stage, asker, { allowances })
          const answer = await rich.say(model, "hi", { max_tokens: 50 })
          assert.strictEqual(chargeIn(answer), price, answer.raw)
          const refused = await poor.say(model, "hi", { max_tokens: 50 })
          assertFault(refused, 402, "insufficient_quota", "insufficient_credits")
        })
    )

    it.effect("6: without credits a call is 402, nobody is asked, and free models answer all the same", () =>
      onStage(async ({ caller, listen, play }) => {
        play({ [model]: answersWith("never", used), [free]: answersWith("free", used) })
        const asker = await caller(0)
        const asked = listen()
        for (const stream of [false, true]) {
          const refused = await asker.say(model, "hi", { stream })
          assertFault(refused, 402, "insufficient_quota", "insufficient_credits")
          assert.deepStrictEqual(
            [refused.headers.get("retry-after"), refused.headers.get("x-should-retry")],
            [null, null]
          )
          const answer = await asker.say(free, "hi", { stream })
          assert.deepStrictEqual(
            [answer.status, answer.text, chargeIn(answer)],
            [200, "free", 0n],
            answer.raw
          )
        }
        assert.deepStrictEqual(
          asked().map(({ model: id }) => id),
          [free, free]
        )
      })
    )

    it.effect("6: a key that has reached its spend limit is 402, and another key of its owner is not", () =>
      onStage(async ({ caller, play, server }) => {
        play({ [model]: answersWith("hello", used) })
        const asker = await caller(1)
        // Enough for one such call.
        const key = await asker.makeKey({ kind: "router", spend_limit_usd: 0.00016 })
        const capped = () => chat(server, key, { model, ...said, max_tokens: 1 })
        const first = await capped()
        assert.deepStrictEqual([first.status, chargeIn(first)], [200, price], first.raw)
        assertFault(await capped(), 402, "insufficient_quota", "key_spend_limit")
        const free = await asker.say(model, "hi", { max_tokens: 1 })
        assert.strictEqual(free.status, 200)
        await spends(asker, 2 * (free.router?.charged_usd ?? 0))
      })
    )

    it.effect("6: a key is 403 beyond its models and collections, whether or not there is such a one", () =>
      onStage(async ({ caller, listen, play, server }) => {
        play({ [model]: answersWith("hello", used), [other]: answersWith("hello", used) })
        const asker = await caller(1)
        const [allowed, beyond] = [await asker.collect([other]), await asker.collect([other])]
        const list = await ask(server, "GET", "/api/v1/collections", { key: asker.key })
        const { data } = list.body as {
          readonly data: ReadonlyArray<{ readonly id: string; readonly model: string }>
        }
        const collections = data.filter((one) => one.model === allowed).map(({ id }) => id)
        const toModels = await asker.makeKey({ kind: "router", models: [model] })
        const toCollections = await asker.makeKey({ kind: "router", collections })
        const asked = listen()
        for (const requested of [other, "gone/model", allowed, "collection/gone"])
          assertFault(
            await chat(server, toModels, { model: requested, ...said }),
            403,
            "permission_error",
            "model_not_allowed",
            "model"
          )
        for (const requested of [model, other, "gone/model", beyond, "collection/gone"])
          assertFault(
            await chat(server, toCollections, { model: requested, ...said }),
            403,
            "permission_error",
            "model_not_allowed",
            "model"
          )
        const fallback = await chat(server, toModels, { model, models: [other], ...said })
        assertFault(fallback, 403, "permission_error", "model_not_allowed", "models[0]")
        assert.deepStrictEqual(asked(), [])
        for (const [key, requested] of [
          [toModels, model],
          [toCollections, allowed]
        ] as const)
          assert.strictEqual((await chat(server, key, { model: requested, ...said })).status, 200)
        const embedding = { key: toCollections, json: { model: other, input: "hi" } }
        assert.strictEqual((await ask(server, "POST", "/api/v1/embeddings", embedding)).status, 403)
      })
    )

    /** Pays the prompt's estimate and 40.5 output tokens. */
    const little = 0.0002316

    it.effect(
      "a hold cuts max_tokens to what the credits cover, and says so where the answer ends there",
      () =>
        onStage(async ({ caller, listen, play }) => {
          const asked = listen()
          for (const fields of [{ max_tokens: 1_000 }, { max_tokens: 1_000, stream: true }, {}]) {
            const asker = await caller(little)
            play({ [model]: answersWith("cut here", { usage: tokens(17, 40), finish: "length" }) })
            const cut = await asker.say(model, "hi", fields)
            assert.deepInclude(JSON.parse(asked().at(-1)?.body ?? ""), { max_tokens: 40 })
            assert.deepInclude(cut.router, { truncated: "credits" }, cut.raw)
            assert.deepStrictEqual([cut.finishReason, chargeIn(cut)], ["length", priceOf(17, 40)])
            await spends(asker, cut.router?.charged_usd ?? 0)
            assertFault(
              await asker.say(model, "hi", fields),
              402,
              "insufficient_quota",
              "insufficient_credits"
            )
          }
          const asker = await caller(little)
          play({ [model]: answersWith("all of it", used) })
          const whole = await asker.say(model, "hi", { max_tokens: 1_000 })
          assert.notProperty(whole.router, "truncated")
          assert.strictEqual(chargeIn(whole), price)
        })
    )

    it.effect("a hold is shared by the answers that are wanted to one question", () =>
      onStage(async ({ caller, listen, play }) => {
        play({ [model]: answersWith("hello", used) })
        const asker = await caller(little)
        const asked = listen()
        await asker.say(model, "hi", { n: 2, max_tokens: 1_000 })
        assert.deepInclude(JSON.parse(asked()[0]?.body ?? ""), { n: 2, max_tokens: 20 })
        const rest = await asker.say(model, "hi", { n: 16, max_tokens: 1_000 })
        assert.strictEqual(rest.status, 200)
        assert.deepInclude(JSON.parse(asked()[1]?.body ?? ""), { n: 16, max_tokens: 1 })
      })
    )

    it.effect("a hold grows with a long stream, of which nothing is missing", () =>
      onStage(async ({ caller, listen, play }) => {
        const words = Array.from({ length: 300 }, (_, index) => `w${index} `).join("")
        play({ [model]: answersWith(words, { usage: tokens(10, 300) }) })
        const asker = await caller(1)
        const asked = listen()
        const answer = await asker.say(model, "hi", { stream: true })
        assert.deepStrictEqual([answer.text, answer.finishReason], [words, "stop"])
        assert.notProperty(JSON.parse(asked()[0]?.body ?? ""), "max_tokens", "nobody asked for a limit")
        assert.strictEqual(chargeIn(answer), priceOf(10, 300))
        assert.notProperty(answer.router, "truncated")
        await spends(asker, answer.router?.charged_usd ?? 0)
      })
    )

    it.effect(
      "a hold ends a stream that the credits cannot pay any longer, charges what was shown, and stops the model",
      () =>
        onStage(async ({ caller, listen, play }) => {
          play({ [model]: endless })
          const asker = await caller(little)
          const asked = listen()
          const answer = await asker.say(model, "hi", {
            stream: true,
            stream_options: { include_usage: true }
          })
          assert.deepInclude(answer.router, { truncated: "credits" }, answer.raw)
          assert.deepStrictEqual(
            [answer.finishReason, answer.error, answer.isDone],
            ["length", undefined, true]
          )
          const shown = countTokens(answer.text)
          assert.isAtLeast(answer.frames.length, 30)
          const cost = answer.router?.charged_usd ?? 0
          assert.deepStrictEqual(answer.usage, { ...tokens(countTokens("hi"), shown), cost })
          await until("the model was stopped", async () =>
            asked()[0]?.closedEarly === true ? undefined : "it goes on"
          )
          await spends(asker, answer.router?.charged_usd ?? 0)
          assert.isAtLeast((await asker.credits()).balance_usd, 0)
        })
    )

    it.effect(
      "a hold stands in the way of other calls for a moment: 402 with a Retry-After, until it is given back",
      () =>
        onStage(async ({ caller, listen, play }) => {
          play({ [model]: () => [{ send: streamHead }, { send: chunk(says(" cat")) }, { silence: true }] })
          const asker = await caller(little)
          const asked = listen()
          const leave = new AbortController()
          const running = asker.say(
            model,
            "hi",
            { stream: true, max_tokens: 10_000 },
            { signal: leave.signal }
          )
          const left = running.then(
            () => assert.fail("it never ends by itself"),
            (error: Error) => error.name
          )
          await until("the stream is under way", async () => (asked().length === 1 ? undefined : "not asked"))
          const busy = await asker.say(model, "hi", { max_tokens: 5 })
          assertFault(busy, 402, "insufficient_quota", "insufficient_credits")
          assert.deepStrictEqual(
            [busy.headers.get("retry-after"), busy.headers.get("x-should-retry")],
            ["1", "true"]
          )
          leave.abort()
          assert.strictEqual(await left, "AbortError")
          play({ [model]: answersWith("hello", used) })
          await until("there are credits again", async () => {
            const again = await asker.say(model, "hi", { max_tokens: 5 })
            return again.status === 200 ? undefined : again.raw
          })
        })
    )
  }
)
