import { assert, describe, it } from "@effect/vitest"
import type { ServerFrame } from "#schemas/agents/ServerFrame.ts"
import { type Cut, ScriptedServer, type Script } from "../ScriptedServer.ts"
import { inDirectory, TestClient } from "../TestClient.ts"

/** Two calls at once that may not be repeated, one that may, a message before and after, and one thing said meanwhile. */
const script: Script = async (session) => {
  session.event("text_delta", { messageId: "m1", contentIndex: 0, delta: "I " })
  session.text("m1", "I look")
  await Promise.all([
    session.call("c1", "proc.exec", { command: "make" }),
    session.call("c2", "fs.write", { path: "a", content: "b" })
  ])
  await session.call("c3", "fs.read", { path: "a" })
  session.text("m2", "It is done")
  session.done()
}

const numberOf = (frame: ServerFrame): number => ("seq" in frame ? frame.seq : 0)

const work = (cut: Cut | undefined) =>
  inDirectory(async (directory) => {
    const server = await ScriptedServer.start(script)
    try {
      server.cut = cut
      const test = new TestClient(server, directory)
      await test.client.start()
      const id = test.client.prompt("go")
      await test.untilDone(id)
      const isCut = server.cut === undefined
      await test.client.bye()
      return { test, server, id, isCut }
    } finally {
      await server.close()
    }
  })

describe("a connection that is cut", () => {
  it("at any frame, in either direction, loses no event, doubles none, and makes no call twice", async () => {
    const places: ReadonlyArray<Cut["at"]> = [
      "after_sending",
      "before_sending",
      "before_receiving",
      "after_receiving"
    ]
    for (const at of places) {
      let frame = 1
      for (; ; frame++) {
        const { id, isCut, server, test } = await work({ at, frame })
        if (!isCut) break
        const where = `${at} ${frame}`
        const numbers = test.frames.map(numberOf)
        assert.deepStrictEqual(
          numbers,
          [...new Set(numbers)].sort((a, b) => a - b),
          where
        )
        const seen = test.frames.filter(({ type }) => type !== "tool.request").map(numberOf)
        const all = server.session.sent.filter(({ type }) => type !== "tool.request").map(({ seq }) => seq)
        assert.deepStrictEqual(seen, all, where)
        assert.deepStrictEqual(server.session.prompts, [id], where)
        assert.deepStrictEqual([...test.runs].sort(), ["c1", "c2", "c3"], where)
        for (const [callId, [first]] of server.session.results) {
          assert.deepStrictEqual(first?.result, { of: callId }, where)
        }
      }
      // The script has more frames than this in either direction; fewer would mean that nothing was cut.
      assert.isAbove(frame, 5, at)
    }
  })

  it("is not noticed by calls that run: they go on, and their outcome is told over the next one", () =>
    inDirectory(async (directory) => {
      const server = await ScriptedServer.start(script)
      let finish: (() => void) | undefined
      const test = new TestClient(server, directory, {
        run: ({ callId }) =>
          callId === "c1"
            ? new Promise((resolve) => {
                finish = () => resolve({ ok: true, result: { of: "c1" } })
              })
            : Promise.resolve({ ok: true, result: { of: callId } })
      })
      await test.client.start()
      const id = test.client.prompt("go")
      await test.until(() => finish !== undefined)
      for (const socket of server.connections) socket.terminate()
      await test.until(() => test.events.filter(({ type }) => type === "link").length >= 5)
      finish?.()
      await test.untilDone(id)
      assert.deepStrictEqual([...test.runs].sort(), ["c1", "c2", "c3"])
      await test.client.bye()
      await server.close()
    }))

  it("has what was said meanwhile sent once it is back, in order, and only until it has arrived", () =>
    inDirectory(async (directory) => {
      const server = await ScriptedServer.start((session) => Promise.resolve(session.done()))
      const test = new TestClient(server, directory)
      await test.client.start()
      server.refusals = [{ status: 503 }]
      for (const socket of server.connections) socket.terminate()
      await test.untilEvent((event) => event.type === "link" && event.state === "waiting")
      const first = test.client.prompt("one")
      const steer = test.client.steer("two", "follow_up")
      await test.untilDone(first)
      await test.until(() =>
        test.frames.some((frame) => frame.type === "event" && frame.kind === "queue_update")
      )
      // Acknowledged messages are not sent over the next connection.
      for (const socket of server.connections) socket.terminate()
      const attached = () => test.events.filter((_) => _.type === "link" && _.state === "connected").length
      await test.until(() => attached() === 3)
      await test.client.bye()
      const said = server.received.flatMap((frame) =>
        frame.type === "prompt" || frame.type === "steer" ? [frame.id] : []
      )
      assert.deepStrictEqual(said, [first, steer])
      await server.close()
    }))
})
