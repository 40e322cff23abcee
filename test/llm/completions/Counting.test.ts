import { assert, layer } from "@effect/vitest"
import { countTokens } from "gpt-tokenizer/encoding/o200k_base"
import { modelEntry, ScriptedServer } from "../upstream/ScriptedServer.ts"
import { chargeIn, onStage, spends, toldUsage } from "./RoutedServer.ts"
import { answersWith, priceOf, tokens } from "./Scripts.ts"

const model = "count/model"
const text = "Grüße, 世界! It is counted here. 👋"

layer(ScriptedServer.layer([modelEntry(model)]), { excludeTestServices: true })("tokens", (it) => {
  for (const stream of [false, true]) {
    const way = stream ? "streamed" : "plain"
    it.effect(`that the upstream does not tell are counted by o200k_base, ${way}`, () =>
      onStage(async ({ caller, play }) => {
        play({ [model]: answersWith(text, {}) })
        const asker = await caller(1)
        const tools = [
          { type: "function", function: { name: "weather", description: "of a city", parameters: {} } }
        ]
        const calls = [
          { id: "c1", type: "function", function: { name: "weather", arguments: `{"city":"Oslo"}` } }
        ]
        const messages = [
          { role: "system", content: "Be short. <|endoftext|> is text here." },
          { role: "user", content: [{ type: "text", text: "How is Oslo?" }] },
          { role: "assistant", content: null, tool_calls: calls },
          { role: "tool", content: "Rain", tool_call_id: "c1" }
        ]
        const said = [
          "Be short. <|endoftext|> is text here.",
          "How is Oslo?",
          JSON.stringify(calls),
          "Rain",
          JSON.stringify(tools)
        ]
        const answer = await asker.say(model, "", {
          messages,
          tools,
          stream,
          stream_options: { include_usage: true }
        })
        const prompt = countTokens(said.join("\n"), { disallowedSpecial: new Set() })
        const used = tokens(prompt, countTokens(text))
        assert.deepStrictEqual(answer.usage, toldUsage(answer, used, stream), answer.raw)
        assert.strictEqual(chargeIn(answer), priceOf(prompt, countTokens(text)))
        await spends(asker, answer.router?.charged_usd ?? 0)
      })
    )

    it.effect(
      `that it tells count where they can be true, ${way}, and a cost of its own counts before them`,
      () =>
        onStage(async ({ caller, play }) => {
          const asker = await caller(1)
          play({ [model]: answersWith(text, { usage: tokens(7, 3) }) })
          assert.strictEqual(chargeIn(await asker.say(model, "hi", { stream })), priceOf(7, 3))
          play({ [model]: answersWith(text, { usage: { ...tokens(7, 3), cost: 0.0000123456 } }) })
          assert.strictEqual(chargeIn(await asker.say(model, "hi", { stream })), 12_592_512n)
          play({ [model]: answersWith(text, { usage: tokens(7, 900_000_000) }) })
          const counted = await asker.say(model, "hi", { stream, max_tokens: 50 })
          assert.strictEqual(chargeIn(counted), priceOf(countTokens("hi"), countTokens(text)))
        })
    )
  }
})
