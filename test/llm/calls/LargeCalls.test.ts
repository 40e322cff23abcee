import { assert, layer } from "@effect/vitest"
import { until } from "#test/harness/Eventually.ts"
import { assertFault, onStage } from "../completions/RoutedServer.ts"
import { answersWith, tokens } from "../completions/Scripts.ts"
import { modelEntry, ScriptedServer } from "../upstream/ScriptedServer.ts"

const model = "text/one"
const limits = { callBodiesBytes: 100_000 }

layer(ScriptedServer.layer([modelEntry(model)], { limits }), { excludeTestServices: true })(
  "calls that are large together",
  (it) => {
    it.effect(
      "are refused with 503 until one of them is over: their bodies stay in memory so long, and others have a share",
      () =>
        onStage(async ({ caller: newCaller, listen, play }) => {
          const caller = await newCaller(1)
          const other = await newCaller(1)
          const say = (signal?: AbortSignal) =>
            caller.say(model, "Hello", { user: "u".repeat(60_000) }, signal === undefined ? {} : { signal })
          const asked = listen()
          play({ [model]: () => [{ silence: true }] })
          const leaving = new AbortController()
          const first = say(leaving.signal)
          await until("the first is asked", async () => (asked().length === 1 ? undefined : "not yet"))
          assertFault(await say(), 503, "server_error", "overloaded")
          play({ [model]: answersWith("Here I am", { usage: tokens(10, 5) }) })
          const small = await other.say(model, "Hello")
          assert.deepStrictEqual([small.status, small.text], [200, "Here I am"], small.raw)
          leaving.abort()
          await Promise.allSettled([first])
          await until("there is room again", async () => {
            const { raw, text } = await say()
            return text === "Here I am" ? undefined : raw
          })
          const again = await say()
          assert.strictEqual(again.text, "Here I am", again.raw)
        })
    )
  }
)
