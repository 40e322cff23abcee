import { spawn } from "node:child_process"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { exitCodes } from "#src/clients/agent/ExitCodes.ts"
import { amount, seconds, tokens } from "#src/clients/agent/terminal/Figures.ts"
import { keys, TerminalRig, withRig } from "./TerminalRig.ts"

const usage = { promptTokens: 12_000, completionTokens: 800, totalTokens: 12_800 }
const editArgs = {
  path: "src/sum.ts",
  edits: [{ oldText: "const a = 1\nreturn a - b\n}", newText: "const a = 1\nreturn a + b\n}" }]
}

/** A whole prompt, as a server tells it. */
const work = async (rig: TerminalRig, bad = ""): Promise<void> => {
  const { client } = rig
  client.promptId = "p1"
  client.event({ kind: "turn_start", turn: 1, text: `fix it ${bad}` })
  client.event({
    kind: "thinking_delta",
    messageId: "m1",
    contentIndex: 0,
    delta: `Hm, ${bad}one\ntwo\nthree`
  })
  client.event({
    kind: "text_delta",
    messageId: "m1",
    contentIndex: 1,
    delta: `# Plan ${bad}\n\n**bold** [site](https://a.example/${bad})`
  })
  client.event({
    kind: "message_end",
    messageId: "m1",
    model: "m",
    content: [
      { type: "thinking", text: `Hm, ${bad}one\ntwo\nthree` },
      {
        type: "text",
        text: `# Plan ${bad}\n\n**bold** [site](https://a.example/${bad})\n\n\`\`\`${bad}\n${bad}\n\`\`\`\n\n| ${bad} | b |\n|---|---|\n| ${bad} | d |`
      },
      { type: "tool_call", callId: "c1", tool: "edit", args: editArgs },
      { type: "tool_call", callId: "c2", tool: `bash`, args: { command: `npm test ${bad}` } },
      { type: "tool_call", callId: "c3", tool: `strange${bad}`, args: { [bad]: bad } }
    ],
    stopReason: "tool_calls",
    usage,
    costUsd: 0.0123
  })
  client.tool({ state: "started", callId: "c1", method: "fs.edit", params: editArgs })
  client.tool({ state: "ended", callId: "c1", ok: true, denied: false, durationMs: 8 })
  client.tool({ state: "started", callId: "c2", method: "proc.exec", params: { command: `npm test ${bad}` } })
  for (let line = 1; line <= 9; line++) {
    client.tool({ state: "output", callId: "c2", stream: "stdout", data: `ok ${line} ${bad}\n` })
  }
  client.event({
    kind: "tool_end",
    callId: "c3",
    ok: false,
    denied: true,
    durationMs: 0,
    error: { code: "denied", message: `no ${bad}` }
  })
}

const stops = async ({ client }: TerminalRig): Promise<void> => {
  client.tool({
    state: "ended",
    callId: "c2",
    ok: true,
    denied: false,
    durationMs: 2_340,
    result: { exitCode: 1, output: "", truncated: false }
  })
  client.frame({
    type: "prompt.done",
    seq: 50,
    id: "p1",
    status: "completed",
    usage,
    costUsd: 0.034,
    coveredBySubscription: false,
    turns: 2,
    toolCalls: 3,
    toolCallsDenied: 1
  })
}

