import { assert, describe, it } from "@effect/vitest"
import { typingPauseMillis } from "#src/clients/agent/terminal/ApprovalDialog.ts"
import { keys, withRig } from "./TerminalRig.ts"

const commit = {
  kinds: ["commit"] as const,
  title: "Run a command that commits",
  detail: "git commit -m 'x'",
  scope: "git commit in this workspace"
}

describe("asking for the user's word", () => {
  it(
    "shows what would run and what session and always cover, and takes one key",
    withRig(async (rig) => {
      for (const [key, approval] of [
        ["y", "once"],
        ["s", "session"],
        ["a", "always"],
        ["n", "no"],
        [keys.escape, "no"]
      ] as const) {
        const answer = rig.client.approval(commit)
        rig.now += typingPauseMillis
        const text = await rig.text()
        assert.include(text, "git commit -m 'x'")
        assert.include(text, "Run a command that commits")
        assert.include(text, "cover: git commit in this workspace")
        rig.terminal.type(key)
        assert.strictEqual(await answer, approval)
        assert.notInclude(await rig.text(), "cover:")
      }
      assert.deepStrictEqual(rig.client.done, [], "Esc was for the question, not for the work")
    })
  )

  it(
    "takes no key for an answer that was typed for the editor, and loses none",
    withRig(async (rig) => {
      const answer = rig.client.approval(commit)
      rig.terminal.type("y")
      rig.now += typingPauseMillis - 1
      rig.terminal.type("e", "s")
      rig.now += typingPauseMillis
      await rig.text()
      rig.terminal.type("n")
      assert.strictEqual(await answer, "no")
      assert.match(await rig.text(), /\nyes\n/)
    })
  )

  it(
    "takes a yes only after all of what would run was on the screen",
    withRig(async (rig) => {
      const lines = Array.from({ length: 40 }, (_none, index) => `step ${index};`)
      const answer = rig.client.approval({ ...commit, detail: [...lines, "rm -rf everything"].join("\n") })
      rig.now += typingPauseMillis
      assert.notInclude(await rig.text(), "rm -rf")
      rig.terminal.type("y", "s", "a")
      assert.include(await rig.text(), "lines 1 to 10 of 41; ↓ to see all of it")
      for (const page of [2, 3, 4, 5]) {
        rig.terminal.type(keys.pageDown)
        assert.include(await rig.text(), `lines ${Math.min(page * 10 - 9, 32)} to`)
      }
      assert.include(await rig.text(), "rm -rf everything")
      rig.terminal.type("y")
      assert.strictEqual(await answer, "once")
    })
  )

  it(
    "shows characters that hide or turn around others, and lines however long",
    withRig(async (rig) => {
      const detail = `echo \u202egnihtemos \u200d\u3164${"a".repeat(200)} && \u001b[8mhidden`
      const answer = rig.client.approval({ ...commit, detail })
      rig.now += typingPauseMillis
      const shown = (await rig.text()).replaceAll(/\n +▏ /g, "")
      assert.include(shown, "\\u{202e}gnihtemos \\u{200d}\\u{3164}")
      assert.include(shown, `${"a".repeat(200)} && ␛[8mhidden`)
      rig.terminal.type("n")
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
      rig.now += typingPauseMillis
      rig.terminal.type("y")
      assert.match(await rig.text(), /▏ third/)
      rig.terminal.type("y")
      rig.now += 2 * typingPauseMillis
      rig.terminal.type("s")
      assert.deepStrictEqual(await Promise.all(answers), ["once", "no", "session"])
      assert.match(await rig.text(), /\ny\n/, "a key right behind an answer is not the next one's")
    })
  )

  it(
    "waits until a list that is being chosen from is closed",
    withRig(async (rig) => {
      await rig.enter("/model")
      const answer = rig.client.approval(commit)
      assert.notInclude(await rig.text(), "cover:")
      rig.terminal.type(keys.escape)
      assert.include(await rig.text(), "cover:")
      rig.now += typingPauseMillis
      rig.terminal.type("y")
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
