import { assert, layer } from "@effect/vitest"
import { seededRandom } from "#test/harness/SeededRandom.ts"
import type { ChatAnswer } from "../ChatClient.ts"
import { modelEntry, ScriptedServer } from "../upstream/ScriptedServer.ts"
import { answer, type Script } from "../upstream/ScriptedUpstream.ts"
import { chargeIn, onStage } from "./RoutedServer.ts"
import { answersWith, refuses, saysNothing, tokens } from "./Scripts.ts"

const models = ["hand/one", "hand/two", "hand/three"]
const seed = Number(process.env["SEED"] ?? Date.now() % 2_147_483_647)

const sends =
  (status: number, body: string): Script =>
  () => [{ send: answer(status, body) }]

const scripts: ReadonlyArray<Script> = [
  answersWith("all is well", { usage: tokens(10, 5) }),
  answersWith("it has its own price", { usage: { ...tokens(10, 5), cost: 0.0001 } }),
  answersWith("its price cannot be true", { usage: { ...tokens(10, 5), cost: 5_000 } }),
  answersWith("nobody has counted this", {}),
  answersWith("its usage is a lie", { usage: tokens(10_000_000, 5) }),
  answersWith("it was cut", { usage: tokens(10, 5), finish: "length" }),
  saysNothing,
  refuses(400, "no"),
  refuses(422, "This model's maximum context length is 5 tokens"),
  refuses(429, "busy", { "Retry-After": "7" }),
  refuses(500, "It broke"),
  refuses(401, "no credits"),
  sends(200, "no JSON"),
  sends(200, JSON.stringify({ error: { code: 502, message: "The provider died" } })),
  () => [{ end: "close" }]
]

/** All of an answer but what is new with each. */
const told = ({ error, headers, raw, router, status }: ChatAnswer) => {
  const { id: _, ...body } = JSON.parse(raw)
  return {
    status,
    error,
    body: { ...body, router: { ...router, collection: undefined, requested: undefined } },
    headers: [...headers.keys()].filter((name) => name !== "date"),
    retryAfter: headers.get("retry-after")
  }
}

layer(ScriptedServer.layer(models.map((id) => modelEntry(id))), {
  excludeTestServices: true
})("a plain call without a fiber", (it) => {
  it.effect(`is in all respects the call that takes one: answer, tries and charge (SEED=${seed})`, () =>
    onStage(async ({ caller, listen, play }) => {
      const random = seededRandom(seed)
      const pick = <A>(list: ReadonlyArray<A>): A => list[Math.floor(random() * list.length)]!
      const asker = await caller(1)
      for (let run = 0; run < 60; run++) {
        play(Object.fromEntries(models.map((id) => [id, pick(scripts)])))
        const inOrder = models.toSorted(() => random() - 0.5).slice(0, 1 + Math.floor(random() * 3))
        const fields = {
          ...(random() < 0.7 ? { max_tokens: 1 + Math.floor(random() * 100) } : {}),
          ...(random() < 0.2 ? { n: 2 } : {})
        }
        const isCollection = random() < 0.5
        const say = async (headers: Readonly<Record<string, string>>) => {
          // A collection remembers which of its models failed.
          const model = isCollection ? await asker.collect(inOrder) : (inOrder[0] ?? "")
          const asked = listen()
          const said = await asker.say(model, "hi", isCollection ? fields : { ...fields, models: inOrder }, {
            headers
          })
          return { said, asked: asked().map(({ body }) => body) }
        }
        const quick = await say({})
        // Its answer is kept, for which Postgres has to be asked.
        const slow = await say({ "Idempotency-Key": `run-${seed}-${run}` })
        assert.deepStrictEqual(told(quick.said), told(slow.said))
        assert.deepStrictEqual(quick.asked, slow.asked)
        assert.strictEqual(chargeIn(quick.said), chargeIn(slow.said))
      }
    })
  )
})
