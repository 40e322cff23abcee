import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import type { Approval } from "#src/clients/agent/boundary/Approval.ts"
import { Approvals, type Question } from "#src/clients/agent/boundary/Approvals.ts"
import { makeHome, startAgent } from "../AgentProcess.ts"
import { inDirectory } from "../TestClient.ts"
import { withRig } from "./TerminalRig.ts"

const root = "/home/ada/project"
const questionOf = (command: string): Question => ({
  key: JSON.stringify([["network"], command, []]),
  subject: { type: "command", command },
  ask: {
    callId: "c",
    kinds: ["network"],
    title: "",
    detail: command,
    scope: `Exactly this command in ${root}, network included`
  }
})
const give = async (approvals: Approvals, command: string, approval: Approval): Promise<void> => {
  assert.isTrue(await approvals.allows(questionOf(command), () => Promise.resolve(approval)))
}
const isAllowed = (approvals: Approvals, command: string): Promise<boolean> =>
  approvals.allows(questionOf(command), () => Promise.resolve("no"))

describe("/permissions", () => {
  it(
    "lists scope, time and what is covered, and takes back one or all",
    withRig(
      async (rig) => {
        const { approvals } = rig
        await rig.enter("/permissions")
        assert.include(await rig.text(), "Nothing is allowed beyond what is asked each time")
        await give(approvals, "curl a \u001b[31m", "session")
        await give(approvals, "curl b", "always")
        await give(approvals, "npm test b", { rule: 0, kept: "always" })
        await rig.enter("/permissions")
        const text = await rig.text()
        assert.match(
          text,
          /ap_\w{12} · session · given 20\d\d-\d\d-\d\d \d\d:\d\d UTC\n +Exactly this command/
        )
        assert.include(text, "network included: curl a ␛[31m")
        assert.match(text, /ap_\w{12} · workspace · given/)
        assert.match(text, /ap_\w{12} · workspace rule · given .*\n +“npm test” with any words behind it/)
        const [first] = approvals.list().permissions
        await rig.enter(`/permissions revoke ${first?.id ?? ""}`)
        assert.include(await rig.text(), "1 taken back")
        assert.isFalse(await isAllowed(approvals, "curl a \u001b[31m"))
        assert.isTrue(await isAllowed(approvals, "npm test c"))
        await rig.enter("/permissions revoke ap_nothing")
        assert.include(await rig.text(), "There is no permission ap_nothing")
        await rig.enter("/permissions nonsense")
        assert.include(await rig.text(), "/permissions revoke ID takes one back")
        await rig.enter("/permissions revoke all")
        assert.include(await rig.text(), "2 taken back")
        assert.isFalse(await isAllowed(approvals, "npm test c"))
      },
      { columns: 140 }
    )
  )

  it(
    "names a damaged file, and says so too where something cannot be kept",
    withRig(async (rig) => {
      const file = join(rig.directory, "approvals.json")
      await rig.approvals.allows(questionOf("curl a"), () => {
        writeFileSync(file, "{", { mode: 0o600 })
        return Promise.resolve("always")
      })
      assert.include(await rig.text(), "Allowed for this session only")
      await rig.enter("/permissions")
      assert.match(await rig.text(), /! [\s\S]*approvals\.json is damaged/)
    })
  )
})

describe("signalbox-agent permissions", () => {
  it("lists what is kept, revokes one or all, and speaks JSON", () =>
    inDirectory(async (directory) => {
      const home = makeHome(directory, { url: "http://127.0.0.1:9" })
      mkdirSync(home.configDir, { recursive: true })
      const running = new Approvals(home.configDir, root)
      const other = new Approvals(home.configDir, home.workspace)
      await give(running, "curl a", "always")
      await give(running, "npm test b", { rule: 0, kept: "always" })
      await give(other, "curl b", "always")
      const run = (...args: ReadonlyArray<string>) => startAgent(home, ["permissions", ...args]).ended
      const text = await run()
      assert.strictEqual(text.code, 0, text.err)
      assert.match(
        text.out,
        /ap_\w{12} · workspace rule · given .* UTC · \/home\/ada\/project\n +“npm test” with any/
      )
      const { code, err, out } = await run("list", "--json", "-C", home.workspace)
      assert.strictEqual(code, 0, err)
      const { permissions } = JSON.parse(out) as {
        permissions: ReadonlyArray<{ id: string; covers: string }>
      }
      assert.deepStrictEqual(
        permissions.map(({ covers }) => covers.endsWith("curl b")),
        [true]
      )
      const [kept] = running.list().permissions
      const revoked = await run("revoke", kept?.id ?? "", "--json")
      assert.deepStrictEqual([revoked.code, JSON.parse(revoked.out)], [0, { revoked: 1 }], revoked.err)
      assert.isFalse(await isAllowed(running, "curl a"), "a client that runs asks again")
      assert.isTrue(await isAllowed(running, "npm test c"))
      const unknown = await run("revoke", "ap_nothing")
      assert.strictEqual(unknown.code, 2)
      assert.match(unknown.err, /has no permission ap_nothing/)
      const neither = await run("revoke")
      assert.strictEqual(neither.code, 2)
      assert.match(neither.err, /revoke ID, or permissions revoke --all/)
      const all = await run("revoke", "--all")
      assert.match(all.out, /^2 taken back/)
      assert.isFalse(await isAllowed(running, "npm test c"))
      writeFileSync(join(home.configDir, "approvals.json"), "torn")
      const damaged = await run()
      assert.strictEqual(damaged.code, 2)
      assert.match(damaged.err, /approvals\.json is damaged/)
      assert.strictEqual((await run("revoke", "--all")).code, 2)
      const doctor = await startAgent(home, ["doctor"]).ended
      assert.match(doctor.out, /!! {2}permissions: .*approvals\.json is damaged/)
    }))
})
