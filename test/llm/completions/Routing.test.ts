import { assert, layer } from "@effect/vitest"
import { ask } from "#test/harness/ApiClient.ts"
import { until } from "#test/harness/Eventually.ts"
import { chat, type ChatAnswer } from "../ChatClient.ts"
import { modelEntry, ScriptedServer } from "../upstream/ScriptedServer.ts"
import type { AskedOf } from "../upstream/ScriptedUpstream.ts"
import { assertFault, chargeIn, onStage, spends } from "./RoutedServer.ts"
import { answersWith, breaksOff, priceOf, refuses, tokens, saysNothing } from "./Scripts.ts"

const [one, two, three] = ["route/one", "route/two", "route/three"]
const small = "route/small"
const models = [
  ...[one, two, three].map((id) => modelEntry(id)),
  modelEntry(small, { context_length: 1_000 })
]
const limits = { breakerFailures: 3 }

const good = answersWith("hello", { usage: tokens(10, 5) })
const ids = (asked: ReadonlyArray<AskedOf>): ReadonlyArray<string> => asked.map(({ model }) => model)
const both = [{ max_tokens: 50 }, { max_tokens: 50, stream: true }]

/** The headers that tell clients when to come back. */
const retry = ({ headers }: ChatAnswer): ReadonlyArray<string | null> => [
  headers.get("retry-after"),
  headers.get("x-should-retry")
]

layer(ScriptedServer.layer(models, { limits }), { excludeTestServices: true })("trying members", (it) => {
  it.effect("answers 400 with the first member's words where all of them blame the request", () =>
    onStage(async ({ caller, play }) => {
      play({
        [one]: refuses(422, "The first does not like it"),
        [two]: refuses(413, "too large"),
        [three]: refuses(400, "no")
      })
      const asker = await caller(1)
      const collection = await asker.collect([one, two, three])
      for (const fields of both) {
        const answer = await asker.say(collection, "hi", fields)
        assert.strictEqual(
          assertFault(answer, 400, "invalid_request_error", null),
          "The first does not like it"
        )
        assert.deepStrictEqual(retry(answer), [null, null])
      }
      play({ [one]: refuses(400, "This model's maximum context length is 5 tokens") })
      assertFault(await asker.say(one, "hi"), 400, "invalid_request_error", "context_length_exceeded")
      await spends(asker, 0)
    })
  )

  it.effect("answers 429 with the shortest Retry-After where all of them are rate-limited", () =>
    onStage(async ({ caller, play }) => {
      const asker = await caller(1)
      for (const fields of both) {
        play({
          [one]: refuses(429, "The first is busy", { "Retry-After": "30" }),
          [two]: refuses(429, "busy"),
          [three]: refuses(429, "busy", { "Retry-After": "7" })
        })
        const answer = await asker.say(await asker.collect([one, two, three]), "hi", fields)
        assert.strictEqual(
          assertFault(answer, 429, "rate_limit_error", "rate_limit_exceeded"),
          "The first is busy"
        )
        assert.deepStrictEqual(retry(answer), ["7", null])
        play({ [one]: refuses(429, "busy", { "Retry-After": "61" }), [two]: refuses(429, "busy") })
        const long = await asker.say(await asker.collect([one]), "hi", fields)
        assert.deepStrictEqual(retry(long), ["61", "false"], "clients ignore waits of over a minute")
        assert.deepStrictEqual(retry(await asker.say(await asker.collect([two]), "hi", fields)), [null, null])
      }
      const at = new Date(Date.now() + 20_000).toUTCString()
      play({ [one]: refuses(429, "busy", { "Retry-After": at }) })
      const [seconds] = retry(await asker.say(one, "hi"))
      assert.isTrue(Number(seconds) >= 15 && Number(seconds) <= 20, String(seconds))
    })
  )

  it.effect("answers 502 for any other mixture, and for the platform's own account at the upstream", () =>
    onStage(async ({ caller, play }) => {
      const asker = await caller(1)
      for (const fields of both) {
        play({ [one]: refuses(400, "bad"), [two]: refuses(429, "busy"), [three]: refuses(500, "It broke") })
        const mixed = await asker.say(await asker.collect([one, two, three]), "hi", fields)
        assert.strictEqual(assertFault(mixed, 502, "server_error", "upstream_error"), "It broke")
        const blamed = await asker.say(await asker.collect([one, two]), "hi", fields)
        assertFault(blamed, 502, "server_error", "upstream_error")
        for (const status of [401, 402, 403]) {
          play({ [one]: refuses(status, "Key sk-or-v1-secret has no credits") })
          const answer = await asker.say(one, "hi", fields)
          const message = assertFault(answer, 502, "server_error", "upstream_error")
          assert.notInclude(message, "secret", "the platform's account is nobody's business")
          assert.notInclude(message, "credits")
        }
      }
    })
  )

  it.effect("asks the caller's own list of fallbacks in order, each once, and tells who answered", () =>
    onStage(async ({ caller, listen, play }) => {
      play({ [one]: refuses(500, "no"), [two]: saysNothing, [three]: good })
      const asker = await caller(1)
      for (const fields of both) {
        const asked = listen()
        const answer = await asker.say(one, "hi", { ...fields, models: [one, two, "gone/model", three] })
        assert.deepStrictEqual(ids(asked()), [one, two, three], "an empty answer is none")
        const { charged_usd: _, ...router } = answer.router ?? assert.fail(answer.raw)
        assert.deepStrictEqual(router, {
          requested: one,
          resolved: three,
          auto_route: false,
          attempts: 3,
          stages: ["primary"],
          covered_by_subscription: false
        })
        assert.strictEqual(chargeIn(answer), priceOf(10, 5))
        assert.notInclude(asked()[2]?.body, "models", "the list is this server's business")
      }
    })
  )

  it.effect("takes a whole answer that ends with an error for none", () =>
    onStage(async ({ caller, play }) => {
      play({ [one]: answersWith("half an answer", { finish: "error", usage: tokens(10, 5) }), [two]: good })
      const asker = await caller(1)
      const answer = await asker.say(await asker.collect([one, two]), "hi")
      assert.deepStrictEqual([answer.text, answer.finishReason], ["hello", "stop"], answer.raw)
      assert.deepInclude(answer.router, { attempts: 2, resolved: two })
      assertFault(await asker.say(one, "hi"), 502, "server_error", "upstream_error")
      await spends(asker, answer.router?.charged_usd ?? 0)
    })
  )

  it.effect("does not try another one once something was shown", () =>
    onStage(async ({ caller, listen, play }) => {
      play({ [one]: breaksOff("half"), [two]: good })
      const asker = await caller(1)
      const asked = listen()
      const answer = await asker.say(await asker.collect([one, two]), "hi", { stream: true })
      assert.deepStrictEqual(
        [answer.text, answer.finishReason, answer.isDone],
        ["half", "error", true],
        answer.raw
      )
      assert.deepInclude(answer.router, { attempts: 1, resolved: one, charged_usd: 0 })
      assert.deepStrictEqual(ids(asked()), [one])
    })
  )

  it.effect("leaves out a member that fails again and again, and one that asks to be left alone", () =>
    onStage(async ({ caller, listen, play }) => {
      play({
        [one]: refuses(500, "broken"),
        [two]: refuses(429, "busy", { "Retry-After": "60" }),
        [three]: good
      })
      const asker = await caller(1)
      const collection = await asker.collect([one, two, three])
      const asked = listen()
      for (let index = 0; index < 4; index++) await asker.say(collection, "hi", both[index % 2])
      assert.deepStrictEqual(ids(asked()), [one, two, three, one, three, one, three, three])
      // Each collection has its own; a caller that asks for the model itself gets it.
      assertFault(await asker.say(one, "hi"), 502, "server_error", "upstream_error")
      const other = await asker.collect([one, three])
      assert.deepInclude((await asker.say(other, "hi")).router, { attempts: 2 })
    })
  )
})

