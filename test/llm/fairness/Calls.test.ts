import { assert, layer } from "@effect/vitest"
import { until } from "#test/harness/Eventually.ts"
import { assertFault, onStage } from "../completions/RoutedServer.ts"
import { answersWith, tokens } from "../completions/Scripts.ts"
import { modelEntry, ScriptedServer } from "../upstream/ScriptedServer.ts"

const [free, quick] = ["text/free", "text/quick"]
const upstreamConnections = 40

const serve = ScriptedServer.layer(
  [modelEntry(free, { pricing: { prompt: "0", completion: "0" } }), modelEntry(quick)],
  { limits: { upstreamConnections, callsPerKey: 15 } }
)

layer(serve, { excludeTestServices: true })("calls under way", (it) => {
  it.effect("of one user leave connections to others, and are refused at once beyond their share", () =>
    onStage(async ({ caller, listen, play }) => {
      play({
        [free]: () => [{ silence: true }],
        [quick]: answersWith("Here I am", { usage: tokens(10, 5) })
      })
      const [greedy, honest] = [await caller(0), await caller(1)]
      const asked = listen()
      const leaving = new AbortController()
      const second = await greedy.makeKey({ kind: "account", rate_limit_per_minute: 100_000 })
      const statuses: Array<number> = []
      const call = async (key: string): Promise<void> => {
        const answer = await greedy.say(
          free,
          "x",
          { stream: true },
          { signal: leaving.signal, headers: { authorization: `Bearer ${key}` } }
        )
        statuses.push(answer.status)
      }
      const calls = [greedy.key, second].flatMap((key) => Array.from({ length: 30 }, () => call(key)))
      const settled = Promise.allSettled(calls)
      // Fifteen of a key, twenty of a user: the others are told so, and none waits for a connection.
      await until("the rest is refused", async () =>
        statuses.length === 40 ? undefined : `${statuses.length}`
      )
      assert.isTrue(statuses.every((status) => status === 503))
      await until("all others are asked", async () =>
        asked().length === 20 ? undefined : `${asked().length}`
      )
      for (let index = 0; index < 5; index++) {
        const answer = await honest.say(quick, "Hello")
        assert.deepStrictEqual([answer.status, answer.text], [200, "Here I am"], answer.raw)
      }
      const message = assertFault(await greedy.say(quick, "x"), 503, "server_error", "overloaded")
      assert.match(message, /^Too many calls of this user/)
      leaving.abort()
      await settled
      await until("there is room again", async () => {
        const { status } = await greedy.say(quick, "x")
        return status === 402 ? undefined : String(status)
      })
    })
  )
})
