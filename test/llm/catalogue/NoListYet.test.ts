import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer } from "#test/harness/TestServer.ts"
import { ask } from "#test/harness/ApiClient.ts"

/** Nothing listens there, and there has never been a list of its models. */
const nowhere = { upstreamUrl: "http://upstream.invalid/api/v1", limits: { catalogueStartMillis: 200 } }

layer(TestServer.own(nowhere), { excludeTestServices: true })(
  "a server whose upstream was never there",
  (it) => {
    it.effect("says that no model is available, not that there is none", () =>
      Effect.gen(function* () {
        const { adminKey, url } = yield* TestServer
        const server = { url, adminKey: () => adminKey }
        const messages = [{ role: "user", content: "hello" }]
        yield* Effect.promise(async () => {
          for (const [path, json] of [
            ["/chat/completions", { model: "acme/model", messages }],
            ["/embeddings", { model: "acme/model", input: "hello" }]
          ] as const) {
            const answer = await ask(server, "POST", `/api/v1${path}`, { json })
            assert.strictEqual(answer.status, 503, path)
            assert.strictEqual((answer.body as { error: { code: string } }).error.code, "no_available_model")
            assert.isAbove(Number(answer.headers.get("retry-after")), 0)
          }
          const model = await ask(server, "GET", "/api/v1/models/acme/model")
          assert.strictEqual(model.status, 503)
        })
      })
    )
  }
)
