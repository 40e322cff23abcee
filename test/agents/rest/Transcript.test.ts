import { assert, describe, it } from "@effect/vitest"
import { entriesOf, pageOf } from "#src/agents/Transcript.ts"
import type { StepSize } from "#src/agents/store/SessionsRepository.ts"
import type { Step, StepBody } from "#streams/agents/Step.ts"
import { promptBody, stepOf } from "#test/agents/store/Sessions.ts"

const usage = { promptTokens: 10, completionTokens: 5, totalTokens: 15 }

const message = (...calls: ReadonlyArray<string>): StepBody => ({
  kind: "message",
  messageId: "m",
  model: "m/one",
  content: [
    { type: "thinking", text: "hm" },
    { type: "text", text: "so" },
    ...calls.map((callId) => ({ type: "tool_call" as const, callId, tool: "read", args: { path: callId } }))
  ],
  stopReason: calls.length === 0 ? "stop" : "tool_calls",
  usage,
  cost: "1500000000000",
  covered: false
})
const result = (callId: string): StepBody => ({
  kind: "result",
  callId,
  ok: true,
  result: { content: callId },
  denied: false,
  durationMs: 12
})
const refused: StepBody = {
  kind: "result",
  callId: "b",
  ok: false,
  error: { code: "denied", message: "no" },
  denied: true,
  durationMs: 3
}
const queued: StepBody = { kind: "queued", id: "q", text: "also", mode: "steer" }
const taken: StepBody = { kind: "taken", callIds: ["a", "b"], journalId: "j" }

/** Results may come behind what was queued meanwhile. */
const bodies: ReadonlyArray<StepBody> = [
  promptBody("do"),
  message("a", "b"),
  taken,
  queued,
  result("a"),
  refused,
  { kind: "applied", id: "q", text: "also" },
  message()
]
const steps: ReadonlyArray<Step> = bodies.map((body, index) => stepOf(index, body))
const sizes = (bytes = 1): ReadonlyArray<StepSize> =>
  bodies.map(({ kind }, index) => ({ index, kind, bytes }))

const shown = (end: number, of = steps) => entriesOf(of, end).map(({ step, type }) => [step, type])

describe("a transcript", () => {
  it("tells what was said, with tool calls in their message and what came of them", () => {
    const [, said] = entriesOf(steps, 8)
    assert.deepStrictEqual(said, {
      step: 1,
      type: "message",
      at: "2025-11-21T14:00:00.124Z",
      prompt_id: "p-1",
      message_id: "m",
      model: "m/one",
      content: [
        { type: "thinking", text: "hm" },
        { type: "text", text: "so" }
      ],
      tool_calls: [
        {
          call_id: "a",
          tool: "read",
          args: { path: "a" },
          ok: true,
          result: { content: "a" },
          denied: false,
          duration_ms: 12
        },
        {
          call_id: "b",
          tool: "read",
          args: { path: "b" },
          ok: false,
          error: { code: "denied", message: "no" },
          denied: true,
          duration_ms: 3
        }
      ],
      stop_reason: "tool_calls",
      usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
      cost_usd: 1.5,
      covered_by_subscription: false
    })
    assert.deepStrictEqual(shown(8), [
      [0, "prompt"],
      [1, "message"],
      [3, "queued"],
      [6, "applied"],
      [7, "message"]
    ])
  })

  it("says that nothing is known of a call whose result is not there", () => {
    const [said] = entriesOf(steps.slice(1, 4), 8)
    assert.deepStrictEqual(
      said?.type === "message" &&
        said.tool_calls.map(({ denied, duration_ms, ok }) => [ok, denied, duration_ms]),
      [
        [null, false, null],
        [null, false, null]
      ]
    )
  })

  it("ends a page before the entry that is one too many, and reads on to the results of what is on it", () => {
    const bytes = 1_000
    assert.deepStrictEqual(pageOf(sizes(), { entries: 2, bytes }), { end: 3, readTo: 6 })
    assert.deepStrictEqual(pageOf(sizes(), { entries: 3, bytes }), { end: 6, readTo: 6 })
    assert.deepStrictEqual(pageOf(sizes(), { entries: 5, bytes }), { end: 8, readTo: 8 })
    assert.deepStrictEqual(pageOf(sizes(), { entries: 1, bytes }), { end: 1, readTo: 1 })
    assert.deepStrictEqual(pageOf([], { entries: 1, bytes }), { end: 0, readTo: 0 })
  })

  it("ends a page when it is long enough, but never without an entry", () => {
    assert.deepStrictEqual(pageOf(sizes(500), { entries: 100, bytes: 1_000 }), { end: 3, readTo: 6 })
    assert.deepStrictEqual(pageOf(sizes(5_000), { entries: 100, bytes: 1_000 }), { end: 1, readTo: 1 })
  })

  it("shows every entry once, whatever the size of its pages", () => {
    for (let entries = 1; entries <= 6; entries++) {
      const seen: Array<number> = []
      let after = -1
      while (after < steps.length - 1) {
        const rest = sizes().slice(after + 1)
        const { end, readTo } = pageOf(rest, { entries, bytes: 1_000 })
        const page = entriesOf(steps.slice(after + 1, readTo), end)
        assert.isAtMost(page.length, entries)
        for (const entry of page) {
          seen.push(entry.step)
          if (entry.type === "message") assert.isTrue(entry.tool_calls.every(({ ok }) => ok !== null))
        }
        after = end - 1
      }
      assert.deepStrictEqual(seen, [0, 1, 3, 6, 7])
    }
  })
})
