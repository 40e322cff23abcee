import { setTimeout as sleep } from "node:timers/promises"
import { assert, layer } from "@effect/vitest"
import { RawClient, statusOf } from "#test/front/RawClient.ts"
import { until } from "#test/harness/Eventually.ts"
import { assertFault, onStage } from "../completions/RoutedServer.ts"
import { answersWith, tokens } from "../completions/Scripts.ts"
import { modelEntry, ScriptedServer } from "../upstream/ScriptedServer.ts"

const mib = 1024 * 1024
const [quick, stalled, next] = ["text/quick", "text/stalled", "text/next"]

const serve = ScriptedServer.layer(
  [quick, stalled, next].map((id) => modelEntry(id, { context_length: 10_000_000 })),
  { limits: { callBodiesBytes: 4 * mib } }
)

const prompt = "honest words ".repeat(27_000)

layer(serve, { excludeTestServices: true })("bodies that are large together", (it) => {
  it.effect(
    "cannot be made to fill the server by anybody without a key, whose bodies are not even read",
    () =>
      onStage(async ({ caller, play, server }) => {
        play({ [quick]: answersWith("Here I am", { usage: tokens(10, 5) }) })
        const honest = await caller(10)
        const port = Number(new URL(server.url).port)
        const strangers = await Promise.all(
          Array.from({ length: 19 }, async (_, index) => {
            const client = await RawClient.open(port)
            // Half of them with a key that could be one.
            const key =
              index % 2 === 0 ? "" : `Authorization: Bearer sk_${String(index).padStart(40, "x")}\r\n`
            await client.send(
              `POST /api/v1/chat/completions HTTP/1.1\r\nHost: x\r\n${key}Content-Length: ${20 * mib}\r\n\r\n`
            )
            void client.send(Buffer.alloc(7 * mib, 0x20))
            return client
          })
        )
        await sleep(1_000)
        for (let call = 0; call < 10; call++) {
          const answer = await honest.say(quick, prompt)
          assert.deepStrictEqual([answer.status, answer.text], [200, "Here I am"], answer.raw)
        }
        for (const [index, client] of strangers.entries()) {
          if (index % 2 === 0) assert.strictEqual(statusOf(await client.closed()), 401)
          client.destroy()
        }
      })
  )

  it.effect("cannot be made to fill it by one user with a model that hangs", () =>
    onStage(async ({ caller, listen, play }) => {
      play({
        [quick]: answersWith("Here I am", { usage: tokens(10, 5) }),
        [stalled]: () => [{ silence: true }]
      })
      const [greedy, honest] = [await caller(10), await caller(10)]
      const asked = listen()
      const leaving = new AbortController()
      // More than the four megabytes that are for all.
      const calls = Array.from({ length: 16 }, () =>
        greedy.say(stalled, "x", { user: "u".repeat(330_000) }, { signal: leaving.signal })
      )
      const settled = Promise.allSettled(calls)
      await until("the upstream has some of them", async () =>
        asked().filter(({ model }) => model === stalled).length >= 2 ? undefined : "not yet"
      )
      for (let call = 0; call < 8; call++) {
        const answer = await honest.say(quick, prompt)
        assert.deepStrictEqual([answer.status, answer.text], [200, "Here I am"], answer.raw)
      }
      leaving.abort()
      await settled
    })
  )

  it.effect("are let go of once they were sent to the last model that may be asked, and not before", () =>
    onStage(async ({ caller, listen, play }) => {
      const one = await caller(10)
      const asked = listen()
      const leaving = new AbortController()
      play({ [stalled]: () => [{ silence: true }] })
      const calls: Array<Promise<unknown>> = []
      const say = (more: object) =>
        one.say(stalled, "x", { user: "u".repeat(mib), ...more }, { signal: leaving.signal })
      const begin = async (more: object): Promise<void> => {
        const before = asked().length
        calls.push(Promise.allSettled([say(more)]))
        await until("it is asked", async () => (asked().length > before ? undefined : "not yet"))
      }
      // Eight times a megabyte, where a user may hold two.
      for (let call = 0; call < 8; call++) await begin({})
      await begin({ models: [next] })
      await begin({ models: [next] })
      assertFault(await say({}), 503, "server_error", "overloaded")
      leaving.abort()
      await Promise.all(calls)
    })
  )
})
