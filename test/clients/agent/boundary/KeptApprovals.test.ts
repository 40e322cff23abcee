import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import type { Approval, ApprovalAsk } from "#src/clients/agent/boundary/Approval.ts"
import {
  Approvals,
  keptPermissions,
  type Question,
  revokeKept
} from "#src/clients/agent/boundary/Approvals.ts"
import { inDirectory } from "../TestClient.ts"

const root = "/home/ada/project"
const questionOf = (command: string): Question => ({
  key: JSON.stringify([["network"], command, []]),
  subject: { type: "command", command },
  ask: {
    callId: "c",
    kinds: ["network"],
    title: "Run a command",
    detail: command,
    scope: `Exactly this command in ${root}, network included`
  }
})

class User {
  readonly asked: Array<ApprovalAsk> = []
  answer: Approval = "no"
  readonly approve = (ask: ApprovalAsk): Promise<Approval> => {
    this.asked.push(ask)
    return Promise.resolve(this.answer)
  }
}

const withFile = (
  use: (places: { directory: string; file: string; user: User; open: () => Approvals }) => Promise<void>
): Promise<void> =>
  inDirectory(async (directory) => {
    mkdirSync(directory, { recursive: true })
    const open = (): Approvals => new Approvals(directory, root)
    await use({ directory, file: join(directory, "approvals.json"), user: new User(), open })
  })

const byRule = { rule: 0, kept: "always" } as const

describe("what is allowed for longer than once", () => {
  it("is listed with its scope, what it covers and when it was given, and is asked for again once revoked", () =>
    withFile(async ({ open, user }) => {
      const approvals = open()
      approvals.enter("ses_1")
      for (const [answer, command] of [
        ["session", "curl a"],
        [{ rule: 0, kept: "session" }, "npm audit x"],
        ["always", "curl b"],
        [byRule, "npm test a"]
      ] as const) {
        user.answer = answer
        assert.isTrue(await approvals.allows(questionOf(command), user.approve))
      }
      const { permissions, problem } = approvals.list()
      assert.isUndefined(problem)
      assert.deepStrictEqual(
        permissions.map(({ covers, scope }) => [scope, covers.slice(0, 60)]),
        [
          ["session", `Exactly this command in ${root}, network included: curl a`.slice(0, 60)],
          ["session rule", `“npm audit” with any words behind it, as a command of its own`.slice(0, 60)],
          ["workspace", `Exactly this command in ${root}, network included: curl b`.slice(0, 60)],
          ["workspace rule", `“npm test” with any words behind it, as a command of its own`.slice(0, 60)]
        ]
      )
      for (const { given } of permissions) assert.isFalse(Number.isNaN(Date.parse(given ?? "")))
      user.answer = "no"
      for (const command of ["curl a", "npm audit y", "curl b", "npm test b"])
        assert.isTrue(await approvals.allows(questionOf(command), user.approve), command)
      for (const { id } of permissions) assert.strictEqual(approvals.revoke(id), 1)
      assert.strictEqual(approvals.revoke("ap_unknown"), 0)
      assert.deepStrictEqual(approvals.list().permissions, [])
      for (const command of ["curl a", "npm audit y", "curl b", "npm test b"])
        assert.isFalse(await approvals.allows(questionOf(command), user.approve), command)
    }))

  it("shows with a rule what this session asked for that it would have covered", () =>
    withFile(async ({ open, user }) => {
      const approvals = open()
      for (const command of [
        "npm test a",
        "npm test b && x",
        "npm run c",
        "npm test d",
        "npm test d",
        "npm test e"
      ])
        await approvals.allows(questionOf(command), user.approve)
      const [rule] = user.asked.at(-1)?.rules ?? []
      assert.strictEqual(rule?.name, "npm test *")
      assert.include(rule?.covers, root)
      assert.include(rule?.covers, "with the network")
      assert.deepStrictEqual(rule?.examples, ["npm test a", "npm test d"])
    }))

  it("is over at once where another process revokes it, and is not brought back by one that keeps more", () =>
    withFile(async ({ directory, open, user }) => {
      const running = open()
      user.answer = "always"
      await running.allows(questionOf("curl a"), user.approve)
      await running.allows(questionOf("curl b"), user.approve)
      assert.strictEqual(
        revokeKept(directory, ({ covers }) => covers.endsWith("curl a")),
        1
      )
      await running.allows(questionOf("curl c"), user.approve)
      user.answer = "no"
      assert.isFalse(await running.allows(questionOf("curl a"), user.approve))
      assert.isTrue(await running.allows(questionOf("curl b"), user.approve))
      assert.isTrue(await open().allows(questionOf("curl c"), user.approve))
      assert.strictEqual(
        revokeKept(directory, () => true),
        2
      )
      assert.isFalse(await running.allows(questionOf("curl b"), user.approve))
    }))

  it("ends with the server's session, also for an answer that comes later", () =>
    withFile(async ({ open }) => {
      const approvals = open()
      approvals.enter("ses_1")
      const late = Promise.withResolvers<Approval>()
      const waiting = approvals.allows(questionOf("curl a"), () => late.promise)
      approvals.enter("ses_2")
      late.resolve("session")
      await waiting
      assert.deepStrictEqual(approvals.list().permissions, [])
      const user = new User()
      assert.isFalse(await approvals.allows(questionOf("curl a"), user.approve))
    }))

  it("holds in its own workspace alone", () =>
    withFile(async ({ directory, open, user }) => {
      user.answer = "always"
      await open().allows(questionOf("curl a"), user.approve)
      const other = new Approvals(directory, "/home/ada/other")
      user.answer = "no"
      assert.isFalse(await other.allows(questionOf("curl a"), user.approve))
      assert.deepStrictEqual(other.list().permissions, [])
      assert.strictEqual(other.revoke({ all: true }), 0)
      assert.strictEqual(keptPermissions(directory).permissions.length, 1)
    }))
})

