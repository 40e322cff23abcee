import { readFileSync, statSync, writeFileSync } from "node:fs"
import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { PromptHistory, historyLimits } from "#src/clients/agent/terminal/PromptHistory.ts"
import { noTerminal } from "#src/clients/agent/terminal/RunTerminal.ts"
import { commandOf } from "#src/clients/agent/terminal/Command.ts"
import { keys, withRig } from "./TerminalRig.ts"

const usage = { promptTokens: 1, completionTokens: 1, totalTokens: 2 }
const session = (id: string, root: string) => ({
  id,
  status: "ended",
  live: false,
  model: "sandbox/coder",
  thinking_level: "off",
  workspace: { root, name: "project" },
  prompts: 3,
  tool_calls: 4,
  tool_calls_denied: 0,
  started_at: "2026-11-20T10:00:00.000Z",
  last_seen_at: "2026-11-20T11:00:00.000Z"
})

describe("what is typed", () => {
  it(
    "is a prompt while nothing is worked on, then steers, and waits with Alt-Enter or /later",
    withRig(async (rig) => {
      await rig.enter("first")
      await rig.enter("more")
      rig.terminal.type(..."after", keys.altEnter)
      await rig.enter("/later at last")
      assert.deepStrictEqual(rig.client.done, [
        ["prompt", "first"],
        ["steer", "more", "steer"],
        ["steer", "after", "follow_up"],
        ["steer", "at last", "follow_up"]
      ])
      const text = await rig.text()
      for (const shown of ["▌ first", "↳ next: more", "↳ later: after", "↳ later: at last"]) {
        assert.include(text, shown)
      }
    })
  )

  it(
    "comes back to the editor when Esc stops the work, and nothing waits any more",
    withRig(async (rig) => {
      await rig.enter("go")
      await rig.enter("first thought")
      rig.terminal.type(..."second")
      await rig.text()
      rig.terminal.type(keys.escape)
      await rig.text()
      assert.deepStrictEqual(rig.client.done.at(-1), ["abort", { clearQueue: true }])
      rig.client.frame({
        type: "prompt.done",
        seq: 5,
        id: rig.client.promptId,
        status: "aborted",
        usage,
        costUsd: 0,
        coveredBySubscription: false,
        turns: 1,
        toolCalls: 0,
        toolCallsDenied: 0
      })
      const text = await rig.text()
      assert.notInclude(text, "↳")
      assert.match(text, /Stopped[\s\S]*first thought\n\nsecond/)
    })
  )

  it(
    "Esc asks for nothing while nothing is worked on",
    withRig(async (rig) => {
      rig.terminal.type(keys.escape)
      await rig.text()
      assert.deepStrictEqual(rig.client.done, [])
    })
  )

  it(
    "is emptied by Ctrl-C; a second one within a second leaves, a later one does not",
    withRig(async (rig) => {
      rig.terminal.type(..."half a thought")
      assert.include(await rig.text(), "half a thought")
      rig.terminal.type(keys.ctrlC)
      const text = await rig.text()
      assert.notInclude(text, "half a thought")
      assert.include(text, "Ctrl-C again leaves")
      rig.now += 1_001
      rig.terminal.type(keys.ctrlC)
      await rig.text()
      assert.isTrue(rig.terminal.running)
      rig.now += 999
      rig.terminal.type(keys.ctrlC)
      assert.strictEqual(await rig.code, 0)
      assert.deepStrictEqual(rig.client.done, [["bye"]])
      assert.isFalse(rig.terminal.running)
      assert.match(await rig.text(), /To go on: signalbox-agent --resume ses_0000000000000000000001$/)
    })
  )

  it(
    "can be a name of a file behind @, which Tab completes",
    withRig(async (rig) => {
      rig.terminal.type(..."look at @sum")
      assert.include(await rig.text(), "src/sum.ts")
      rig.terminal.type(keys.tab)
      await rig.enter("please")
      assert.deepStrictEqual(rig.client.done, [["prompt", "look at @src/sum.ts please"]])
    })
  )

  it(
    "takes the files along that it names, and shows what was typed, now and when it is told again",
    withRig(async (rig) => {
      await rig.enter("look at @shot.png  please")
      const [sent] = rig.client.done
      assert.deepStrictEqual(sent?.slice(-1), ["fil_1"])
      const [, text = ""] = sent ?? []
      assert.include(text, "secret words")
      rig.client.promptId = "another"
      rig.client.event({ kind: "turn_start", turn: 1, text: String(text) })
      const shown = await rig.text()
      assert.strictEqual(shown.split("▌ look at @shot.png").length, 3)
      assert.include(shown, "@b.ts: binary")
      assert.strictEqual(shown.split("▌ with a.ts").length, 3)
      assert.notInclude(shown, "secret words")
    })
  )

  it(
    "comes again with ↑, also in a later run",
    withRig(
      async (rig) => {
        rig.terminal.type(keys.up)
        assert.include(await rig.text(), "from an earlier run")
        await rig.enter("")
        assert.deepStrictEqual(rig.client.done, [["prompt", "from an earlier run"]])
      },
      { historyFile: earlier() }
    )
  )
})