describe("the screen", () => {
  it(
    "shows what was asked, the answer, each call on a line, diffs, and the end of what runs",
    withRig(async (rig) => {
      await work(rig)
      const text = await rig.text()
      for (const line of [
        "▌ fix it",
        "▹ thought, 4 words (Ctrl-T shows)",
        "bold site (https://a.example/)",
        "✓ edit src/sum.ts · +1 −1 · 8 ms",
        "  -return a - b",
        "  +return a + b",
        "▸ bash npm test · running",
        "  │ ok 4",
        "  │ ok 9",
        "⊘ strange"
      ]) {
        assert.include(text, line)
      }
      assert.notInclude(text, "ok 3", "only the end")
      assert.match(text, /running bash · 1 s +Esc stops/)
      await stops(rig)
      const over = await rig.text()
      assert.include(over, "✗ bash npm test · exit 1 · 2.3 s")
      assert.include(over, "Done · 3 tool calls · 13k tokens · $0.034")
      assert.match(over, /● sandbox\/coder · 13k\/128k \(10%\) · \$0.034 · thinking medium +project$/)
    })
  )

  it(
    "shows all of a thought and of a call when asked to, and less again",
    withRig(async (rig) => {
      await work(rig)
      await stops(rig)
      assert.notInclude(await rig.text(), "two")
      rig.terminal.type(keys.ctrlT)
      assert.include(await rig.text(), "two\nthree")
      rig.terminal.type(keys.ctrlO)
      assert.include(await rig.text(), "│ ok 1\n")
      rig.terminal.type(keys.ctrlT, keys.ctrlO)
      assert.notInclude(await rig.text(), "two\nthree")
    })
  )

  it(
    "keeps everything on it while the connection is away, and says when it is tried again",
    withRig(async (rig) => {
      await work(rig)
      const before = await rig.text()
      rig.client.emit({ type: "link", state: "waiting", retryInMillis: 3_000, problem: "gone" })
      const away = await rig.text()
      assert.include(away, "○ reconnecting in 3 s")
      rig.client.attach({ resumed: true, activePrompt: "p1" })
      assert.strictEqual(await rig.text(), before)
    })
  )

  it("has no line that is wider than it, at any width", async () => {
    for (const columns of [11, 60]) {
      await withRig(
        async (rig) => {
          await work(rig, "漢字 wide 👩\u200d👩\u200d👧 ✅ ".repeat(30))
          await rig.text()
          rig.terminal.resize(columns - 3, 20)
          rig.terminal.type(..."/mo")
          await rig.text()
          rig.terminal.type(keys.enter)
          await rig.text()
          const approval = rig.client.approval({ title: "long ".repeat(30), detail: "漢".repeat(90) })
          rig.terminal.type(keys.escape)
          await rig.text()
          rig.terminal.type(keys.escape)
          assert.strictEqual(await approval, "no")
          assert.isTrue(rig.terminal.running)
          assert.strictEqual(rig.terminal.wrapped(), 0)
        },
        { columns, rows: 20 }
      )()
    }
  })

  it(
    "has no colours where NO_COLOR is set, and is as clear without",
    withRig(
      async (rig) => {
        await work(rig)
        assert.include(await rig.text(), "+return a + b")
        // oxlint-disable-next-line no-control-regex
        assert.notMatch(rig.terminal.written, /\u001b\[(?:\d+;)*(?:3[0-8]|4[0-8]|9\d|10[0-7])(?:;\d+)*m/)
      },
      { environment: { TERM: "xterm", NO_COLOR: "1" } }
    )
  )

  it(
    "says that a plan pays where it does",
    withRig(async (rig) => {
      rig.client.attach({ billing: { mode: "subscription", plan: "Team", covers_direct_api: false } })
      assert.match(await rig.text(), /0\/128k \(0%\) · plan/)
    })
  )

  it("ends with the code and the words of a connection that can not go on", async () => {
    const rig = new TerminalRig()
    await rig.text()
    rig.client.emit({ type: "link", state: "closed", reason: "superseded", problem: "Another client has it" })
    assert.strictEqual(await rig.close(), exitCodes.aborted)
    assert.include(await rig.text(), "Another client has it\nTo go on: signalbox-agent --resume ses_")
  })
})

describe("text of others", () => {
  /** The output of the drawing library: styles, cursor movements, clearing, synchronized output, the end of a link. */
  const known =
    // oxlint-disable-next-line no-control-regex
    /\u001b\[(?:\d+(?:;\d+)*)?m|\u001b\[\d+[ABG]|\u001b\[[23]?[JKH]|\u001b\[\?(?:25|2026)[hl]|\u001b\]8;;(?:\u0007|\u001b\\)|\r\n|\r/g
  // oxlint-disable-next-line no-control-regex
  const command = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/

  const hostile = fc
    .array(
      fc.oneof(
        fc.constantFrom(
          "\u001b]0;title\u0007",
          "\u001b]52;c;aGk=\u0007",
          "\u001b]8;;https://evil.example\u001b\\",
          "\u001b[2J\u001b[H",
          "\u001b[8m",
          "\u001bP+q\u001b\\",
          "\u001b_Ga=T;AAAA\u001b\\",
          "\u001b_pi:c\u0007",
          "\u009b2J",
          "\u202e",
          "\u2067",
          "\b\b\b",
          "\r",
          "&#27;[2J",
          "\\\u001b"
        ),
        fc.string({ unit: "binary", maxLength: 5 })
      ),
      { minLength: 1, maxLength: 8 }
    )
    .map((pieces) => pieces.join(""))

  it("never reaches the terminal as a command, whatever it is a part of", async () => {
    await fc.assert(
      fc.asyncProperty(hostile, async (bad) => {
        const rig = new TerminalRig({
          files: () => Promise.resolve([`${bad}.ts`, "ok.ts"]),
          models: () => Promise.resolve([{ id: `m${bad}`, name: bad, context_length: 5 }])
        })
        await work(rig, bad)
        const rules = [{ name: bad, covers: bad, examples: [bad] }]
        const approval = rig.client.approval({ title: bad, detail: bad, scope: bad, rules, unkept: bad })
        await rig.text()
        rig.now += 1_000
        for (const key of ["s", keys.right, keys.ctrlO, keys.ctrlT]) {
          rig.terminal.type(key)
          await rig.text()
        }
        rig.terminal.type(keys.escape, ..."/model", keys.enter)
        await approval
        await rig.text()
        rig.terminal.type(keys.escape, ..."@")
        await rig.text()
        rig.terminal.type(keys.escape, keys.escape)
        await rig.close()
        assert.notMatch(rig.terminal.written.replaceAll(known, ""), command)
      }),
      { numRuns: 8 }
    )
  })
})

describe("a crash", () => {
  it("gives the terminal back as it was, and says what happened", async () => {
    const program = `
      import { ScriptedClient } from "#test/clients/agent/terminal/ScriptedClient.ts"
      import { runTerminal } from "#src/clients/agent/terminal/RunTerminal.ts"
      setTimeout(() => { throw new Error("a bug") }, 50)
      await runTerminal(new ScriptedClient(), {
        version: "1", workspace: { root: "/w", name: "w" }, historyFile: process.argv[1],
        permissions: { list: () => ({ permissions: [], isDamaged: false }), revoke: () => 0, tellProblems: () => undefined },
        models: async () => [], files: async () => [], attach: async (text) => ({ text, images: [], problems: [] }), environment: process.env
      })`
    const rig = new TerminalRig()
    const child = spawn(
      process.execPath,
      ["--input-type=module", "-e", program, join(rig.directory, "history")],
      { cwd: join(import.meta.dirname, "../../../.."), stdio: "pipe" }
    )
    const written = { out: "", err: "" }
    child.stdout.on("data", (data: Buffer) => (written.out += data.toString()))
    child.stderr.on("data", (data: Buffer) => (written.err += data.toString()))
    const code = await new Promise((resolve) => child.once("close", resolve))
    await rig.close()
    assert.strictEqual(code, exitCodes.error)
    assert.include(written.err, "Error: a bug")
    // Bracketed paste, key reports and the hidden cursor were switched on, and are off again.
    for (const [on, off] of [
      ["\u001b[?2004h", "\u001b[?2004l"],
      ["\u001b[?25l", "\u001b[?25h"],
      ["\u001b[>", "\u001b[<u"]
    ] as const) {
      assert.isAtLeast(written.out.indexOf(on), 0)
      assert.isAbove(written.out.lastIndexOf(off), written.out.lastIndexOf(on))
    }
  })
})

describe("figures", () => {
  it("are short and say enough", () => {
    assert.deepStrictEqual([0, 999, 1_000, 12_840, 999_499, 1_000_000].map(tokens), [
      "0",
      "999",
      "1k",
      "13k",
      "999k",
      "1M"
    ])
    assert.deepStrictEqual([0, 0.000_012_3, 0.034, 0.1, 12.345].map(amount), [
      "$0",
      "$0.000012",
      "$0.034",
      "$0.10",
      "$12.35"
    ])
    assert.deepStrictEqual([12, 3_240, 58_400, 245_000, 7_800_000].map(seconds), [
      "12 ms",
      "3.2 s",
      "58 s",
      "4 min 5 s",
      "2 h 10 min"
    ])
  })
})
