import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import * as fc from "fast-check"
import { until } from "#test/harness/Eventually.ts"
import type { Caller } from "../Caller.ts"
import { chat, type OpenAiError } from "../ChatClient.ts"
import { plainRecording } from "../upstream/Recordings.ts"
import { modelEntry, ScriptedServer } from "../upstream/ScriptedServer.ts"

/**
 * Requests that must never become a 500, a charge or a call of the upstream. Source: contract/llm#completions,
 * contract/http#bodies.
 */
const good = "good/model"
const said = [{ role: "user", content: "hello" }]
const withImage = (url: unknown) => [{ role: "user", content: [{ type: "image_url", image_url: { url } }] }]

/** Fields over a sound request, and the parameter that is to be blamed. */
const invalid: ReadonlyArray<readonly [fields: object, param: string | null]> = [
  [{ model: undefined }, "model"],
  [{ model: "" }, "model"],
  [{ model: 7 }, "model"],
  [{ model: "x".repeat(10_000) }, "model"],
  [{ models: "good/model" }, "models"],
  [{ models: [7] }, "models[0]"],
  [{ models: Array.from({ length: 1_000 }, () => good) }, "models"],
  [{ messages: undefined }, "messages"],
  [{ messages: [] }, "messages"],
  [{ messages: "hello" }, "messages"],
  [{ messages: [null] }, "messages[0]"],
  [{ messages: [{ content: "hello" }] }, "messages[0].role"],
  [{ messages: [{ role: "emperor", content: "hello" }] }, "messages[0].role"],
  [{ messages: [{ role: "user" }] }, "messages[0].content"],
  [{ messages: [{ role: "user", content: 7 }] }, "messages[0].content"],
  [{ messages: [{ role: "user", content: [] }] }, "messages[0].content"],
  [{ messages: [{ role: "user", content: ["hello"] }] }, "messages[0].content[0]"],
  [{ messages: [{ role: "user", content: [{ type: "text" }] }] }, "messages[0].content[0].text"],
  [{ messages: withImage(undefined) }, "messages[0].content[0].image_url.url"],
  [{ messages: withImage("ftp://example.com/a.png") }, "messages[0].content[0].image_url.url"],
  [{ messages: withImage("data:text/html;base64,PGI+") }, "messages[0].content[0].image_url.url"],
  [{ messages: withImage("data:image/png;base64,aGVsbG8=") }, "messages[0].content[0].image_url.url"],
  [{ messages: withImage("data:image/png;base64,%%%") }, "messages[0].content[0].image_url.url"],
  [{ temperature: -0.1 }, "temperature"],
  [{ temperature: 1e308 }, "temperature"],
  [{ temperature: "hot" }, "temperature"],
  [{ top_p: 1.5 }, "top_p"],
  [{ max_tokens: 0 }, "max_tokens"],
  [{ max_tokens: -1 }, "max_tokens"],
  [{ max_tokens: 1.5 }, "max_tokens"],
  [{ max_tokens: 1e300 }, "max_tokens"],
  [{ max_tokens: "100" }, "max_tokens"],
  [{ max_completion_tokens: -5 }, "max_completion_tokens"],
  [{ n: 0 }, "n"],
  [{ n: 1_000_000 }, "n"],
  [{ presence_penalty: 9 }, "presence_penalty"],
  [{ frequency_penalty: -9 }, "frequency_penalty"],
  [{ seed: 0.5 }, "seed"],
  [{ stop: 5 }, "stop"],
  [{ stop: Array.from({ length: 1_000 }, () => "x") }, "stop"],
  [{ stream: "yes" }, "stream"],
  [{ stream: true, stream_options: 1 }, "stream_options"],
  [{ stream: true, stream_options: { include_usage: "yes" } }, "stream_options.include_usage"],
  [{ tools: "hammer" }, "tools"],
  [{ tools: [{}] }, "tools[0]"],
  [{ tools: [{ type: "function", function: {} }] }, "tools[0].function.name"],
  [{ response_format: "json" }, "response_format"]
]

const bodies: ReadonlyArray<readonly [name: string, body: string | Uint8Array<ArrayBuffer>]> = [
  ["no body", ""],
  ["no JSON", "{"],
  ["a text", `"hello"`],
  ["a list", "[]"],
  ["null", "null"],
  ["no UTF-8", Uint8Array.from([0x7b, 0xff, 0xfe, 0x7d])],
  ["JSON that is 100,000 deep", "[".repeat(100_000) + "]".repeat(100_000)]
]

/** Names that are none of a model, however they look. */
const unknown = [
  "nobody/nothing",
  "collection/",
  "collection/nowhere",
  "__proto__",
  "constructor",
  "collection/__proto__",
  "good/model ",
  "GOOD/MODEL",
  "🦄",
  "good/model\u0000"
]

interface Refused {
  readonly status: number
  readonly error: OpenAiError | undefined
}

