import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import type { EventOf, PromptDone, ServerFrame } from "#schemas/agents/ServerFrame.ts"
import { reduce, type TerminalInput } from "#src/clients/agent/terminal/Reducer.ts"
import { emptyState, terminalLimits, type TerminalState } from "#src/clients/agent/terminal/TerminalState.ts"
import { type AnyEvent, readyFrame } from "./ScriptedClient.ts"

const usage = { promptTokens: 900, completionTokens: 100, totalTokens: 1_000 }

const event = (event: AnyEvent, promptId = "p1", seq = 1): TerminalInput => ({
  type: "frame",
  frame: { type: "event", seq, promptId, ...event } as ServerFrame
})
const connected = (ready: Partial<typeof readyFrame> = {}): TerminalInput => ({
  type: "link",
  state: "connected",
  ready: { ...readyFrame, ...ready }
})
const done = (changes: Partial<PromptDone> = {}): TerminalInput => ({
  type: "frame",
  frame: {
    type: "prompt.done",
    seq: 9,
    id: "p1",
    status: "completed",
    usage,
    costUsd: 0.03,
    coveredBySubscription: false,
    turns: 1,
    toolCalls: 0,
    toolCallsDenied: 0,
    ...changes
  }
})
const text = (delta: string, messageId = "m1", contentIndex = 0): TerminalInput =>
  event({ kind: "text_delta", messageId, contentIndex, delta })
const ended = (content: EventOf<"message_end">["content"], messageId = "m1"): TerminalInput =>
  event({ kind: "message_end", messageId, model: "m", content, stopReason: "stop", usage, costUsd: 0.01 })

const after = (...inputs: ReadonlyArray<TerminalInput>): TerminalState =>
  inputs.reduce((state, input, index) => reduce(state, input, 1_000 + index), emptyState)
const itemsOf = (state: TerminalState, kind: string) => state.items.filter((item) => item.kind === kind)
const texts = (state: TerminalState) =>
  state.items.flatMap((item) =>
    item.kind === "message" ? item.parts.map((part) => part.text) : "text" in item ? [item.text] : []
  )

describe("the conversation", () => {
  it("is the same however the server cuts an answer into pieces", () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: "grapheme" }), { minLength: 1 }), (pieces) => {
        const whole = after(text(pieces.join("")))
        assert.deepStrictEqual(texts(after(...pieces.map((piece) => text(piece)))), texts(whole))
      })
    )
  })

  it("takes the whole message for true at its end, whatever its pieces were", () => {
    const state = after(text("helo"), ended([{ type: "text", text: "hello" }]), text("!"))
    assert.deepStrictEqual(texts(state), ["hello"])
  })

  it("keeps thoughts and text in the order of the message's parts", () => {
    const state = after(
      text("answer", "m1", 1),
      event({ kind: "thinking_delta", messageId: "m1", contentIndex: 0, delta: "hm" })
    )
    assert.deepStrictEqual(texts(state), ["hm", "answer"])
  })

  it("marks a message that never ends as broken off when another one takes its place", () => {
    const state = after(
      text("half", "m1"),
      text("whole", "m2"),
      ended([{ type: "text", text: "whole" }], "m2")
    )
    assert.deepStrictEqual(
      state.items.map((item) => (item.kind === "message" ? item.progress : item.kind)),
      ["left", "done"]
    )
  })

  it("shows what was asked once, whether this machine asked or the server tells", () => {
    const start = event({ kind: "turn_start", turn: 1, text: "do it" })
    const asked: TerminalInput = { type: "asked", id: "p1", text: "do it" }
    assert.deepStrictEqual(texts(after(asked, start, start)), ["do it"])
    assert.deepStrictEqual(texts(after(start)), ["do it"])
  })

  it("changes nothing for frames and kinds that it does not know", () => {
    const state = after(connected(), text("a"))
    const strange = { type: "event", seq: 3, promptId: "p1", kind: "sparkles" } as object as ServerFrame
    const stranger = { type: "hologram", seq: 4 } as object as ServerFrame
    assert.strictEqual(reduce(state, { type: "frame", frame: strange }, 5), state)
    assert.strictEqual(reduce(state, { type: "frame", frame: stranger }, 5), state)
    assert.strictEqual(reduce(state, { type: "frame", frame: { type: "ping", ts: 1 } }, 5), state)
  })

  it("forgets the oldest when there is too much of it, and says how much", () => {
    const many = Array.from({ length: terminalLimits.items + 1 }, (_none, index) => text("x", `m${index}`))
    const state = after(...many)
    assert.strictEqual(state.items.length, terminalLimits.itemsKept)
    assert.strictEqual(state.forgotten, many.length - terminalLimits.itemsKept)
  })

  it("keeps a bounded part of endless texts and outputs", () => {
    const long = "y".repeat(terminalLimits.textCharacters)
    const out: TerminalInput = { type: "tool", state: "output", callId: "c1", stream: "stdout", data: long }
    const state = after(text(long), text(long), text(long), out, out)
    assert.isBelow(JSON.stringify(state).length, 1.3 * terminalLimits.textCharacters)
  })
})

