import { spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync, readdirSync, utimesSync, writeFileSync } from "node:fs"
import { hostname } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { JournalDirectory } from "#src/clients/agent/journal/JournalDirectory.ts"
import { lockSession } from "#src/clients/agent/journal/SessionLock.ts"
import { otherSessionId, sessionId } from "../ScriptedServer.ts"
import { inDirectory } from "../TestClient.ts"

const session = { url: "http://x", root: "/w" }
const lockFile = new URL("../../../../src/clients/agent/journal/SessionLock.ts", import.meta.url).pathname

/** A process that takes the lock, says so, and stays until it is killed. */
const holder = async (directory: string): Promise<{ said: string; kill: () => Promise<void> }> => {
  const program = `import { lockSession } from ${JSON.stringify(lockFile)}
    const lock = lockSession(${JSON.stringify(directory)})
    console.log(lock.held ? "held" : "refused by " + lock.byPid)
    setInterval(() => {}, 1000)`
  const child = spawn(process.execPath, ["--input-type=module-typescript", "-e", program], {
    stdio: ["ignore", "pipe", "inherit"]
  })
  const [said] = await once(child.stdout, "data")
  return {
    said: String(said).trim(),
    kill: async () => {
      child.kill("SIGKILL")
      await once(child, "exit")
    }
  }
}

describe("the lock of a session", () => {
  it("is held by one process, and by nobody once that is dead, let go or only a number that came back", () =>
    inDirectory(async (directory) => {
      const first = lockSession(directory)
      assert.isTrue(first.held)
      assert.deepStrictEqual(lockSession(directory), { held: false, byPid: process.pid })
      const other = await holder(directory)
      assert.strictEqual(other.said, `refused by ${process.pid}`)
      if (first.held) first.release()
      const next = await holder(directory)
      assert.strictEqual(next.said, "held")
      assert.isFalse(lockSession(directory).held)
      await Promise.all([other.kill(), next.kill()])
      const last = lockSession(directory)
      assert.isTrue(last.held)
      // A process of another age with the same number.
      const [name = ""] = readdirSync(directory).filter((file) => file.startsWith("lock."))
      writeFileSync(join(directory, name), JSON.stringify({ pid: process.pid, began: "1" }))
      assert.isTrue(lockSession(directory).held)
    }))

  it("that is not whole is nobody's", () =>
    inDirectory(async (directory) => {
      for (const text of ["", "{", '{"pid":"x"}']) {
        const [newest] = readdirSync(directory).filter((file) => file.startsWith("lock."))
        writeFileSync(join(directory, newest ?? "lock.1"), text)
        assert.isTrue(lockSession(directory).held, text)
      }
    }))
})

describe("the directory of the journals", () => {
  it("has an id of its own that stays, and another one in another place", () =>
    inDirectory(async (directory) => {
      const { journalId } = new JournalDirectory(directory)
      assert.strictEqual(new JournalDirectory(directory).journalId, journalId)
      assert.notStrictEqual(new JournalDirectory(join(directory, "other")).journalId, journalId)
    }))

  it("finds the sessions of a workspace at a server, the last used first", () =>
    inDirectory(async (directory) => {
      const journals = new JournalDirectory(directory)
      const elsewhere = `ses_${"e".repeat(22)}`
      await journals.open(sessionId, session).close()
      await journals.open(otherSessionId, session).close()
      await journals.open(elsewhere, { ...session, root: "/v" }).close()
      const file = join(
        directory,
        hostname().replace(/[^\w.-]/g, "_"),
        "sessions",
        otherSessionId,
        "calls.log"
      )
      utimesSync(file, 1_000, 1_000)
      // Journals older than any resumable session are removed when the next client starts.
      assert.deepStrictEqual(
        journals.known(session).map(({ id }) => id),
        [sessionId, otherSessionId]
      )
      assert.deepStrictEqual(
        new JournalDirectory(directory).known(session).map(({ id }) => id),
        [sessionId]
      )
      assert.isFalse(existsSync(file))
    }))

  it("takes no id that is a path", () =>
    inDirectory(async (directory) => {
      const journals = new JournalDirectory(directory)
      for (const id of ["../../x", "ses_", `${sessionId}/..`, ""]) {
        assert.throws(() => journals.lock(id), RangeError)
      }
    }))
})
