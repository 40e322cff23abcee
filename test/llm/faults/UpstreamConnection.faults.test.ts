import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import OpenAI from "openai"
import { AppConfig } from "#src/Config.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { ask } from "#test/harness/ApiClient.ts"
import { until } from "#test/harness/Eventually.ts"
import { makeCaller } from "../Caller.ts"
import { countingFetch } from "../clients/SandboxServer.ts"
import { modelEntry, ScriptedServer } from "../upstream/ScriptedServer.ts"
import { answer, startScriptedUpstream } from "../upstream/ScriptedUpstream.ts"

const good = "good/model"

/** An upstream with an https address that answers everything in another protocol. */
const noTls = Layer.unwrap(
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(() => startScriptedUpstream({ models: [], garbage: "SSH-2.0-OpenSSH_9.2\r\n" })),
      (upstream) => Effect.promise(upstream.close)
    ),
    ({ port }) =>
      TestServer.own({
        upstreamUrl: `https://127.0.0.1:${port}/api/v1`,
        limits: { catalogueRetryMinMillis: 50, catalogueRetryMaxMillis: 50 }
      })
  )
)

layer(noTls, { excludeTestServices: true })("an upstream whose TLS fails", (it) => {
  it.effect("is 502 and costs nothing", () =>
    Effect.gen(function* () {
      const { adminKey, url } = yield* TestServer
      const sql = yield* SqlClient
      const server = { url, adminKey: () => adminKey }
      const { upstreamUrl: upstream } = yield* AppConfig
      // The list of models is one that an earlier run kept.
      const body = JSON.stringify({ data: [modelEntry(good)] })
      yield* sql`INSERT INTO catalogue_copies ${sql.insert({ upstream: upstream ?? "", body, fetched_at: new Date() })}`
      yield* Effect.promise(async () => {
        const caller = await makeCaller(server, 1)
        await until("the kept list is known", async () => {
          const { status } = await ask(server, "GET", `/api/v1/models/${good}`)
          return status === 200 ? undefined : `${status}`
        })
        for (const stream of [false, true]) {
          const refused = await caller.say(good, "hello", { stream })
          assert.deepStrictEqual([refused.status, refused.error?.code], [502, "upstream_error"], refused.raw)
        }
        assert.strictEqual((await caller.credits()).balance_usd, 1)
      })
    })
  )
})

layer(ScriptedServer.layer([modelEntry(good)]), { excludeTestServices: true })(
  "a rate limit of the upstream",
  (it) => {
    /** The number of the openai client's tries, by its own rules. */
    const triesWith = (retryAfter: string) =>
      Effect.gen(function* () {
        const { caller, server, upstream } = yield* ScriptedServer
        upstream.script(good, () => [
          {
            send: answer(429, JSON.stringify({ error: { code: 429, message: "Slow down" } }), {
              "Retry-After": retryAfter
            })
          }
        ])
        return yield* Effect.promise(async () => {
          const { key } = await caller(1)
          const { fetch, times } = countingFetch()
          const client = new OpenAI({ apiKey: key, baseURL: `${server.url}/api/v1`, fetch, maxRetries: 1 })
          const messages = [{ role: "user" as const, content: "hello" }]
          const error = await client.chat.completions.create({ model: good, messages }).then(
            () => assert.fail("it answered"),
            (reason: unknown) => reason
          )
          assert.isTrue(error instanceof OpenAI.RateLimitError, String(error))
          return {
            tries: times.length,
            headers: (error as InstanceType<typeof OpenAI.RateLimitError>).headers
          }
        })
      })

    it.effect("of more than a minute is not tried again by clients that would ignore so long a wait", () =>
      Effect.gen(function* () {
        const { headers, tries } = yield* triesWith("120")
        assert.deepStrictEqual(
          [tries, headers?.get("retry-after"), headers?.get("x-should-retry")],
          [1, "120", "false"]
        )
      })
    )

    it.effect("of a second is", () =>
      Effect.gen(function* () {
        const { headers, tries } = yield* triesWith("1")
        assert.deepStrictEqual([tries, headers?.get("x-should-retry")], [2, null])
      })
    )
  }
)