describe("the file of approvals", () => {
  it("is read in its first form, listed, revoked, and written in the new one with all that was in it", () =>
    withFile(async ({ file, open, user }) => {
      const old = {
        [root]: [questionOf("curl a").key, JSON.stringify(["plain commit", []])],
        "/other": [JSON.stringify(["hard_link", "x"])]
      }
      writeFileSync(file, JSON.stringify(old), { mode: 0o600 })
      const approvals = open()
      assert.isTrue(await approvals.allows(questionOf("curl a"), user.approve))
      assert.deepStrictEqual(
        approvals.list().permissions.map(({ covers, given }) => [covers, given]),
        [
          ["Exactly: curl a", null],
          ["git add, commit, status, diff, log and show", null]
        ]
      )
      user.answer = "always"
      await approvals.allows(questionOf("curl b"), user.approve)
      const { version, approvals: all } = JSON.parse(readFileSync(file, "utf8")) as {
        version: number
        approvals: ReadonlyArray<unknown>
      }
      assert.deepStrictEqual([version, all.length], [2, 4])
      const [first] = approvals.list().permissions
      assert.strictEqual(approvals.revoke(first?.id ?? ""), 1)
      user.answer = "no"
      assert.isFalse(await approvals.allows(questionOf("curl a"), user.approve))
    }))

  it("is named where it is damaged, counts for nothing, and is left as it is", () =>
    withFile(async ({ directory, file, open, user }) => {
      const other = JSON.stringify({ [root]: [questionOf("curl a").key] })
      for (const [damage, words] of [
        [() => writeFileSync(file, '{"version": 2, "appro', { mode: 0o600 }), "damaged"],
        [() => writeFileSync(file, "[1]"), "damaged"],
        [() => writeFileSync(file, '{"version": 3, "approvals": []}'), "newer version"],
        [() => (writeFileSync(file, other), chmodSync(file, 0o666)), "written by others"]
      ] as const) {
        damage()
        const before = readFileSync(file, "utf8")
        user.answer = "always"
        assert.isTrue(await open().allows(questionOf("curl a"), user.approve))
        assert.include(user.asked.at(-1)?.unkept, words)
        assert.include(user.asked.at(-1)?.unkept, file)
        assert.strictEqual(readFileSync(file, "utf8"), before)
        assert.include(open().list().problem, words)
        assert.throws(() => revokeKept(directory, () => true), words)
        user.answer = "no"
        assert.isFalse(await open().allows(questionOf("curl a"), user.approve))
        chmodSync(file, 0o600)
      }
    }))

  it("is not followed where it is a link", () =>
    withFile(async ({ directory, file, open, user }) => {
      const elsewhere = join(directory, "elsewhere")
      writeFileSync(elsewhere, JSON.stringify({ [root]: [questionOf("curl a").key] }), { mode: 0o600 })
      symlinkSync(elsewhere, file)
      assert.isFalse(await open().allows(questionOf("curl a"), user.approve))
      assert.include(user.asked.at(-1)?.unkept, "is a link")
    }))

  it("keeps entries that a newer version wrote, and says that they count for nothing", () =>
    withFile(async ({ file, open, user }) => {
      const strange = { id: "ap_new", workspace: root, rule: { type: "domain", host: "example.com" } }
      writeFileSync(file, JSON.stringify({ version: 2, approvals: [strange] }), { mode: 0o600 })
      user.answer = "always"
      await open().allows(questionOf("curl a"), user.approve)
      const { approvals } = JSON.parse(readFileSync(file, "utf8")) as { approvals: ReadonlyArray<unknown> }
      assert.deepStrictEqual(approvals[1], strange)
      assert.match(open().list().problem ?? "", /1 approvals of another version/)
    }))

  it("says what it could not keep, and allows that for the session alone", () =>
    withFile(async ({ directory, open, user }) => {
      const approvals = open()
      const told: Array<string> = []
      approvals.tellProblems((problem) => told.push(problem))
      user.answer = "always"
      const approve = (ask: ApprovalAsk): Promise<Approval> => {
        writeFileSync(join(directory, "approvals.json"), "torn", { mode: 0o600 })
        return user.approve(ask)
      }
      assert.isTrue(await approvals.allows(questionOf("curl a"), approve))
      assert.match(told.join(), /for this session only.*damaged/)
      assert.deepStrictEqual(
        approvals.list().permissions.map(({ scope }) => scope),
        ["session"]
      )
    }))
})
