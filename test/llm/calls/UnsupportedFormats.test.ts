import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer } from "#test/harness/TestServer.ts"

layer(TestServer.shared, { excludeTestServices: true })("the format of responses", (it) => {
  it.effect("is 404 in the OpenAI form, by whatever method and with the request's id", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      for (const [method, asked] of [["POST", { json: {} }] as const, ["GET", {}] as const]) {
        const { headers, json, status } = yield* ask(method, "/api/v1/responses", asked)
        const message = "/api/v1/responses is not served; use /api/v1/chat/completions"
        const error = { message, type: "invalid_request_error", code: null, param: null }
        assert.deepStrictEqual([status, json], [404, { error }])
        assert.match(headers.get("x-request-id") ?? "", /^req_/)
      }
    })
  )
})
