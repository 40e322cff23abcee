import { assert, layer } from "@effect/vitest"
import { modelEntry, ScriptedServer } from "../upstream/ScriptedServer.ts"
import { onStage } from "./RoutedServer.ts"
import { answersWith, saysNothing, tokens } from "./Scripts.ts"

const [model, second] = ["empty/one", "empty/two"]
const models = [model, second].map((id) => modelEntry(id))
const good = answersWith("hello", { usage: tokens(10, 5) })

layer(ScriptedServer.layer(models, { limits: { breakerFailures: 2 } }), {
  excludeTestServices: true
})("an answer without a word", (it) => {
  it.effect("that says why it ended is an answer, and says nothing against the member", () =>
    onStage(async ({ caller, play }) => {
      const asker = await caller(1)
      const collection = await asker.collect([model, second])
      for (const finish of ["length", "content_filter"])
        for (const stream of [false, true]) {
          play({ [model]: answersWith("", { finish, usage: tokens(10, 5) }), [second]: good })
          for (let times = 0; times < 5; times++) {
            const { router, status, text } = await asker.say(collection, "hi", { stream, max_tokens: 5 })
            assert.deepStrictEqual([status, router?.attempts, router?.resolved, text], [200, 1, model, ""])
          }
        }
      play({ [model]: good })
      assert.strictEqual((await asker.say(collection, "hi")).router?.resolved, model)
    })
  )

  it.effect("that does not say so is a failure: the next member answers, and the first is left out", () =>
    onStage(async ({ caller, play }) => {
      const asker = await caller(1)
      const collection = await asker.collect([model, second])
      play({ [model]: saysNothing, [second]: good })
      for (let times = 0; times < 3; times++)
        assert.strictEqual((await asker.say(collection, "hi")).router?.resolved, second)
      play({ [model]: good })
      assert.strictEqual((await asker.say(collection, "hi")).router?.resolved, second)
    })
  )
})
