import { assert, layer } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { TestServer } from "#test/harness/TestServer.ts"
import { ask } from "#test/harness/ApiClient.ts"
import { onStage } from "../completions/RoutedServer.ts"
import { answersWith, refuses, tokens } from "../completions/Scripts.ts"
import { modelEntry, ScriptedServer, waitsOf } from "../upstream/ScriptedServer.ts"
import { answer as respond, type Script } from "../upstream/ScriptedUpstream.ts"
import { says, streamOf } from "../upstream/Recordings.ts"

const models = ["failing/one", "failing/two", "failing/good"].map((id) => modelEntry(id))
const [one, two, good] = ["failing/one", "failing/two", "failing/good"] as const
const prompt = "the-words-of-the-prompt"
const upstreamKey = "sk-upstream-secret-0123456789"

interface Line {
  readonly level: string
  readonly message: string
  readonly [field: string]: unknown
}

const linesOf = (logged: ReadonlyArray<string>, requestId: string): ReadonlyArray<Line> =>
  logged
    .map((line): Line => JSON.parse(line))
    .filter((line) => line["requestId"] === requestId && / call /.test(line.message))

const quotes: Script = () => [
  { send: respond(500, JSON.stringify({ error: { message: `broken by ${prompt}` } })) }
]
const breaksOff: Script = () => [
  {
    send: streamOf([says("so far"), `data: ${JSON.stringify({ error: { code: 502, message: prompt } })}\n\n`])
  }
]

layer(
  ScriptedServer.layer(models, {
    upstreamApiKey: Redacted.make(upstreamKey),
    limits: { ...waitsOf(200), slowCallMillis: 0 }
  }),
  { excludeTestServices: true }
)("a call that failed", (it) => {
  it.effect("has one line in the log: whose, of which model, and why", () =>
    Effect.gen(function* () {
      const { logged } = yield* TestServer
      yield* onStage(async ({ caller, play }) => {
        const asker = await caller(1)
        const collection = await asker.collect([one, two], true)
        for (const [model, script, stream, expected] of [
          [
            one,
            refuses(402, "No credits left"),
            false,
            { status: 502, member: one, level: "warn", reason: /failing\/one: answered 402: No credits left/ }
          ],
          [
            one,
            refuses(401, `Wrong key ${upstreamKey}`),
            true,
            { status: 502, member: one, level: "warn", reason: /answered 401: Wrong key \*+/ }
          ],
          [
            one,
            quotes,
            false,
            { status: 502, member: one, level: "warn", reason: /^failing\/one: answered 500$/ }
          ],
          [
            one,
            refuses(429, "Slow down"),
            true,
            { status: 429, member: one, level: "info", reason: /answered 429/ }
          ],
          [
            one,
            refuses(400, `Cannot read ${prompt}`),
            false,
            { status: 400, member: one, level: "info", reason: /answered 400$/ }
          ],
          [one, breaksOff, true, { status: 200, member: one, level: "warn", reason: /answered 502$/ }],
          [
            collection,
            refuses(500, "Down"),
            false,
            {
              status: 502,
              member: two,
              level: "warn",
              reason: /failing\/one: answered 500; failing\/two: answered 500/
            }
          ],
          [
            "failing/nothing",
            refuses(500, "Down"),
            false,
            { status: 404, member: "", level: "info", reason: /There is no model/ }
          ]
        ] as const) {
          play({ [one]: script, [two]: script })
          const requestId = `told-${Math.random().toString(36).slice(2)}`
          await asker.say(model, prompt, { stream }, { headers: { "x-request-id": requestId } })
          const lines = linesOf(logged(), requestId)
          assert.lengthOf(lines, 1, JSON.stringify(lines))
          const { level, ...line } = lines[0] ?? assert.fail()
          const { level: expectedLevel, reason, ...rest } = expected
          assert.deepInclude(line, { model, ...rest })
          assert.match(level, new RegExp(`^${expectedLevel}`))
          assert.match(String(line["reason"]), reason)
        }
        const all = logged().join("\n")
        assert.notInclude(all, prompt)
        assert.notInclude(all, upstreamKey)
      })
    })
  )

  it.effect("has one when its body could not be read, and a slow one has one too", () =>
    Effect.gen(function* () {
      const { logged } = yield* TestServer
      yield* onStage(async ({ caller, play }) => {
        const asker = await caller(1)
        await asker.say(good, prompt, { max_tokens: "many" }, { headers: { "x-request-id": "unread" } })
        const [unread, ...none] = linesOf(logged(), "unread")
        assert.deepInclude(unread, { status: 400, level: "info" })
        assert.match(String(unread?.["reason"]), /max_tokens/)
        assert.lengthOf(none, 0)
        play({ [good]: answersWith("hello", { usage: tokens(10, 5) }) })
        await asker.say(good, prompt, {}, { headers: { "x-request-id": "slow" } })
        const [slow, ...more] = linesOf(logged(), "slow")
        assert.deepInclude(slow, { message: "A call was slow", model: good, member: good, status: 200 })
        assert.lengthOf(more, 0)
        assert.notInclude(logged().join("\n"), prompt)
      })
    })
  )

  it.effect("counts as its model's error in the usage", () =>
    onStage(async ({ caller, play, server }) => {
      const asker = await caller(1)
      play({ [one]: refuses(500, "Down"), [good]: answersWith("hello", { usage: tokens(10, 5) }) })
      for (let times = 0; times < 3; times++) await asker.say(one, prompt)
      await asker.say(good, prompt)
      const { body } = await ask(server, "GET", "/api/v1/usage?window=day", { key: asker.key })
      const { topModels } = body as { topModels: ReadonlyArray<Record<string, unknown>> }
      assert.deepStrictEqual(
        topModels.map(({ errors, model, requests }) => ({ model, requests, errors })),
        [
          { model: good, requests: 1, errors: 0 },
          { model: one, requests: 3, errors: 3 }
        ]
      )
    })
  )
})