describe("connections and sessions", () => {
  it("lose nothing of what is shown while they break and come back", () => {
    const before = after(connected(), { type: "asked", id: "p1", text: "go" }, text("so far"))
    const waiting = reduce(
      before,
      { type: "link", state: "waiting", retryInMillis: 3_000, problem: "gone" },
      50
    )
    assert.deepStrictEqual(waiting.link, { state: "waiting", retryAt: 3_050, problem: "gone" })
    const back = reduce(waiting, connected({ resumed: true, activePrompt: "p1", seq: 7 }), 60)
    assert.deepStrictEqual(back.items, before.items)
    assert.deepStrictEqual(back.active, before.active, "and the work goes on as long as before")
    assert.deepStrictEqual(texts(reduce(back, text(", and on"), 70)), ["go", "so far, and on"])
  })

  it("show another session's transcript in place of this one's, once", () => {
    const state = after(
      connected(),
      text("of the first"),
      connected({ sessionId: "ses_other", resumed: true, seq: 2 }),
      event({ kind: "turn_start", turn: 1, text: "earlier" }, "p9", 1),
      ended([{ type: "text", text: "of the other" }], "m9")
    )
    assert.deepStrictEqual(texts(state), ["earlier", "of the other"])
    assert.isUndefined(state.active, "what is told again is not worked on")
  })

  it("keep what is on the screen when a new session begins below it, and count from nothing", () => {
    const state = after(
      connected(),
      ended([{ type: "text", text: "old" }]),
      connected({ sessionId: "ses_new" })
    )
    assert.deepStrictEqual(texts(state), ["old", "A new session begins here."])
    assert.deepStrictEqual([state.costs, state.contextTokens, state.queue], [{}, 0, []])
  })

  it("know the prompt that the server still works on", () => {
    const state = after(
      connected({ resumed: true, seq: 5, activePrompt: "p1" }),
      event({ kind: "turn_start", turn: 1 })
    )
    assert.strictEqual(state.active?.id, "p1")
    assert.isUndefined(reduce(state, done(), 9).active)
  })

  it("stop work that the server refuses", () => {
    const refused: ServerFrame = { type: "error", code: "busy", message: "no", fatal: false, id: "p1" }
    const state = after(
      connected(),
      { type: "asked", id: "p1", text: "go" },
      { type: "frame", frame: refused }
    )
    assert.isUndefined(state.active)
    assert.deepStrictEqual(texts(state), ["go", "no"])
  })
})

describe("figures of a session", () => {
  it("add up messages while a prompt runs, and take its own sum when it is done", () => {
    const running = after(connected(), ended([]), ended([], "m2"))
    assert.closeTo(running.costs.p1 ?? 0, 0.02, 1e-9)
    assert.deepStrictEqual([running.contextTokens, running.totalTokens], [1_000, 2_000])
    assert.strictEqual(reduce(running, done({ costUsd: 0.5 }), 9).costs.p1, 0.5)
  })

  it("take the context's size from the last call, or from its compaction", () => {
    const compaction = event({ kind: "compaction_end", ok: true, tokens: 200 })
    assert.strictEqual(after(ended([]), compaction).contextTokens, 200)
  })
})

