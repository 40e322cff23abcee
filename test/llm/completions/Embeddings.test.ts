import { assert, layer } from "@effect/vitest"
import { countTokens } from "gpt-tokenizer/encoding/o200k_base"
import { picoOfNumber } from "#schemas/llm/Money.ts"
import { ask } from "#test/harness/ApiClient.ts"
import { until } from "#test/harness/Eventually.ts"
import type { Router, Usage } from "../ChatClient.ts"
import { modelEntry, ScriptedServer } from "../upstream/ScriptedServer.ts"
import { answer, type Script } from "../upstream/ScriptedUpstream.ts"
import { onStage, type Stage, spends } from "./RoutedServer.ts"
import { refuses } from "./Scripts.ts"

const [model, free] = ["embed/model", "embed/free"]
const models = [modelEntry(model), modelEntry(free, { pricing: { prompt: "0", completion: "0" } })]

const data = [{ object: "embedding", index: 0, embedding: [0.25, -1.5e-7] }]
const embeds =
  (usage?: object, more: object = {}): Script =>
  () => [
    { send: answer(200, JSON.stringify({ object: "list", data, model: "upstream-name", usage, ...more })) }
  ]

interface Body {
  readonly object: string
  readonly data: unknown
  readonly model: string
  readonly usage: Usage
  readonly router: Router
  readonly error?: { readonly type: string; readonly code: string | null; readonly param: string | null }
}

const embed = async ({ server }: Stage, key: string, json: object) => {
  const { body, headers, status } = await ask(server, "POST", "/api/v1/embeddings", { key, json })
  return { status, headers, body: body as Body }
}
/** Pico-USD of prompt tokens. */
const priceOf = (tokens: number): bigint => BigInt(tokens) * 1_020_000n

layer(ScriptedServer.layer(models), { excludeTestServices: true })("embeddings", (it) => {
  it.effect(
    "are the upstream's, with the model asked, the usage without its cost, and the router block",
    () =>
      onStage(async (stage) => {
        stage.play({ [model]: embeds({ prompt_tokens: 9, total_tokens: 9 }) })
        const asker = await stage.caller(1)
        const asked = stage.listen()
        const json = { model, input: ["one", "two"], dimensions: 2, encoding_format: "float", user: "u" }
        const { body, headers, status } = await embed(stage, asker.key, json)
        assert.strictEqual(status, 200)
        assert.match(headers.get("x-request-id") ?? "", /^req_/)
        const { router, ...rest } = body
        assert.deepStrictEqual<object>(rest, {
          object: "list",
          data,
          model,
          usage: { prompt_tokens: 9, total_tokens: 9 }
        })
        const { charged_usd: charged, ...block } = router
        assert.strictEqual(picoOfNumber(charged), priceOf(9))
        assert.deepStrictEqual<object>(block, {
          requested: model,
          resolved: model,
          auto_route: false,
          attempts: 1,
          stages: ["primary"],
          covered_by_subscription: false
        })
        assert.match(asked()[0]?.requestLine ?? "", /^POST \S+\/embeddings /)
        assert.deepStrictEqual(JSON.parse(asked()[0]?.body ?? ""), json)
        await spends(asker, charged)
      })
  )

  it.effect("are charged by the upstream's cost, or by tokens that are counted here", () =>
    onStage(async (stage) => {
      const asker = await stage.caller(1)
      const charge = async (input: unknown) =>
        picoOfNumber((await embed(stage, asker.key, { model, input })).body.router.charged_usd)
      stage.play({ [model]: embeds({ prompt_tokens: 9, total_tokens: 9, cost: 0.00005 }) })
      assert.strictEqual(await charge("hello ".repeat(20)), 51_000_000n)
      assert.strictEqual(await charge("hello"), priceOf(5 + 16), "nobody pays more than was held")
      stage.play({ [model]: embeds({ prompt_tokens: 200_000, total_tokens: 200_000 }) })
      assert.strictEqual(await charge("hello"), priceOf(countTokens("hello")))
      stage.play({ [model]: embeds() })
      assert.strictEqual(await charge(["Grüße,", "世界"]), priceOf(countTokens("Grüße,\n世界")))
      stage.play({ [free]: embeds({ prompt_tokens: 9, total_tokens: 9, cost: 1 }) })
      const nothing = await embed(stage, asker.key, { model: free, input: "hello" })
      assert.strictEqual(nothing.body.router.charged_usd, 0)
    })
  )

  it.effect("are refused like completions, and cost nothing then", () =>
    onStage(async (stage) => {
      const asker = await stage.caller(1)
      const poor = await stage.caller(0)
      const input = "hello"
      const scoped = await asker.makeKey({ kind: "router", models: [free] })
      const refusals: ReadonlyArray<
        readonly [key: string, json: object, Script, status: number, code: string | null]
      > = [
        [asker.key, { model: "gone/model", input }, embeds(), 404, "model_not_found"],
        [scoped, { model, input }, embeds(), 403, "model_not_allowed"],
        [scoped, { model: "gone/model", input }, embeds(), 403, "model_not_allowed"],
        [poor.key, { model, input }, embeds(), 402, "insufficient_credits"],
        ["sk_wrong", { model, input }, embeds(), 401, "invalid_api_key"],
        [asker.key, { model }, embeds(), 400, "invalid_value"],
        [asker.key, { model, input }, refuses(500, "no"), 502, "upstream_error"],
        [asker.key, { model, input }, refuses(401, "no"), 502, "upstream_error"],
        [asker.key, { model, input }, refuses(400, "too long"), 400, null],
        [
          asker.key,
          { model, input },
          refuses(429, "busy", { "Retry-After": "9" }),
          429,
          "rate_limit_exceeded"
        ],
        [asker.key, { model, input }, embeds({}, { data: [] }), 502, "upstream_error"]
      ]
      for (const [key, json, script, status, code] of refusals) {
        stage.play({ [model]: script })
        const refused = await embed(stage, key, json)
        assert.deepStrictEqual(
          [refused.status, refused.body.error?.code],
          [status, code],
          JSON.stringify(refused.body)
        )
        assert.strictEqual(refused.headers.get("retry-after"), status === 429 ? "9" : null)
      }
      await spends(asker, 0)
    })
  )

  it.effect("that nobody waits for any more stop the model, and cost what it may have read", () =>
    onStage(async (stage) => {
      const { caller, listen, play, server } = stage
      play({ [model]: () => [{ silence: true }] })
      const asker = await caller(1)
      const asked = listen()
      const leave = new AbortController()
      const left = fetch(`${server.url}/api/v1/embeddings`, {
        method: "POST",
        headers: { authorization: `Bearer ${asker.key}` },
        body: JSON.stringify({ model, input: "hello" }),
        signal: leave.signal
      }).catch((error: Error) => error.name)
      await until("it is under way", async () => (asked().length === 1 ? undefined : "not asked"))
      leave.abort()
      assert.strictEqual(await left, "AbortError")
      await until("the model was stopped", async () =>
        asked()[0]?.closedEarly === true ? undefined : "it goes on"
      )
      await spends(asker, Number(priceOf(countTokens("hello"))) / 1e12)
    })
  )
})
