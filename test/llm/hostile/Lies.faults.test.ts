import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { countTokens } from "gpt-tokenizer/encoding/o200k_base"
import { ask } from "#test/harness/ApiClient.ts"
import { until } from "#test/harness/Eventually.ts"
import { chargeIn, onStage } from "../completions/RoutedServer.ts"
import { answersWith, priceOf, tokens } from "../completions/Scripts.ts"
import { done, finishes, says } from "../upstream/Recordings.ts"
import { modelEntry, ScriptedServer } from "../upstream/ScriptedServer.ts"
import { chunk, lastChunk, type Step, streamHead } from "../upstream/ScriptedUpstream.ts"

const listed = "lies/listed"
const routes = "lies/routes"
const gratis = "lies/gratis"
const models = [
  modelEntry(listed),
  modelEntry(routes, { pricing: { prompt: "-1", completion: "-1" } }),
  modelEntry(gratis, { pricing: { prompt: "0", completion: "0" } })
]

const both = [{ stream: false }, { stream: true }]
const text = "Grüße, 世界! It is counted here."

/** Sends a word an event until it is stopped, beyond any limit. */
const goesOn = function* (): Iterable<Step> {
  yield { send: streamHead }
  for (let at = 0; at < 2_400; at++) {
    yield { send: chunk(says(" cat")) }
    if (at % 20 === 19) yield { pauseMillis: 1 }
  }
  for (const last of [finishes(), done]) yield { send: chunk(last) }
  yield { send: lastChunk }
}

