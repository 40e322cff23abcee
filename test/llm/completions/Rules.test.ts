import { assert, layer } from "@effect/vitest"
import type { ChatAnswer } from "../ChatClient.ts"
import { modelEntry, ScriptedServer } from "../upstream/ScriptedServer.ts"
import type { AskedOf } from "../upstream/ScriptedUpstream.ts"
import { assertFault, chargeIn, onStage, spends, toldUsage } from "./RoutedServer.ts"
import { answersWith, priceOf, refuses, tokens } from "./Scripts.ts"

/** The rules of completions, as contract/llm has them. Each runs plain and as a stream. */

const [one, two, three, noTools] = ["text/one", "text/two", "text/three", "text/no-tools"]
const [sees, seesToo] = ["vision/one", "vision/two"]

const architecture = { input_modalities: ["text", "image"], output_modalities: ["text"] }
const pricing = { prompt: "0.000001", completion: "0.000002", image: "0.0005" }
const models = [
  ...[one, two, three].map((id) => modelEntry(id)),
  modelEntry(noTools, { supported_parameters: ["max_tokens"] }),
  ...[sees, seesToo].map((id) =>
    modelEntry(id, { architecture, pricing, supported_parameters: ["max_tokens"] })
  )
]

const usage = tokens(10, 5)
const good = (text: string) => answersWith(text, { usage })
/** Pico-USD of one image, and of what the answers above take. */
const [imagePrice, price] = [510_000_000n, priceOf(10, 5)]

const both = [
  { way: "plain", fields: { max_tokens: 100 } },
  { way: "streamed", fields: { max_tokens: 100, stream: true, stream_options: { include_usage: true } } }
] as const

const image = (url = "https://a.example/cat.png") => ({ type: "image_url", image_url: { url } })
const withImages = (count: number) => ({
  messages: [
    {
      role: "user",
      content: [{ type: "text", text: "What is this?" }, ...Array.from({ length: count }, () => image())]
    }
  ]
})
const tool = {
  type: "function",
  function: { name: "weather", parameters: { type: "object", properties: {} } }
}

const ids = (asked: ReadonlyArray<AskedOf>): ReadonlyArray<string> => asked.map(({ model }) => model)
const lastMessage = ({ body }: AskedOf | undefined = assert.fail("not asked")): unknown =>
  JSON.parse(body).messages.at(-1)

const assertAnswer = (answer: ChatAnswer, text: string, router: object): void => {
  assert.deepStrictEqual([answer.status, answer.text, answer.finishReason], [200, text, "stop"], answer.raw)
  assert.deepInclude(answer.router, router, answer.raw)
}

