import { setTimeout as sleep } from "node:timers/promises"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Exit, Layer, Scope } from "effect"
import { Idempotency } from "#src/infra/postgres/Idempotency.ts"
import { until } from "#test/harness/Eventually.ts"
import type { Caller } from "../Caller.ts"
import { done, finishes, says, tells } from "../upstream/Recordings.ts"
import { modelEntry, ScriptedServer } from "../upstream/ScriptedServer.ts"
import { chunk, lastChunk, streamHead } from "../upstream/ScriptedUpstream.ts"
import { assertFault, onStage, spends } from "./RoutedServer.ts"
import { answersWith, breaksOff, priceOf, refuses, tokens } from "./Scripts.ts"

const model = "text/one"
const good = answersWith("Once is enough", { usage: tokens(10, 5) })

const both = [
  { way: "plain", fields: { max_tokens: 100 } },
  { way: "streamed", fields: { max_tokens: 100, stream: true } }
] as const

let keys = 0
const newKey = () => `key ${++keys}`

const under = (idempotencyKey: string) => ({ headers: { "Idempotency-Key": idempotencyKey } })

const limits = {
  idempotencyBeatMillis: 100,
  idempotencyDeadMillis: 600,
  idempotencyUserAnswers: 1_000,
  idempotencyUserCharacters: 24 * 1024
}

layer(ScriptedServer.layer([modelEntry(model)], { limits }), { excludeTestServices: true })(
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
      "is refused with 409 while the first is in progress, which goes on when its client has left",
      () =>
        onStage(async ({ caller: newCaller, listen, play }) => {
          play({ [model]: (asked) => [{ pauseMillis: 1_500 }, ...good(asked)] })
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
          await until("it is replayed", async () => {
            const { raw, text } = await caller.say(model, "Hello", {}, options)
            return text === "Once is enough" ? undefined : raw
          })
          assert.strictEqual(asked().length, 1)
          await spends(caller, Number(priceOf(10, 5)) / 1e12)
        })
    )

    it.effect(
      "goes on when its client has left amid the stream, is replayed whole, and is charged once",
      () =>
        onStage(async ({ caller: newCaller, listen, play, server }) => {
          const words = Array.from({ length: 30 }, (_, at) => says(`w${at} `))
          const last = [finishes(), tells(tokens(10, 30)), done]
          play({
            [model]: () => [
              { send: streamHead },
              ...[...words, ...last].flatMap((one) => [{ send: chunk(one) }, { pauseMillis: 20 }]),
              { send: lastChunk }
            ]
          })
          const caller = await newCaller(1)
          const options = under(newKey())
          const asked = listen()
          const leaving = new AbortController()
          const fields = {
            model,
            messages: [{ role: "user", content: "Hello" }],
            stream: true,
            max_tokens: 100
          }
          const response = await fetch(`${server.url}/api/v1/chat/completions`, {
            method: "POST",
            headers: { authorization: `Bearer ${caller.key}`, ...options.headers },
            body: JSON.stringify(fields),
            signal: leaving.signal
          })
          const reader = response.body?.getReader()
          await reader?.read()
          leaving.abort()
          await Promise.allSettled([reader?.cancel()])
          await until("it is replayed", async () => {
            const { status, text } = await caller.say(
              model,
              "Hello",
              { stream: true, max_tokens: 100 },
              options
            )
            if (status === 409) return "still in progress"
            assert.strictEqual(text, Array.from({ length: 30 }, (_, at) => `w${at} `).join(""))
            return undefined
          })
          assert.strictEqual(asked().length, 1)
          await spends(caller, Number(priceOf(10, 30)) / 1e12)
        })
    )

    it.effect("is free when the process that had it is silent, and not while it is at work", () =>
      Effect.gen(function* () {
        const claimsOf = Effect.map(Layer.build(Layer.fresh(Idempotency.layer)), (context) =>
          Context.get(context, Idempotency)
        )
        const dying = yield* Scope.make()
        const [dead, alive] = [yield* Scope.provide(claimsOf, dying), yield* claimsOf]
        const request = (key: string) => ({ scope: "call:key_1", userId: "usr_1", key, request: ["{}"] })
        const tagOf = (key: string) => Effect.map(alive.claim(request(key)), ({ _tag }) => _tag)
        assert.strictEqual((yield* dead.claim(request("dead")))._tag, "Claimed")
        assert.strictEqual((yield* alive.claim(request("alive")))._tag, "Claimed")
        yield* Effect.promise(() => sleep(1_000))
        assert.deepStrictEqual([yield* tagOf("dead"), yield* tagOf("alive")], ["InFlight", "InFlight"])
        yield* Scope.close(dying, Exit.void)
        yield* Effect.promise(() =>
          until("the dead one's claim is free", async () =>
            (await Effect.runPromise(tagOf("dead"))) === "Claimed" ? undefined : "not yet"
          )
        )
        assert.strictEqual(yield* tagOf("alive"), "InFlight")
      }).pipe(Effect.scoped)
    )

    it.effect("keeps answers of a user within bounds: the oldest cannot be repeated, nor made again", () =>
      onStage(async ({ caller: newCaller, listen, play }) => {
        const long = "All of this is kept. ".repeat(200)
        play({ [model]: answersWith(long, { usage: tokens(10, 5) }) })
        const [caller, other] = [await newCaller(1), await newCaller(1)]
        const asked = listen()
        const keptFor = async (who: Caller, key: string) =>
          who.say(model, "Hello", { max_tokens: 5 }, under(key))
        await keptFor(other, "first")
        for (let at = 0; at < 12; at++) await keptFor(caller, `bounded ${at}`)
        assert.strictEqual(asked().length, 13)
        assert.strictEqual((await keptFor(other, "first")).status, 200, "another user's are another matter")
        assertFault(await keptFor(caller, "bounded 4"), 409, "conflict_error", "idempotency_conflict")
        assert.strictEqual((await keptFor(caller, "bounded 11")).text, long)
        assert.strictEqual(asked().length, 13)
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
