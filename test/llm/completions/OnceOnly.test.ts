import { assert, layer } from "@effect/vitest"
import { until } from "#test/integration/Until.ts"
import type { Caller } from "../Caller.ts"
import { modelEntry, ScriptedServer } from "../upstream/ScriptedServer.ts"
import { assertFault, onStage, spends } from "./RoutedServer.ts"
import { answersWith, breaksOff, refuses, tokens } from "./Scripts.ts"

const model = "text/one"
const good = answersWith("Once is enough", { usage: tokens(10, 5) })

const both = [
  { way: "plain", fields: { max_tokens: 100 } },
  { way: "streamed", fields: { max_tokens: 100, stream: true } }
] as const

let keys = 0
const newKey = () => `key ${++keys}`

const under = (idempotencyKey: string) => ({ headers: { "Idempotency-Key": idempotencyKey } })

layer(ScriptedServer.layer([modelEntry(model)]), { excludeTestServices: true, timeout: 60_000 })(
  "a completion with an Idempotency-Key",
  (it) => {
    for (const { fields, way } of both) {
      it.effect(`is made once and replayed as it was: ${way}`, () =>
        onStage(async ({ caller: newCaller, listen, play }) => {
          play({ [model]: good })
          const caller = await newCaller(1)
          const options = under(newKey())
          const asked = listen()
          const first = await caller.say(model, "Hello", fields, options)
          assert.deepStrictEqual([first.status, first.text], [200, "Once is enough"], first.raw)
          const second = await caller.say(model, "Hello", fields, options)
          assert.strictEqual(second.raw, first.raw)
          assert.strictEqual(second.headers.get("idempotent-replayed"), "true")
          assert.isNull(first.headers.get("idempotent-replayed"))
          assert.strictEqual(second.headers.get("content-type"), first.headers.get("content-type"))
          assert.strictEqual(asked().length, 1)
          await spends(caller, first.router?.charged_usd ?? 0)
        })
      )

      it.effect(`is made again when it failed, and nothing was charged: ${way}`, () =>
        onStage(async ({ caller: newCaller, play }) => {
          const caller = await newCaller(1)
          const options = under(newKey())
          play({ [model]: refuses(500, "Out of order") })
          assertFault(
            await caller.say(model, "Hello", fields, options),
            502,
            "server_error",
            "upstream_error"
          )
          play({ [model]: good })
          const again = await caller.say(model, "Hello", fields, options)
          assert.deepStrictEqual([again.status, again.text], [200, "Once is enough"], again.raw)
          await spends(caller, again.router?.charged_usd ?? 0)
        })
      )
    }

    it.effect("is made again when its stream broke off", () =>
      onStage(async ({ caller: newCaller, play }) => {
        const caller = await newCaller(1)
        const options = under(newKey())
        play({ [model]: breaksOff("Once") })
        const broken = await caller.say(model, "Hello", { stream: true }, options)
        assert.strictEqual(broken.finishReason, "error")
        play({ [model]: good })
        assert.strictEqual(
          (await caller.say(model, "Hello", { stream: true }, options)).text,
          "Once is enough"
        )
      })
    )

    it.effect(
      "is refused with 409 while the first is in progress, and made again once its client has left",
      () =>
        onStage(async ({ caller: newCaller, listen, play }) => {
          play({ [model]: () => [{ silence: true }] })
          const caller = await newCaller(1)
          const options = under(newKey())
          const asked = listen()
          const leaving = new AbortController()
          const first = caller.say(model, "Hello", {}, { ...options, signal: leaving.signal })
          await until("the first is asked", async () => (asked().length === 1 ? undefined : "not yet"))
          assertFault(
            await caller.say(model, "Hello", {}, options),
            409,
            "conflict_error",
            "idempotency_conflict"
          )
          leaving.abort()
          await Promise.allSettled([first])
          play({ [model]: good })
          await until("it is made again", async () => {
            const { raw, text } = await caller.say(model, "Hello", {}, options)
            return text === "Once is enough" ? undefined : raw
          })
        })
    )

    it.effect("is refused with 409 when the key was used with another body", () =>
      onStage(async ({ caller: newCaller, play }) => {
        play({ [model]: good })
        const caller = await newCaller(1)
        const options = under(newKey())
        await caller.say(model, "Hello", {}, options)
        assertFault(
          await caller.say(model, "Hello!", {}, options),
          409,
          "conflict_error",
          "idempotency_conflict"
        )
      })
    )

    it.effect("means another call with another API key", () =>
      onStage(async ({ caller: newCaller, listen, play }) => {
        play({ [model]: good })
        const callers: ReadonlyArray<Caller> = [await newCaller(1), await newCaller(1)]
        const options = under(newKey())
        const asked = listen()
        for (const caller of callers) await caller.say(model, "Hello", {}, options)
        assert.strictEqual(asked().length, 2)
      })
    )

    it.effect("is refused with 400 when the key is too long", () =>
      onStage(async ({ caller: newCaller }) => {
        const caller = await newCaller(1)
        assertFault(
          await caller.say(model, "Hello", {}, under("k".repeat(256))),
          400,
          "invalid_request_error",
          "invalid_value",
          "Idempotency-Key"
        )
      })
    )

    it.effect("is made once when it is sent many times at once", () =>
      onStage(async ({ caller: newCaller, listen, play }) => {
        play({ [model]: good })
        const caller = await newCaller(1)
        const options = under(newKey())
        const asked = listen()
        const answers = await Promise.all(
          Array.from({ length: 20 }, () => caller.say(model, "Hello", {}, options))
        )
        assert.strictEqual(asked().length, 1)
        assert.isAtLeast(answers.filter(({ status }) => status === 200).length, 1)
        assert.deepStrictEqual(
          [...new Set(answers.map(({ status }) => status))].filter(
            (status) => status !== 200 && status !== 409
          ),
          []
        )
      })
    )
  }
)
