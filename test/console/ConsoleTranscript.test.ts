import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import type { TranscriptEntry, TranscriptToolCall } from "#schemas/agents/AgentSession.ts"
import { formatMillis } from "#src/console/page/figures/Format.ts"
import { noPages, withPage } from "#src/console/page/agents/Pages.ts"
import {
  gistOf,
  isFine,
  lineKind,
  outcomeOf,
  shownArguments,
  shownResult,
  stateOf
} from "#src/console/page/agents/Words.ts"

const call = (fields: Partial<TranscriptToolCall>): TranscriptToolCall => ({
  call_id: "c",
  tool: "bash",
  args: {},
  ok: true,
  denied: false,
  duration_ms: 1,
  ...fields
})

describe("the words of a transcript", () => {
  it("say in a line what a tool was asked", () => {
    assert.strictEqual(gistOf({ command: "ls\n  -l", timeout: 3 }), "ls -l")
    assert.strictEqual(gistOf({ pattern: "add(", path: "src" }), "add( in src")
    assert.strictEqual(gistOf({ path: "src/a.ts", edits: [] }), "src/a.ts")
    assert.strictEqual(gistOf({}), "")
    assert.strictEqual(gistOf({ limit: 3 }), '{"limit":3}')
    assert.strictEqual(gistOf("{ no JSON"), "{ no JSON")
    assert.strictEqual(gistOf(null), "")
    assert.strictEqual(gistOf({ command: "x".repeat(300) }).length, 200)
  })

  it("tell a command that failed from one that ran", () => {
    assert.strictEqual(outcomeOf(call({ ok: null })), "under way")
    assert.strictEqual(outcomeOf(call({ result: { exitCode: 0 } })), "done")
    assert.strictEqual(outcomeOf(call({ result: { exitCode: 3 } })), "exit code 3")
    assert.strictEqual(outcomeOf(call({ result: { exitCode: null, signal: "SIGKILL" } })), "ended by SIGKILL")
    const error = { code: "not_found", message: "There is no a.txt" } as const
    assert.strictEqual(outcomeOf(call({ ok: false, error })), "not found")
    assert.strictEqual(outcomeOf(call({ ok: false, denied: true, error })), "denied")
    assert.isFalse(isFine(call({ result: { exitCode: 1 } })))
    assert.isTrue(isFine(call({ result: { entries: [] } })))
  })

  it("show a result as what it is", () => {
    const shown = (result: unknown) => shownResult(call({ result }))
    assert.deepStrictEqual(shown({ diff: "+a", replacements: 1 }), { kind: "diff", text: "+a" })
    assert.deepStrictEqual(shown({ output: "", exitCode: 0 }), { kind: "text", text: "" })
    assert.deepStrictEqual(shown({ entries: ["a", "b/"], truncated: false }), { kind: "text", text: "a\nb/" })
    assert.deepStrictEqual(shown(null), { kind: "text", text: "null" })
    assert.isUndefined(shownResult(call({ ok: null })))
    assert.strictEqual(shownArguments({ command: "ls" }), "ls")
    assert.include(shownArguments({ command: "ls", timeout: 3 }), '"timeout": 3')
  })

  it("mark the lines of a diff by what they do", () => {
    assert.deepStrictEqual(["--- a/x", "+++ b/x", "@@ -1 +1 @@", "-a", "+b", " c", ""].map(lineKind), [
      "place",
      "place",
      "place",
      "removed",
      "added",
      "same",
      "same"
    ])
  })

  it("take whatever a model or a client made up", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (args, result) => {
        assert.isString(gistOf(args))
        assert.isString(shownArguments(args))
        assert.isString(outcomeOf(call({ args, result })))
        assert.isString(shownResult(call({ result }))?.text)
      })
    )
  })

  it("say how a session is, and how long something took", () => {
    assert.strictEqual(
      stateOf({ status: "detached", live: false, end_reason: null }).words,
      "its client is away; it can be resumed"
    )
    assert.strictEqual(
      stateOf({ status: "ended", live: false, end_reason: "ended_by_owner" }).words,
      "ended by its owner"
    )
    assert.deepStrictEqual([0.4, 999, 1_500, 61_000].map(formatMillis), [
      "0 ms",
      "999 ms",
      "1.5 s",
      "1 min 1 s"
    ])
  })
})

describe("the pages of a transcript", () => {
  const entry = (step: number): TranscriptEntry => ({
    step,
    type: "unqueued",
    at: "2026-11-21T14:00:00.000Z",
    prompt_id: "p"
  })
  const list = "list" as const

  it("are put together without a hole or a double, however they come and how often the last is read", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 4 }), { maxLength: 12 }), (grown) => {
        const size = 3
        let stored = 0
        let pages = noPages
        const read = (): void => {
          for (;;) {
            const from = pages.after === undefined ? 0 : pages.after + 1
            const end = Math.min(stored, from + size)
            const data = Array.from({ length: end - from }, (_, index) => entry(from + index))
            const { isMore, pages: then } = withPage(pages, {
              object: list,
              data,
              next: end < stored ? end - 1 : null
            })
            pages = then
            if (!isMore) return
          }
        }
        for (const more of grown) {
          stored += more
          read()
          assert.deepStrictEqual(
            [...pages.settled, ...pages.last].map(({ step }) => step),
            Array.from({ length: stored }, (_, step) => step)
          )
        }
      })
    )
  })
})
