import { assert, describe, it } from "@effect/vitest"
import { makeHome, startAgent } from "../AgentProcess.ts"
import { type Script, ScriptedServer } from "../ScriptedServer.ts"
import { inDirectory } from "../TestClient.ts"

const answerOf = (
  prepare: (server: ScriptedServer) => void,
  script: Script = (session) => Promise.resolve(session.done())
): Promise<{ readonly code: number | null; readonly err: string; readonly out: string }> =>
  inDirectory(async (directory) => {
    const server = await ScriptedServer.start(script)
    prepare(server)
    try {
      return await startAgent(makeHome(directory, server), ["-p", "hi", "--wait", "3"]).ended
    } finally {
      await server.close()
    }
  })

describe("a server that speaks otherwise", () => {
  it("is named where its ready is not understood", { timeout: 30_000 }, async () => {
    const { code, err } = await answerOf((server) => {
      server.ready = ({ limits: _limits, ...ready }) => ready
    })
    assert.strictEqual(code, 7, err)
    assert.match(err, /`ready`.*limits/)
    assert.match(err, /differ in version/)
  })

  it("is named where something else comes instead of ready", { timeout: 30_000 }, async () => {
    const { code, err } = await answerOf((server) => {
      server.ready = () => ({ type: "config", theme: "dark" })
    })
    assert.strictEqual(code, 7, err)
    assert.match(err, /`config`/)
    assert.match(err, /differ in version/)
  })
})