layer(ScriptedServer.layer([modelEntry(good)]), { excludeTestServices: true })(
  "a request that cannot be served",
  (it) => {
    /** The user pays nothing and the upstream is not asked. */
    const free = (
      run: (
        caller: Caller,
        post: (body: NonNullable<RequestInit["body"]>) => Promise<Refused>
      ) => Promise<void>
    ) =>
      Effect.gen(function* () {
        const { caller, server, settled, upstream } = yield* ScriptedServer
        upstream.script(good, () => [{ send: plainRecording }])
        yield* Effect.promise(async () => {
          const asker = await caller(1)
          const asked = upstream.asked.length
          await run(asker, async (body) => {
            const headers = { authorization: `Bearer ${asker.key}`, "content-type": "application/json" }
            const url = `${server.url}/api/v1/chat/completions`
            const response = await fetch(url, { method: "POST", headers, body })
            const { error } = (await response.json()) as { readonly error?: OpenAiError }
            return { status: response.status, error }
          })
          assert.strictEqual(upstream.asked.length, asked)
          await settled([asker], 0n)
          assert.strictEqual((await asker.credits()).balance_usd, 1)
        })
      })

    it.effect("names the parameter that is wrong, streamed or not", () =>
      free(async (_, post) => {
        for (const [fields, param] of invalid) {
          for (const stream of [{}, { stream: true }]) {
            const body = JSON.stringify({ model: good, messages: said, ...stream, ...fields })
            const { error, status } = await post(body)
            assert.deepStrictEqual(
              [status, error?.type, error?.param],
              [400, "invalid_request_error", param],
              `${body.slice(0, 200)} ${JSON.stringify(error)}`
            )
          }
        }
      })
    )

    it.effect("is 400 where it is no JSON object", () =>
      free(async (_, post) => {
        for (const [name, body] of bodies) {
          const { error, status } = await post(body)
          assert.deepStrictEqual([status, error?.type], [400, "invalid_request_error"], name)
        }
      })
    )

    it.effect("is 404 where there is no such model or collection, somebody else's included", () =>
      free(async (caller, post) => {
        for (const model of unknown) {
          const { error, status } = await post(JSON.stringify({ model, messages: said }))
          assert.deepStrictEqual([status, error?.code], [404, "model_not_found"], model)
        }
        assert.isString(caller.key)
      })
    )

    it.effect("is 404 for a collection of somebody else, and theirs works", () =>
      Effect.gen(function* () {
        const { caller, server, upstream } = yield* ScriptedServer
        upstream.script(good, () => [{ send: plainRecording }])
        yield* Effect.promise(async () => {
          const [owner, other] = [await caller(1), await caller(1)]
          const collection = await owner.collect([good])
          const foreign = await other.say(collection, "hello")
          assert.deepStrictEqual([foreign.status, foreign.error?.code], [404, "model_not_found"])
          assert.strictEqual((await owner.say(collection, "hello")).status, 200)
          const scoped = await owner.makeKey({ kind: "router", models: ["other/model"] })
          for (const model of [collection, good, "nobody/nothing"]) {
            const refused = await chat(server, scoped, { model, messages: said })
            assert.deepStrictEqual([refused.status, refused.error?.code], [403, "model_not_allowed"], model)
          }
        })
      })
    )

    it.effect("is 400 where 10 MB of text are more than the model takes, and 413 above the limit", () =>
      free(async (_, post) => {
        const ofMegabytes = (count: number) =>
          JSON.stringify({
            model: good,
            messages: [{ role: "user", content: "word ".repeat(count * 209_715) }]
          })
        const long = await post(ofMegabytes(10))
        assert.deepStrictEqual([long.status, long.error?.code], [400, "context_length_exceeded"])
        const longer = await post(ofMegabytes(21))
        assert.deepStrictEqual([longer.status, longer.error?.code], [413, "payload_too_large"])
      })
    )

    it.effect("is 401 with a key that is unknown, expired or revoked", () =>
      Effect.gen(function* () {
        const { caller, server } = yield* ScriptedServer
        yield* Effect.promise(async () => {
          const owner = await caller(1)
          const soon = new Date(Date.now() + 700).toISOString()
          const expiring = await owner.makeKey({ kind: "router", expires_at: soon })
          await until("the key has expired", async () =>
            Date.now() > Date.parse(soon) ? undefined : "it is still good"
          )
          for (const key of ["", "sk_", "sk_mr_nobody", "nonsense", expiring]) {
            const refused = await chat(server, key, { model: good, messages: said })
            assert.deepStrictEqual(
              [refused.status, refused.error?.type, refused.error?.code],
              [401, "authentication_error", "invalid_api_key"],
              key
            )
          }
        })
      })
    )

    it.effect("of any shape at all is never a 5xx", () =>
      free(async (_, post) => {
        const seed = Number(process.env["BAD_INPUT_SEED"] ?? Date.now() % 2_147_483_647)
        const names = ["messages", "tools", "temperature", "stream", "stop", "models", "stream_options", "n"]
        const anything = fc.dictionary(fc.constantFrom(...names), fc.jsonValue({ maxDepth: 4 }), {
          minKeys: 1
        })
        for (const fields of fc.sample(anything, { numRuns: 300, seed })) {
          const body = JSON.stringify({ ...fields, model: "nobody/nothing" })
          const { error, status } = await post(body)
          assert.isTrue(status < 500 && error !== undefined, `BAD_INPUT_SEED=${seed} ${status} ${body}`)
        }
      })
    )
  }
)