function earlier(): string {
  const file = join(mkdtempSync(join(tmpdir(), "signalbox-history-")), "history")
  new PromptHistory(file).load()
  new PromptHistory(file).add("from an earlier run")
  return file
}

describe("commands", () => {
  it("are one word behind one slash; anything else is a prompt", () => {
    assert.deepStrictEqual(commandOf("/model acme/large"), {
      kind: "command",
      name: "model",
      argument: "acme/large"
    })
    assert.deepStrictEqual(commandOf("/compact\nkeep names"), {
      kind: "command",
      name: "compact",
      argument: "keep names"
    })
    assert.strictEqual(commandOf("/etc/hosts is wrong").kind, "prompt")
    assert.strictEqual(commandOf("what is /model?").kind, "prompt")
    assert.deepStrictEqual(commandOf("/nonsense"), { kind: "unknown", name: "nonsense" })
  })

  it(
    "choose a model by its id, or from a list that typing narrows",
    withRig(async (rig) => {
      await rig.enter("/model acme/large")
      assert.deepStrictEqual(rig.client.done, [["reopen", { model: "acme/large" }]])
      await rig.enter("/model")
      assert.match(await rig.text(), /→ sandbox\/coder +128k/)
      rig.terminal.type(..."coder", keys.enter)
      assert.match(await rig.text(), /● sandbox\/coder/)
      assert.deepStrictEqual(rig.client.done.at(-1), ["reopen", { model: "sandbox/coder" }])
    })
  )

  it(
    "choose how much the model thinks, and say which levels there are",
    withRig(async (rig) => {
      await rig.enter("/thinking enormous")
      assert.include(await rig.text(), "There is no level enormous: off, minimal, low, medium, high, xhigh")
      await rig.enter("/thinking high")
      assert.deepStrictEqual(rig.client.done, [["reopen", { thinkingLevel: "high" }]])
      assert.include(await rig.text(), "thinking high")
    })
  )

  it(
    "go on with another session of this workspace, and with no other's",
    withRig(
      async (rig) => {
        rig.client.known = [
          session("ses_0000000000000000000001", "/home/ada/project"),
          session("ses_elsewhere", "/home/ada/other"),
          session("ses_before", "/home/ada/project")
        ]
        await rig.enter("/resume")
        const text = await rig.text()
        assert.include(text, "ses_before")
        assert.notInclude(text, "ses_elsewhere")
        rig.terminal.type(keys.enter)
        await rig.text()
        assert.deepStrictEqual(rig.client.done, [["resume", "ses_before"]])
        await rig.enter("/sessions")
        assert.include(await rig.text(), "ses_elsewhere")
      },
      { columns: 120 }
    )
  )

  it(
    "begin a new session, make the context smaller, tell about the session, help, and leave",
    withRig(async (rig) => {
      await rig.enter("/compact keep the names")
      assert.match(await rig.text(), /working · 1 s +Esc stops/)
      await rig.enter("/new")
      assert.deepStrictEqual(rig.client.done, [["compact", "keep the names"], ["newSession"]])
      await rig.enter("/session")
      assert.include(await rig.text(), "session   ses_0000000000000000000002")
      await rig.enter("/help")
      assert.include(await rig.text(), "/thinking [level]")
      await rig.enter("/nonsense")
      assert.include(await rig.text(), "There is no command /nonsense")
      await rig.enter("/quit")
      assert.strictEqual(await rig.code, 0)
    })
  )

  it(
    "say what went wrong with them",
    withRig(async (rig) => {
      rig.client.newSession = () => Promise.reject(new Error("8 sessions are live"))
      await rig.enter("/new")
      assert.include(await rig.text(), "8 sessions are live")
    })
  )
})

describe("the history of prompts", () => {
  it("is for its owner alone, bounded, and survives lines that are none", () => {
    const file = earlier()
    assert.strictEqual(statSync(file).mode & 0o777, 0o600)
    writeFileSync(file, `${readFileSync(file, "utf8")}{"torn\n42\n`)
    const history = new PromptHistory(file)
    assert.deepStrictEqual(history.load(), ["from an earlier run"])
    history.add("x".repeat(historyLimits.entryCharacters + 1))
    for (let index = 0; index <= historyLimits.fileEntries; index++) history.add(`prompt ${index}`)
    const kept = new PromptHistory(file).load()
    assert.strictEqual(kept.length, historyLimits.entries)
    assert.strictEqual(kept.at(-1), `prompt ${historyLimits.fileEntries}`)
    assert.isBelow(readFileSync(file, "utf8").split("\n").length, historyLimits.fileEntries)
    assert.strictEqual(statSync(file).mode & 0o777, 0o600)
  })
})

describe("a terminal that can not be drawn on", () => {
  it("is told of before anything else, with what to do instead", () => {
    const both = { input: true, output: true }
    assert.isUndefined(noTerminal({ TERM: "xterm" }, both))
    assert.match(noTerminal({ TERM: "dumb" }, both) ?? "", /TERM=dumb.*signalbox-agent -p/)
    assert.match(noTerminal({}, both) ?? "", /signalbox-agent -p/)
    assert.match(noTerminal({ TERM: "xterm" }, { ...both, input: false }) ?? "", /no terminal.*-p/)
  })
})
