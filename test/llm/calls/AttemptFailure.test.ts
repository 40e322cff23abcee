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

  it("is the request's where a moderation refused it, with the reasons", () => {
    const metadata = { reasons: ["violence", "hate"], flagged_input: "…", provider_name: "x" }
    const told = { error: { code: 403, message: "Your input was flagged", metadata } }
    const failure = failureOf(403, JSON.stringify(told), undefined)
    assert.deepInclude(failure, { kind: "request", code: "content_policy_violation", isModerated: true })
    assert.strictEqual(failure.message, "Your input was flagged (violence, hate)")
    for (const error of [
      { message: "no", metadata: { flagged_input: "…" } },
      { message: "no", code: "content_filter" },
      { message: "The model requires moderation on OpenAI" }
    ])
      assert.strictEqual(failureOf(403, JSON.stringify({ error }), undefined).kind, "request")
    const manyReasons = {
      error: { message: "no", metadata: { reasons: Array.from({ length: 999 }, () => long) } }
    }
    assert.isAtMost(failureOf(403, JSON.stringify(manyReasons), undefined).message.length, 500)
    for (const error of [{ message: "This key may not" }, { message: "no", metadata: {} }, "no", null])
      assert.strictEqual(failureOf(403, JSON.stringify({ error }), undefined).kind, "upstream")
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