layer(ScriptedServer.layer(models), { excludeTestServices: true })("the rules of completions", (it) => {
  for (const { fields, way } of both) {
    it.effect(
      `failover, ${way}: with auto-route members are tried in order, after a failure and after a rate limit`,
      () =>
        onStage(async ({ caller, listen, play }) => {
          play({ [one]: refuses(500, "broken"), [two]: refuses(429, "busy"), [three]: good("hello") })
          const asker = await caller(1)
          const collection = await asker.collect([one, two, three])
          const asked = listen()
          const answer = await asker.say(collection, "hi", fields)
          assertAnswer(answer, "hello", {
            requested: collection,
            resolved: three,
            collection: collection.replace("collection/", ""),
            auto_route: true,
            attempts: 3,
            stages: ["primary"],
            covered_by_subscription: false
          })
          assert.deepStrictEqual(ids(asked()), [one, two, three])
          assert.strictEqual(chargeIn(answer), price, "tries that failed cost nothing")
          await spends(asker, answer.router?.charged_usd ?? 0)
        })
    )

    it.effect(`failover, ${way}: without auto-route the first member is asked, and nobody else`, () =>
      onStage(async ({ caller, listen, play }) => {
        play({ [one]: refuses(500, "broken"), [two]: good("hello") })
        const asker = await caller(1)
        const collection = await asker.collect([one, two], false)
        const asked = listen()
        assertFault(await asker.say(collection, "hi", fields), 502, "server_error", "upstream_error")
        assert.deepStrictEqual(ids(asked()), [one])
      })
    )

    it.effect(
      `vision, ${way}: vision members describe the images first, and the others answer without seeing them`,
      () =>
        onStage(async ({ caller, listen, play }) => {
          play({
            [sees]: refuses(503, "blind"),
            [seesToo]: answersWith("A cat on a mat.", { usage: tokens(1_500, 7) }),
            [one]: good("It is a cat.")
          })
          const asker = await caller(1)
          const collection = await asker.collect([one, sees, two, seesToo])
          const asked = listen()
          const answer = await asker.say(collection, "", { ...fields, ...withImages(2) })
          assertAnswer(answer, "It is a cat.", {
            resolved: one,
            attempts: 3,
            stages: ["vision", "primary"]
          })
          const [, described, answered, ...more] = asked()
          assert.deepStrictEqual([ids(asked()), more], [[sees, seesToo, one], []])
          assert.include(described?.body, "https://a.example/cat.png")
          assert.notInclude(described?.body, `"stream":true`, "only the answer is streamed")
          assert.notInclude(answered?.body, "image_url")
          assert.deepStrictEqual(lastMessage(answered), {
            role: "user",
            content: [
              { type: "text", text: "What is this?" },
              { type: "text", text: `[What the images show, as ${seesToo} describes it]\nA cat on a mat.` }
            ]
          })
          // Attempts, usage and charge are those of both stages together.
          assert.strictEqual(chargeIn(answer), priceOf(1_500, 7) + 2n * imagePrice + price)
          assert.deepStrictEqual(answer.usage, toldUsage(answer, tokens(1_510, 12), way === "streamed"))
          await spends(asker, answer.router?.charged_usd ?? 0)
        })
    )

    it.effect(
      `vision, ${way}: an error of the vision members is handed on like an answer, and costs nothing`,
      () =>
        onStage(async ({ caller, listen, play }) => {
          play({
            [sees]: refuses(500, "The eye is closed"),
            [seesToo]: refuses(429, "busy"),
            [one]: good("I cannot see it.")
          })
          const asker = await caller(1)
          const collection = await asker.collect([sees, one, seesToo])
          const asked = listen()
          const answer = await asker.say(collection, "", { ...fields, ...withImages(1) })
          assertAnswer(answer, "I cannot see it.", {
            resolved: one,
            attempts: 3,
            stages: ["vision", "primary"]
          })
          assert.deepStrictEqual(ids(asked()), [sees, seesToo, one])
          assert.include(
            JSON.stringify(lastMessage(asked()[2])),
            "[The images could not be described: The eye is closed]"
          )
          assert.deepStrictEqual(
            [chargeIn(answer), answer.usage],
            [price, toldUsage(answer, usage, way === "streamed")]
          )
        })
    )

    it.effect(
      `vision, ${way}: without auto-route each stage asks one member, and other collections have one stage`,
      () =>
        onStage(async ({ caller, listen, play }) => {
          play({
            [sees]: good("A cat."),
            [seesToo]: good("A dog."),
            [one]: good("one"),
            [two]: good("two")
          })
          const asker = await caller(1)
          const mixed = await asker.collect([seesToo, two, sees, one], false)
          const asked = listen()
          const staged = { auto_route: false, attempts: 2, stages: ["vision", "primary"], resolved: two }
          assertAnswer(await asker.say(mixed, "", { ...fields, ...withImages(1) }), "two", staged)
          assert.deepStrictEqual(ids(asked()), [seesToo, two])
          const seeing = await asker.collect([sees, seesToo])
          const direct = await asker.say(seeing, "", { ...fields, ...withImages(1) })
          assertAnswer(direct, "A cat.", { attempts: 1, stages: ["primary"], resolved: sees })
          assert.strictEqual(chargeIn(direct), price + imagePrice)
          assert.include(asked().at(-1)?.body, "image_url")
          const unseen = await asker.say(mixed, "no image", fields)
          assertAnswer(unseen, "A dog.", { attempts: 1, stages: ["primary"], resolved: seesToo })
        })
    )

    it.effect(`tools, ${way}: with tools auto-route asks only members that can call them`, () =>
      onStage(async ({ caller, listen, play }) => {
        play({ [noTools]: good("no tools"), [one]: refuses(500, "broken"), [two]: good("tools") })
        const asker = await caller(1)
        const collection = await asker.collect([noTools, one, two])
        const asked = listen()
        const answer = await asker.say(collection, "hi", { ...fields, tools: [tool] })
        assertAnswer(answer, "tools", { resolved: two, attempts: 2 })
        assert.deepStrictEqual(ids(asked()), [one, two])
        assert.deepStrictEqual(JSON.parse(asked()[1]?.body ?? "").tools, [tool])
        assertAnswer(await asker.say(collection, "hi", { ...fields, tools: [] }), "no tools", {
          attempts: 1
        })
        const none = await asker.say(await asker.collect([noTools, sees]), "hi", {
          ...fields,
          tools: [tool]
        })
        assertFault(none, 400, "invalid_request_error", "invalid_value", "tools")
        const manual = await asker.say(await asker.collect([noTools, one], false), "hi", {
          ...fields,
          tools: [tool]
        })
        assertAnswer(manual, "no tools", { resolved: noTools, auto_route: false })
      })
    )
  }
})
