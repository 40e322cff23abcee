import { assert, describe, it } from "@effect/vitest"
import { failureOf, failureOfStatus } from "#src/llm/calls/AttemptFailure.ts"

const long = "w".repeat(10_000)

describe("why a try of a model failed", () => {
  it("is said in the upstream's words, however many, in at most 500 characters", () => {
    assert.strictEqual(failureOfStatus(502, long, null, undefined).message.length, 500)
    const body = JSON.stringify({ error: { message: long } })
    assert.strictEqual(failureOf(500, body, undefined).message.length, 500)
  })

  it("hides what the upstream says of the platform's own account", () => {
    for (const status of [401, 402, 403]) {
      const { kind, message } = failureOfStatus(status, "key sk-or-1 has no credits", null, undefined)
      assert.strictEqual(kind, "upstream")
      assert.notInclude(message, "sk-or-1")
    }
  })

  it("knows how long to wait, in seconds or until a date", () => {
    assert.strictEqual(failureOf(429, "", "7").retryAfterSeconds, 7)
    const inAMinute = new Date(Date.now() + 60_000).toUTCString()
    assert.closeTo(failureOf(429, "", inAMinute).retryAfterSeconds ?? 0, 60, 2)
    assert.isUndefined(failureOf(429, "", "soon").retryAfterSeconds)
  })

  it("tells a context that is too long from other faults of a request", () => {
    const tooLong = { error: { message: "maximum context length is 8192 tokens", code: 400 } }
    assert.strictEqual(failureOf(400, JSON.stringify(tooLong), undefined).code, "context_length_exceeded")
    assert.deepInclude(failureOf(422, "", undefined), { kind: "request", code: null })
  })
})