layer(ScriptedServer.layer(models), { excludeTestServices: true })(
  "what an upstream says of a call",
  (it) => {
    it.effect("does not stop the ledger, however absurd: costs of a free model and one without prices", () =>
      Effect.flatMap(SqlClient, (sql) =>
        onStage(async ({ caller, play, server }) => {
          const asker = await caller(1)
          for (const cost of [1e25, 1e27, 1e39, 1e60, 1e99, 1e300, Number.MAX_VALUE, 10.000_000_1]) {
            for (const model of [gratis, routes, listed]) {
              for (const fields of both) {
                play({ [model]: answersWith(text, { usage: { ...tokens(7, 3), cost } }) })
                const answer = await asker.say(model, "hi", { ...fields, max_tokens: 50 })
                assert.strictEqual(answer.status, 200, answer.raw)
                assert.isBelow(answer.router?.charged_usd ?? 1, 0.002, `${model}: ${cost}`)
              }
            }
          }
          await until("everything is booked", async () => {
            const { body, status } = await ask(server, "GET", "/api/v1/admin/ledger/verify")
            return status === 200 && (body as { readonly ok: boolean }).ok ? undefined : JSON.stringify(body)
          })
          const [row] = await Effect.runPromise(sql<{ calls: string }>`SELECT count(*)::text AS calls
            FROM cost_estimates WHERE user_id = ${asker.userId} AND reason = 'cost_out_of_bounds'`)
          assert.strictEqual(row?.calls, String(8 * 3 * 2))
        })
      )
    )

    it.effect("is charged up to what was held where no list has a price; the rest is the platform's", () =>
      onStage(async ({ caller, play }) => {
        const asker = await caller(10)
        for (const fields of both) {
          play({ [routes]: answersWith(text, { usage: { ...tokens(10, 4), cost: 5 } }) })
          const answer = await asker.say(routes, "hi", { ...fields, max_tokens: 50 })
          assert.isBelow(answer.router?.charged_usd ?? 1, 0.011, answer.raw)
        }
        assert.isAbove((await asker.credits()).balance_usd, 9.97)
      })
    )

    it.effect("is not believed beyond what was sent, nor where it says nothing of what was said", () =>
      onStage(async ({ caller, play }) => {
        const asker = await caller(1)
        const counted = priceOf(countTokens("hi"), countTokens(text))
        for (const usage of [
          { prompt_tokens: 200_000, completion_tokens: 3 },
          { prompt_tokens: 7, completion_tokens: null },
          { prompt_tokens: 7 },
          { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 },
          { prompt_tokens: 0, completion_tokens: 3 },
          { prompt_tokens: 7, completion_tokens: 90_000 }
        ]) {
          for (const fields of both) {
            play({ [listed]: answersWith(text, { usage }) })
            const answer = await asker.say(listed, "hi", { ...fields, max_tokens: 50 })
            assert.strictEqual(chargeIn(answer), counted, JSON.stringify(usage))
          }
        }
      })
    )

    it.effect("counts thoughts beside the completion where the total says so", () =>
      onStage(async ({ caller, play }) => {
        const asker = await caller(1)
        const usage = {
          prompt_tokens: 10,
          completion_tokens: 4,
          total_tokens: 354,
          completion_tokens_details: { reasoning_tokens: 340 }
        }
        play({ [listed]: answersWith(text, { usage }) })
        const answer = await asker.say(listed, "hi", { max_tokens: 500 })
        assert.strictEqual(chargeIn(answer), priceOf(10, 344))
        assert.deepInclude(answer.usage, { completion_tokens: 344, total_tokens: 354 })
      })
    )

    it.effect("is cut where it goes on beyond what was held, by the balance or by max_tokens", () =>
      onStage(async ({ caller, listen, play }) => {
        play({ [listed]: goesOn })
        for (const { balance, fields, isCredits, most } of [
          { balance: 0.001, fields: { max_tokens: 5_000 }, isCredits: true, most: 417 },
          { balance: 1, fields: { max_tokens: 100 }, isCredits: false, most: 100 }
        ]) {
          const asker = await caller(balance)
          const asked = listen()
          const answer = await asker.say(listed, "hi", { ...fields, stream: true })
          assert.deepStrictEqual([answer.finishReason, answer.error], ["length", undefined])
          assert.strictEqual(answer.router?.truncated, isCredits ? "credits" : undefined)
          const shown = countTokens(answer.text)
          assert.isAtLeast(shown, most)
          assert.isAtMost(shown, most * 1.4 + 40)
          assert.isTrue(chargeIn(answer) <= priceOf(146, most))
          await until("the model was stopped", async () =>
            asked()[0]?.closedEarly === true ? undefined : "it goes on"
          )
        }
      })
    )

    it.effect("is not cut for coming in small pieces", () =>
      onStage(async ({ caller, play }) => {
        const letters = "Nothing of this is missing, though every letter of it comes alone. ".repeat(6)
        const pieces = [...letters].map((letter) => says(letter))
        play({
          [listed]: () => [
            { send: streamHead },
            ...[...pieces, finishes(), done].map((piece) => ({ send: chunk(piece) })),
            { send: lastChunk }
          ]
        })
        const asker = await caller(1)
        const answer = await asker.say(listed, "hi", { stream: true, max_tokens: countTokens(letters) })
        assert.strictEqual(answer.text, letters)
        assert.strictEqual(answer.finishReason, "stop")
      })
    )
  }
)

const thinking = "lies/thinking"
const quick = {
  limits: { hiddenTokensPerSecond: 50_000 }
}

layer(ScriptedServer.layer([modelEntry(thinking, { supported_parameters: ["reasoning"] })], quick), {
  excludeTestServices: true
})("a model that thinks unseen", (it) => {
  it.effect("is ended when its time has used up the credits, and what it may have thought is charged", () =>
    onStage(async ({ caller, listen, play }) => {
      play({ [thinking]: () => [{ send: streamHead }, { send: chunk(": thinking\n\n") }, { silence: true }] })
      const asker = await caller(0.03)
      const asked = listen()
      const answer = await asker.say(thinking, "hi", { stream: true })
      assert.deepStrictEqual([answer.finishReason, answer.text], ["length", ""], answer.raw)
      assert.strictEqual(answer.router?.truncated, "credits")
      assert.isAbove(answer.router?.charged_usd ?? 0, 0.016)
      assert.isAtLeast((await asker.credits()).balance_usd, 0)
      await until("the model was stopped", async () =>
        asked()[0]?.closedEarly === true ? undefined : "it goes on"
      )
    })
  )
})