layer(ScriptedServer.layer(models, { limits: { ratePerMinute: 120, rateBurst: 60 } }), {
  excludeTestServices: true
})("answers of completions", (it) => {
  const raw = (url: string, key: string, body: string, headers: Readonly<Record<string, string>> = {}) =>
    fetch(`${url}/api/v1/chat/completions`, {
      method: "POST",
      headers: { ...(key === "" ? {} : { authorization: `Bearer ${key}` }), ...headers },
      body
    })

  it.effect("carry the request's id and what is left of the key's rate, plain, streamed and refused", () =>
    onStage(async ({ caller, play }) => {
      play({ [one]: good })
      const asker = await caller(1)
      const key = await asker.makeKey({ kind: "router" })
      const options = { headers: { "x-request-id": "req-of-the-caller", authorization: `Bearer ${key}` } }
      const left: Array<number> = []
      for (const [model, fields] of [
        [one, {}],
        [one, { stream: true }],
        ["gone/model", {}]
      ] as const) {
        const { headers } = await asker.say(model, "hi", fields, options)
        assert.strictEqual(headers.get("x-request-id"), "req-of-the-caller")
        assert.strictEqual(headers.get("ratelimit-limit"), "120")
        assert.match(headers.get("ratelimit-reset") ?? "", /^\d+$/)
        left.push(Number(headers.get("ratelimit-remaining")))
      }
      assert.deepStrictEqual(
        left,
        left.toSorted((a, b) => b - a)
      )
      assert.isAtMost(Math.max(...left), 59)
      const { headers } = await asker.say(one, "hi", {})
      assert.match(headers.get("x-request-id") ?? "", /^req_\w{22}$/)
    })
  )

  it.effect(
    "are errors in the OpenAI form: 401 for no or a wrong key, 404 for no model, 413 for too much, 400 for no JSON",
    () =>
      onStage(async ({ caller, server, upstream }) => {
        const asker = await caller(1)
        const before = upstream.asked.length
        const nobody = await chat(server, "sk_wrong", { model: one, messages: [] })
        assertFault(nobody, 401, "authentication_error", "invalid_api_key")
        assert.strictEqual((await raw(server.url, "", "{}")).status, 401)
        assertFault(
          await asker.say("gone/model", "hi"),
          404,
          "invalid_request_error",
          "model_not_found",
          "model"
        )
        assertFault(
          await asker.say("collection/gone", "hi"),
          404,
          "invalid_request_error",
          "model_not_found",
          "model"
        )
        const large = await raw(server.url, asker.key, " ".repeat(20 * 1024 * 1024 + 1))
        assert.strictEqual(large.status, 413)
        assert.deepInclude(((await large.json()) as { error: object }).error, {
          type: "invalid_request_error",
          code: "payload_too_large",
          param: null
        })
        const broken = await raw(server.url, asker.key, `{"model":`)
        assert.strictEqual(broken.status, 400)
        const wrong = await ask(server, "GET", "/api/v1/chat/completions")
        assert.deepStrictEqual([wrong.status, wrong.headers.get("allow")?.includes("POST")], [405, true])
        assert.strictEqual(upstream.asked.length, before)
      })
  )

  it.effect(
    "are 400 context_length_exceeded for a prompt that no model asked can hold, of which 10 MB are one",
    () =>
      onStage(async ({ caller, listen, play }) => {
        play({ [one]: good, [small]: good })
        const asker = await caller(100)
        const asked = listen()
        const long = "a ".repeat(5 * 1024 * 1024)
        const refused = await asker.say(one, long)
        assertFault(refused, 400, "invalid_request_error", "context_length_exceeded", "messages")
        const medium = "a ".repeat(10_000)
        assertFault(
          await asker.say(small, medium),
          400,
          "invalid_request_error",
          "context_length_exceeded",
          "messages"
        )
        assert.deepStrictEqual(asked(), [])
        assert.deepInclude((await asker.say(small, medium, { models: [one] })).router, { attempts: 1 })
      })
  )

  it.effect("are 429 with Retry-After beyond the key's rate", () =>
    onStage(async ({ caller, play, server }) => {
      play({ [one]: good })
      const asker = await caller(1)
      const key = await asker.makeKey({ kind: "router", rate_limit_per_minute: 1 })
      const say = () => chat(server, key, { model: one, messages: [{ role: "user", content: "hi" }] })
      await until("the rate is reached", async () => ((await say()).status === 429 ? undefined : "not yet"))
      const limited = await say()
      assertFault(limited, 429, "rate_limit_error", "rate_limit_exceeded")
      assert.match(limited.headers.get("retry-after") ?? "", /^[1-9]\d*$/)
      assert.strictEqual(limited.headers.get("ratelimit-remaining"), "0")
    })
  )

  it.effect("count in the statistics of their owner, with those that failed", () =>
    onStage(async ({ caller, play, server }) => {
      play({ [one]: good, [two]: refuses(500, "no") })
      const asker = await caller(1)
      for (const [model, fields] of [
        [one, {}],
        [one, { stream: true }],
        [two, {}],
        ["gone/model", {}]
      ] as const)
        await asker.say(model, "hi", fields)
      await until("the statistics have them", async () => {
        const { body } = await ask(server, "GET", "/api/v1/stats", { key: asker.key })
        const { apiStats } = body as {
          readonly apiStats: { readonly requestsToday: number; readonly errorCount: number }
        }
        const { errorCount, requestsToday } = apiStats
        return requestsToday >= 4 && errorCount === 2 ? undefined : JSON.stringify(apiStats)
      })
    })
  )
})

layer(ScriptedServer.layer(models, { rateLimitMode: "block" }), {
  excludeTestServices: true
})("a rate limit that is configured to block", (it) => {
  it.effect("answers completions 403 with Retry-After", () =>
    onStage(async ({ caller, play, server }) => {
      play({ [one]: good })
      const asker = await caller(1)
      const key = await asker.makeKey({ kind: "router", rate_limit_per_minute: 1 })
      const say = () => chat(server, key, { model: one, messages: [{ role: "user", content: "hi" }] })
      await until("the rate is reached", async () => ((await say()).status === 200 ? "not yet" : undefined))
      const blocked = await say()
      assertFault(blocked, 403, "permission_error", null)
      assert.match(blocked.headers.get("retry-after") ?? "", /^[1-9]\d*$/)
    })
  )
})
