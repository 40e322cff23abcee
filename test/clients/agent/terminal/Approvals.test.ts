import { assert, describe, it } from "@effect/vitest"
import type { Approval } from "#src/clients/agent/boundary/Approval.ts"
import { approvalPauses } from "#src/clients/agent/terminal/ApprovalKeys.ts"
import { keys, withRig } from "./TerminalRig.ts"

const commit = {
  kinds: ["commit"] as const,
  title: "Run a command that commits",
  detail: "git commit -m 'x'",
  scope: "git commit in this workspace"
}

const { burst, confirm, quiet, settle } = approvalPauses
const rules = [
  {
    name: "npm test *",
    covers: "“npm test” with any words behind it",
    examples: ["npm test a", "npm test b\nc"]
  }
]

describe("asking for the user's word", () => {
  it(
    "shows what would run, takes one key for once and no, and no more than these by one key",
    withRig(async (rig) => {
      for (const [key, approval] of [
        ["y", "once"],
        ["Y", "once"],
        ["n", "no"],
        [keys.escape, "no"]
      ] as const) {
        const answer = rig.client.approval({ ...commit, rules })
        const text = await rig.text()
        rig.now += quiet
        assert.include(text, "git commit -m 'x'")
        assert.include(text, "Run a command that commits")
        rig.terminal.type(key)
        await rig.text()
        rig.now += settle
        assert.strictEqual(await answer, approval)
        assert.notInclude(await rig.text(), "y once")
      }
      for (const key of ["s", "a", "r", keys.right, keys.tab, keys.enter]) {
        let given: Approval | undefined
        void rig.client.approval({ ...commit, rules }).then((approval) => (given = approval))
        await rig.text()
        rig.now += quiet
        rig.terminal.type(key)
        await rig.text()
        rig.now += 60_000
        await rig.text()
        assert.isUndefined(given, key)
        rig.terminal.type(keys.escape)
        await rig.text()
        assert.strictEqual(given, "no")
      }
      assert.deepStrictEqual(rig.client.done, [], "Esc was for the question, not for the work")
    })
  )

  it(
    "gives what lasts only to Enter behind the choice, with what it would cover on the screen",
    withRig(async (rig) => {
      for (const [typed, covers, approval] of [
        [
          ["s"],
          "Until this session ends (/new, another session, leaving): git commit in this workspace",
          "session"
        ],
        [
          ["a"],
          "In this workspace, until you revoke it (/permissions): git commit in this workspace",
          "always"
        ],
        [["r"], "Until this session ends", { rule: 0, kept: "session" }],
        [["r", keys.right], "npm test b ⏎ c", { rule: 0, kept: "always" }],
        [[keys.right, keys.right], "Until this session ends", "session"],
        [[keys.left], "Refused; the agent is told", "no"],
        [[keys.tab], "This one time", "once"]
      ] as const) {
        const answer = rig.client.approval({ ...commit, rules })
        await rig.text()
        rig.now += quiet
        for (const key of typed) {
          rig.terminal.type(key)
          await rig.text()
          rig.now += confirm
        }
        const text = (await rig.text()).replaceAll("\n", " ")
        assert.include(text, covers)
        assert.include(text, "Enter confirms")
        rig.terminal.type(keys.enter)
        rig.now += burst
        assert.deepStrictEqual(await answer, approval)
      }
    })
  )

  it(
    "takes no Enter for a confirmation that comes with the choice, or before what it covers was drawn",
    withRig(async (rig) => {
      let given: Approval | undefined
      void rig.client.approval(commit).then((approval) => (given = approval))
      await rig.text()
      rig.now += quiet
      rig.terminal.type(keys.right, keys.right, keys.enter)
      await rig.text()
      rig.now += confirm - 1
      rig.terminal.type(keys.enter)
      await rig.text()
      assert.isUndefined(given)
      rig.now += confirm
      rig.terminal.type(keys.enter)
      rig.now += burst
      await rig.text()
      assert.strictEqual(given, "session")
    })
  )

  it(
    "offers nothing that would be kept where nothing can be kept, and says why",
    withRig(async (rig) => {
      const answer = rig.client.approval({ ...commit, rules, unkept: "approvals.json is damaged" })
      const text = await rig.text()
      assert.include(text, "approvals.json is damaged")
      assert.notInclude(text, "always here")
      assert.include(text, "npm test * this session")
      rig.terminal.type(keys.escape)
      assert.strictEqual(await answer, "no")
    })
  )

  it(
    "takes no key for an answer that was typed for the editor, and loses none",
    withRig(async (rig) => {
      const answer = rig.client.approval(commit)
      rig.terminal.type("y")
      await rig.text()
      rig.now += quiet - 1
      rig.terminal.type("e", "s")
      rig.now += quiet
      assert.match(await rig.text(), /in the editor: yes/)
      rig.terminal.type("n")
      await rig.text()
      rig.now += settle
      assert.match(await rig.text(), /in the editor: yesn/, "no letter counts while something is unsent")
      rig.terminal.type(keys.tab)
      assert.match(await rig.text(), /\[no\]/)
      rig.now += confirm
      rig.terminal.type(keys.enter)
      rig.now += burst
      assert.strictEqual(await answer, "no")
      assert.match(await rig.text(), /\nyesn\n/)
    })
  )

  it(
    "lets what is typed meanwhile be sent, and then takes keys again",
    withRig(async (rig) => {
      await rig.enter("go")
      const answer = rig.client.approval(commit)
      await rig.text()
      rig.now += quiet
      rig.terminal.type(..."use main", keys.enter)
      await rig.text()
      assert.deepStrictEqual(rig.client.done.at(-1), ["steer", "use main", "steer"])
      rig.now += quiet
      rig.terminal.type("y")
      await rig.text()
      rig.now += settle
      assert.strictEqual(await answer, "once")
    })
  )

  it(
    "takes nothing of a paste for an answer, marked as one or not",
    withRig(async (rig) => {
      for (const paste of [
        ["\u001b[200~y\u001b[201~"],
        ["\u001b[200~\u001b[C\u001b[C\r\u001b[201~"],
        ["y\r"],
        [..."y or n"],
        ["s", keys.enter],
        ["y", keys.enter],
        [keys.right, keys.right, keys.enter, keys.enter]
      ]) {
        let given: Approval | undefined
        void rig.client.approval(commit).then((approval) => (given = approval))
        await rig.text()
        rig.now += quiet
        rig.terminal.type(...paste)
        await rig.text()
        rig.now += 60_000
        await rig.text()
        assert.isUndefined(given, JSON.stringify(paste))
        rig.terminal.type(keys.escape)
        await rig.text()
        rig.terminal.type(keys.ctrlC)
        await rig.text()
        rig.now += 2_000
      }
    })
  )

  it(
    "takes a yes only after all of what would run was on the screen",
    withRig(async (rig) => {
      const lines = Array.from({ length: 40 }, (_none, index) => `step ${index};`)
      const answer = rig.client.approval({ ...commit, detail: [...lines, "rm -rf everything"].join("\n") })
      assert.notInclude(await rig.text(), "rm -rf")
      rig.now += quiet
      rig.terminal.type("y")
      await rig.text()
      rig.now += settle
      assert.include(await rig.text(), "lines 1 to 14 of 41; ↓ to see all of it")
      rig.terminal.type(keys.enter)
      for (const page of [1, 2]) {
        rig.terminal.type(keys.pageDown)
        assert.include(await rig.text(), page < 2 ? "; ↓ to see" : "to 41 of 41")
      }
      assert.include(await rig.text(), "rm -rf everything")
      rig.now += quiet
      rig.terminal.type("y")
      await rig.text()
      rig.now += settle
      assert.strictEqual(await answer, "once")
    })
  )

  for (const [columns, rows] of [
    [20, 5],
    [30, 9]
  ] as const)
    it(
      `takes no yes in a window of ${columns} by ${rows}, shows all that is asked there, and takes one in a larger one`,
      withRig(
        async (rig) => {
          let given: Approval | undefined
          const detail = "first words of it; middle words of it; last words of it"
          void rig.client.approval({ ...commit, detail, rules }).then((approval) => (given = approval))
          const shown = new Set<string>()
          for (const key of [
            "y",
            keys.enter,
            keys.right,
            keys.enter,
            "s",
            keys.enter,
            keys.down,
            keys.down,
            keys.down,
            "y"
          ]) {
            const lines = await rig.terminal.visible()
            assert.include(lines.join("\n"), "Run a command that", "the question is not above the window")
            for (const line of lines) shown.add(line.slice(4))
            assert.match(lines.join("\n"), /Too small[\s\S]*Esc: no · ↑↓ all/)
            rig.now += 2_000
            rig.terminal.type(key)
            if (key === "y" || key === "s") {
              rig.now += 2_000
              rig.terminal.type("\u007f")
            }
          }
          await rig.text()
          assert.isUndefined(given)
          const all = [...shown].join("")
          for (const word of ["first", "middle", "last"]) assert.include(all, word)
          rig.terminal.resize(80, 24)
          assert.include(await rig.text(), "y once")
          rig.now += quiet
          rig.terminal.type("y")
          await rig.text()
          rig.now += settle
          await rig.text()
          assert.strictEqual(given, "once")
        },
        { columns, rows }
      )
    )

  it(
    "fits every window, at 40 by 12 with all of the question and its answers",
    withRig(
      async (rig) => {
        const answer = rig.client.approval({ ...commit, rules, unkept: "approvals.json is damaged" })
        for (const [columns, rows] of [
          [120, 30],
          [80, 24],
          [40, 12],
          [33, 10],
          [30, 9],
          [20, 5],
          [12, 3],
          [2, 1]
        ] as const) {
          rig.terminal.resize(columns, rows)
          const lines = await rig.terminal.visible()
          if (rows > 5) assert.include(lines.join("\n"), "Run a command that", `${columns} by ${rows}`)
          if (rows >= 12) assert.match(lines.join("\n"), /git commit -m 'x'[\s\S]*y once[\s\S]*n no/)
        }
        rig.terminal.type(keys.escape)
        assert.strictEqual(await answer, "no")
      },
      { columns: 120, rows: 30 }
    )
  )

  it(
    "shows characters that hide or turn around others, and lines however long",
    withRig(async (rig) => {
      const detail = `echo \u202egnihtemos \u200d\u3164${"a".repeat(200)} && \u001b[8mhidden`
      const answer = rig.client.approval({ ...commit, detail })
      const shown = (await rig.text()).replaceAll(/\n +▏ /g, "")
      assert.include(shown, "\\u{202e}gnihtemos \\u{200d}\\u{3164}")
      assert.include(shown, `${"a".repeat(200)} && ␛[8mhidden`)
      rig.terminal.type(keys.escape)
      await answer
    })
  )

  it(
    "asks for several calls one after the other, and forgets those that are gone",
    withRig(async (rig) => {
      const gone = new AbortController()
      const answers = [
        rig.client.approval({ ...commit, callId: "c1", detail: "first" }),
        rig.client.approval({ ...commit, callId: "c2", detail: "second" }, gone.signal),
        rig.client.approval({ ...commit, callId: "c3", detail: "third" })
      ]
      assert.match(await rig.text(), /1 of 3\n +▏ first/)
      gone.abort()
      assert.match(await rig.text(), /1 of 2\n +▏ first/)
      rig.now += quiet
      rig.terminal.type("y")
      await rig.text()
      rig.now += settle
      assert.match(await rig.text(), /▏ third/)
      rig.terminal.type("y")
      rig.now += 60_000
      assert.match(
        await rig.text(),
        /in the editor: y\n/,
        "a key right behind an answer is not the next one's"
      )
      rig.terminal.type(keys.escape)
      assert.deepStrictEqual(await Promise.all(answers), ["once", "no", "no"])
    })
  )

  it(
    "waits until a list that is being chosen from is closed",
    withRig(async (rig) => {
      await rig.enter("/model")
      const answer = rig.client.approval(commit)
      assert.notInclude(await rig.text(), "y once")
      rig.terminal.type(keys.escape)
      assert.include(await rig.text(), "y once")
      rig.now += quiet
      rig.terminal.type("y")
      await rig.text()
      rig.now += settle
      assert.strictEqual(await answer, "once")
    })
  )

  it(
    "is answered with no when the user leaves",
    withRig(async (rig) => {
      const answer = rig.client.approval(commit)
      await rig.text()
      await rig.close()
      assert.strictEqual(await answer, "no")
    })
  )
})
