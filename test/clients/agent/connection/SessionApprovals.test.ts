import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import type { Approval } from "#src/clients/agent/boundary/Approval.ts"
import { ToolRunner } from "#src/clients/agent/tools/ToolRunner.ts"
import { otherSessionId, ScriptedServer, sessionId } from "../ScriptedServer.ts"
import { inDirectory, TestClient } from "../TestClient.ts"

describe("what is allowed for a session", () => {
  it("is asked for again in a new session and in another that is resumed, and in none that goes on", () =>
    inDirectory(async (directory) => {
      let count = 0
      const server = await ScriptedServer.start(async (session) => {
        await session.call(`c${++count}`, "proc.exec", { command: "true" })
        session.done()
      })
      const root = join(directory, "work")
      mkdirSync(root)
      const own = { configDir: join(directory, "config"), stateDir: join(directory, "state") }
      const runner = await ToolRunner.open({ root, ...own, sandbox: "off", network: "ask" })
      let asked = 0
      const approve = (): Promise<Approval> => {
        asked += 1
        return Promise.resolve("session")
      }
      const { client, untilDone } = bound(new TestClient(server, own.stateDir, { runner, approve }))
      const ask = async (): Promise<number> => {
        await untilDone(client.prompt("go"))
        return asked
      }
      try {
        await client.start()
        assert.strictEqual(await ask(), 1)
        assert.strictEqual(await ask(), 1, "the session goes on")
        await client.reopen({ model: "sandbox/other" })
        assert.strictEqual(await ask(), 1, "the same session with another model")
        server.ready = (ready) => ({ ...ready, sessionId: ready.resumed ? ready.sessionId : otherSessionId })
        await client.newSession()
        assert.strictEqual(await ask(), 2, "a new session")
        await client.resume(sessionId)
        assert.strictEqual(await ask(), 3, "another session, even if it was this process's before")
      } finally {
        await client.bye()
        await runner.close()
        await server.close()
      }
    }))
})

const bound = (test: TestClient) => ({ client: test.client, untilDone: (id: string) => test.untilDone(id) })
