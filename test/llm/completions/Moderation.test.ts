import { assert, layer } from "@effect/vitest"
import { says, streamOf } from "../upstream/Recordings.ts"
import { answer as respond, type Script } from "../upstream/ScriptedUpstream.ts"
import { modelEntry, ScriptedServer } from "../upstream/ScriptedServer.ts"
import { assertFault, onStage } from "./RoutedServer.ts"
import { answersWith, refuses, tokens } from "./Scripts.ts"

const [model, second] = ["moderated/one", "moderated/two"]
const models = [model, second].map((id) => modelEntry(id))
const good = answersWith("hello", { usage: tokens(10, 5) })

const metadata = { reasons: ["violence", "harassment"], flagged_input: "hi", provider_name: "acme" }
const error = { code: 403, message: "Your input was flagged", metadata }
const flags: Script = () => [{ send: respond(403, JSON.stringify({ error })) }]

layer(ScriptedServer.layer(models, { limits: { breakerFailures: 2 } }), {
  excludeTestServices: true
})("a request that a moderation refuses", (it) => {
  it.effect("is the caller's: 403 with the reasons, streamed or not", () =>
    onStage(async ({ caller, play }) => {
      const asker = await caller(1)
      const inOnePiece: Script = () => [{ send: respond(200, JSON.stringify({ error })) }]
      for (const script of [flags, inOnePiece]) {
        play({ [model]: script })
        for (const stream of [false, true]) {
          const refused = await asker.say(model, "hi", { stream })
          const message = assertFault(refused, 403, "permission_error", "content_policy_violation")
          assert.strictEqual(message, "Your input was flagged (violence, harassment)")
        }
      }
      play({ [model]: refuses(403, "This account may not") })
      assertFault(await asker.say(model, "hi"), 502, "server_error", "upstream_error")
    })
  )

  it.effect("says nothing against the member, before the first word or behind it", () =>
    onStage(async ({ caller, play }) => {
      const asker = await caller(1)
      const collection = await asker.collect([model, second])
      const amid: Script = () => [{ send: streamOf([says("one"), `data: ${JSON.stringify({ error })}\n\n`]) }]
      for (const script of [flags, amid]) {
        play({ [model]: script, [second]: good })
        for (let times = 0; times < 5; times++) {
          const { router, text } = await asker.say(collection, "hi", { stream: true })
          assert.deepStrictEqual([router?.attempts, text], script === flags ? [2, "hello"] : [1, "one"])
        }
        play({ [model]: good })
        assert.strictEqual((await asker.say(collection, "hi")).router?.resolved, model)
      }
      play({ [model]: refuses(403, "This account may not") })
      for (let times = 0; times < 5; times++) await asker.say(collection, "hi")
      play({ [model]: good })
      assert.strictEqual((await asker.say(collection, "hi")).router?.resolved, second)
    })
  )
})
