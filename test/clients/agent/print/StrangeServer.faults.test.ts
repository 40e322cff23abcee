import { assert, describe, it } from "@effect/vitest"
import { makeHome, startAgent } from "../AgentProcess.ts"
import { type Script, ScriptedServer } from "../ScriptedServer.ts"
import { inDirectory, TestClient } from "../TestClient.ts"

const answerOf = (
  prepare: (server: ScriptedServer) => void,
  script: Script = (session) => Promise.resolve(session.done()),
  wait = 60
): Promise<{ readonly code: number | null; readonly err: string; readonly out: string }> =>
  inDirectory(async (directory) => {
    const server = await ScriptedServer.start(script)
    prepare(server)
    try {
      return await startAgent(makeHome(directory, server), ["-p", "hi", "--wait", String(wait)]).ended
    } finally {
      await server.close()
    }
  })

describe("a server that speaks otherwise", () => {
  it("is named where its ready is not understood", { timeout: 60_000 }, async () => {
    const { code, err } = await answerOf((server) => {
      server.ready = ({ limits: _limits, ...ready }) => ready
    })
    assert.strictEqual(code, 69, err)
    assert.match(err, /`ready`.*limits/)
    assert.match(err, /differ in version/)
  })

  it("is named where something else comes instead of ready", { timeout: 60_000 }, async () => {
    const { code, err } = await answerOf((server) => {
      server.ready = () => ({ type: "config", theme: "dark" })
    })
    assert.strictEqual(code, 69, err)
    assert.match(err, /`config`/)
    assert.match(err, /differ in version/)
  })

  it("is named where its ready never comes", { timeout: 60_000 }, async () => {
    const silent = (server: ScriptedServer): void => {
      server.ready = () => ({ type: "ping", ts: 0 })
    }
    const { code, err } = await answerOf(silent, undefined, 3)
    assert.strictEqual(code, 69, err)
    assert.match(err, /took the connection, and did not answer the client's hello/)
  })

  it("is named where it does not say how the prompt ended", { timeout: 60_000 }, async () => {
    const { code, err } = await answerOf(
      () => undefined,
      (session) => Promise.resolve(session.say({ type: "prompt.done", id: session.active, status: "paused" }))
    )
    assert.strictEqual(code, 69, err)
    assert.match(err, /`prompt\.done` \(Missing key|`prompt\.done` \(Expected/)
  })

  it(
    "is told of once where it says more than is understood, and the work goes on",
    { timeout: 60_000 },
    async () => {
      const { code, err, out } = await answerOf(
        () => undefined,
        (session) => {
          for (const _ of [1, 2, 3]) session.say({ type: "weather", is: "fine" })
          session.say({ type: "event", promptId: session.active, kind: "mood" })
          session.text("m1", "Done.")
          session.done()
          return Promise.resolve()
        }
      )
      assert.strictEqual(code, 0, err)
      assert.strictEqual(out, "Done.\n")
      assert.strictEqual(err.split("`weather`").length, 2, err)
      assert.include(err, "`event mood`")
    }
  )
})

describe("a client that nobody gives up on", () => {
  it("says within seconds that its hello was not answered, and tries again", { timeout: 60_000 }, () =>
    inDirectory(async (directory) => {
      const server = await ScriptedServer.start()
      let hellos = 0
      server.ready = (ready) => (++hellos === 1 ? { type: "ping", ts: 0 } : { ...ready })
      const test = new TestClient(server, directory)
      try {
        const started = test.client.start()
        await test.untilEvent(
          (event) => event.type === "link" && event.state === "waiting" && event.problem.includes("hello")
        )
        await started
        assert.strictEqual(hellos, 2)
      } finally {
        await test.client.bye()
        await server.close()
      }
    })
  )
})