describe("tool calls", () => {
  const started: TerminalInput = {
    type: "tool",
    state: "started",
    callId: "c1",
    method: "proc.exec",
    params: { command: "ls" }
  }
  const toolEnd = event({ kind: "tool_end", callId: "c1", ok: true, denied: false, durationMs: 5 })
  const only = (state: TerminalState) => {
    const tools = itemsOf(state, "tool")
    assert.strictEqual(tools.length, 1)
    const [tool] = tools
    if (tool?.kind !== "tool") throw new Error("no tool call")
    return tool
  }

  it("are one item, from whichever side they are told", () => {
    const called = ended([{ type: "tool_call", callId: "c1", tool: "bash", args: { command: "ls" } }])
    const toolStart = event({ kind: "tool_start", callId: "c1", tool: "bash", args: { command: "ls" } })
    const tool = only(after(called, toolStart, started, toolEnd))
    assert.deepInclude(tool, { tool: "bash", progress: "ok", durationMillis: 5, args: { command: "ls" } })
  })

  it("show output once, though this machine and the server both tell of it", () => {
    const local: TerminalInput = {
      type: "tool",
      state: "output",
      callId: "c1",
      stream: "stdout",
      data: "hi\n"
    }
    const echoed = event({ kind: "tool_update", callId: "c1", stream: "stdout", data: "hi\n" })
    assert.strictEqual(only(after(started, local, echoed)).output, "hi\n")
    assert.strictEqual(only(after(echoed)).output, "hi\n", "another machine's is shown")
  })

  it("lose the colours that commands print, and what they write over themselves gets lines of its own", () => {
    const data = "\u001b[32mok\u001b[0m 10%\r20%\r\n"
    const local: TerminalInput = { type: "tool", state: "output", callId: "c1", stream: "stdout", data }
    assert.strictEqual(only(after(started, local)).output, "ok 10%\n20%\n")
  })

  it("wait for the user's word, then run", () => {
    const waiting = after(started, { type: "approval", callId: "c1", waits: true })
    assert.strictEqual(only(waiting).progress, "asking")
    assert.strictEqual(
      only(reduce(waiting, { type: "approval", callId: "c1", waits: false }, 3)).progress,
      "running"
    )
  })
})

describe("what waits", () => {
  const later: TerminalInput = { type: "queued", id: "s1", text: "then this", mode: "follow_up" }

  it("is what the server says, and until then what was typed", () => {
    const state = after(connected(), later, later)
    assert.deepStrictEqual(state.queue, [{ id: "s1", text: "then this", mode: "follow_up" }])
    assert.deepStrictEqual(reduce(state, event({ kind: "queue_update", queue: [] }), 9).queue, [])
  })

  it("becomes a part of the conversation when it is applied", () => {
    const state = after(later, event({ kind: "steer_applied", id: "s1", text: "then this" }))
    assert.deepStrictEqual([texts(state), state.queue.length], [["then this"], 0])
  })
})

describe("hostile text", () => {
  const nasty = fc.array(
    fc.oneof(
      fc.constantFrom(
        "\u001b]0;owned\u0007",
        "\u001b[2J",
        "\u009b31m",
        "\u202e",
        "\u0000",
        "\ud800",
        "\r",
        "\u200b",
        "\u2066"
      ),
      fc.string({ unit: "binary" })
    )
  )
  // oxlint-disable-next-line no-control-regex
  const unsafe = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069\u200b\ud800-\udfff]/u

  it("is nowhere in the state, whatever field it came in", () => {
    fc.assert(
      fc.property(nasty, (pieces) => {
        const bad = pieces.join("")
        const state = after(
          connected({ model: { id: bad, name: bad, context_length: 1 } }),
          { type: "asked", id: "p1", text: bad },
          text(bad),
          ended([{ type: "tool_call", callId: "c1", tool: bad, args: { [bad]: [bad] } }], "m2"),
          { type: "tool", state: "output", callId: "c1", stream: "stdout", data: bad },
          event({
            kind: "tool_end",
            callId: "c1",
            ok: false,
            denied: false,
            durationMs: 1,
            error: { code: "denied", message: bad }
          }),
          event({ kind: "retry", attempt: 2, delayMs: 1, message: bad }),
          event({ kind: "queue_update", queue: [{ id: "q", text: bad, mode: "steer" }] }),
          { type: "link", state: "waiting", retryInMillis: 1, problem: bad }
        )
        const walk = (value: unknown): void => {
          if (typeof value === "string") assert.notMatch(value, unsafe)
          if (typeof value !== "object" || value === null) return
          for (const [name, field] of Object.entries(value)) {
            walk(name)
            walk(field)
          }
        }
        walk(state)
      })
    )
  })
})
