import { afterEach, assert, beforeEach, describe, it, vi } from "@effect/vitest"
import { type CallAsk, type CallOutcome, OpenCalls } from "#actors/agents/OpenCalls.ts"
import { Outbox } from "#streams/agents/Outbox.ts"

const callOf = (callId: string, replay: "safe" | "never"): CallAsk => ({
  callId,
  promptId: "p",
  method: replay === "safe" ? "fs.read" : "fs.edit",
  params: {},
  replay,
  timeoutMillis: 1_000
})

/** Open calls with a client that is there, in the order of their ids. */
const open = (...ids: ReadonlyArray<readonly [string, "safe" | "never"]>) => {
  const frames: Array<string> = []
  const outcomes = new Map<string, CallOutcome>()
  const outbox = new Outbox(0, 1_000, { ringBytes: 10_000, coalesceBytes: 1_000, slowBytes: 5_000 })
  const sink = {
    bufferedBytes: 0,
    send: (text: string) => {
      const { callId, type } = JSON.parse(text)
      frames.push(`${type} ${callId}`)
      return true
    },
    close: () => undefined
  }
  outbox.attach(sink, 0)
  const calls = new OpenCalls(outbox, { agentCancelMillis: 100, agentCallGraceMillis: 100 })
  for (const [callId, replay] of ids)
    calls.open(callOf(callId, replay), undefined, false, (outcome) => outcomes.set(callId, outcome))
  const answer = (callId: string) => calls.result({ type: "tool.result", callId, ok: true, durationMs: 1 })
  return { calls, frames, outcomes, answer }
}

describe("The calls that wait for their client", () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  it("are sent in their order: none passes one that is not noted yet", () => {
    const { calls, frames } = open(["a", "never"], ["b", "safe"], ["c", "never"], ["d", "safe"])
    calls.noted(["a"], "j")
    calls.send("j")
    assert.deepStrictEqual(frames, ["tool.request a", "tool.request b"])
    calls.noted(["c"], "j")
    calls.send("j")
    assert.deepStrictEqual(frames.slice(2), ["tool.request c", "tool.request d"])
  })

  it("have their time once no earlier one stands in the way", () => {
    const { answer, calls, frames, outcomes } = open(["a", "safe"], ["b", "safe"], ["c", "safe"])
    calls.send("j")
    vi.advanceTimersByTime(1_050)
    answer("a")
    vi.advanceTimersByTime(1_050)
    answer("b")
    vi.advanceTimersByTime(1_050)
    assert.deepStrictEqual([...outcomes.keys()], ["a", "b"])
    assert.strictEqual(frames.length, 3)
    vi.advanceTimersByTime(50)
    assert.deepStrictEqual(frames.slice(3), ["tool.cancel c"])
    vi.advanceTimersByTime(100)
    assert.strictEqual(outcomes.get("c")?.error?.code, "timeout")
  })

  it("all end in time with a client that answers none", () => {
    const { calls, outcomes } = open(["a", "safe"], ["b", "safe"], ["c", "safe"])
    calls.send("j")
    vi.advanceTimersByTime(1_200)
    assert.deepStrictEqual([...outcomes.keys()], ["a"])
    vi.advanceTimersByTime(2 * 1_200)
    assert.deepStrictEqual(
      [...outcomes].map(([callId, { error }]) => [callId, error?.code]),
      ["a", "b", "c"].map((callId) => [callId, "timeout"])
    )
  })
})
