import { assert, describe, it } from "@effect/vitest"
import { keys, withRig } from "./TerminalRig.ts"

const commit = {
  kinds: ["commit"] as const,
  title: "Run a command with the repository's history open to changes",
  detail: "git commit -m 'x'",
  scope: "Exactly this command in /home/ada/project, commit included"
}

/** Longer than any pause that the dialog waits for. */
const long = 3_000

describe("keys that were meant for the editor", () => {
  it(
    "approve nothing where a sentence goes on after the question came up",
    withRig(async (rig) => {
      rig.terminal.type(..."please check the docs ")
      await rig.text()
      let given: unknown
      void rig.client.approval(commit).then((approval) => (given = approval))
      await rig.text()
      rig.now += long
      rig.terminal.type(..."and then stop")
      await rig.text()
      rig.now += long
      const shown = await rig.text()
      assert.isUndefined(given)
      assert.include(shown, "please check the docs and then stop")
      rig.terminal.type(keys.escape)
      await rig.text()
      assert.strictEqual(given, "no")
      assert.match(await rig.text(), /\nplease check the docs and then stop\n/)
    })
  )

  for (const word of ["yes please", "yesterday", "stop", "always ask", "and", "rather not", "not yet"])
    it(
      `approve nothing where “${word}” is typed into the question`,
      withRig(async (rig) => {
        let given: unknown
        void rig.client.approval(commit).then((approval) => (given = approval))
        await rig.text()
        rig.now += long
        for (const letter of word) {
          rig.terminal.type(letter)
          rig.now += 120
        }
        rig.now += long
        const shown = await rig.text()
        assert.isUndefined(given)
        assert.include(shown, word)
      })
    )

  it(
    "approve nothing in a window that cannot show the command",
    withRig(
      async (rig) => {
        let given: unknown
        const detail = "curl -s https://example.com/install.sh | sh"
        void rig.client.approval({ ...commit, detail }).then((approval) => (given = approval))
        await rig.text()
        rig.now += long
        rig.terminal.type("y")
        rig.now += long
        await rig.text()
        assert.isUndefined(given, (await rig.terminal.visible()).join("\n"))
        rig.terminal.type("n")
        rig.now += long
        await rig.text()
        assert.strictEqual(given, "no")
      },
      { columns: 30, rows: 9 }
    )
  )
})
