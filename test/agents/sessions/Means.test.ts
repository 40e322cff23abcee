import { assert, layer } from "@effect/vitest"

import { AgentSocket, type Frame } from "#test/agents/rest/AgentSocket.ts"
import { ask } from "#test/harness/ApiClient.ts"
import type { Caller } from "#test/llm/Caller.ts"
import { onStage, type Stage } from "#test/llm/completions/RoutedServer.ts"
import { answersWith, refuses, tokens } from "#test/llm/completions/Scripts.ts"
import type { AskedOf } from "#test/llm/upstream/ScriptedUpstream.ts"
import { modelEntry, ScriptedServer } from "#test/llm/upstream/ScriptedServer.ts"
import { AgentClient, textOf } from "./AgentClient.ts"

const [coder, small, seeing, failing] = ["means/coder", "means/small", "means/seeing", "means/failing"]
const vision = {
  modality: "text+image->text",
  input_modalities: ["text", "image"],
  output_modalities: ["text"]
}
const server = ScriptedServer.layer(
  [
    modelEntry(coder),
    modelEntry(small, { context_length: 4_000 }),
    modelEntry(seeing, { architecture: vision }),
    modelEntry(failing)
  ],
  { limits: { agentRetryMillis: 1 } }
)
const live = { excludeTestServices: true } as const

const open = ({ server }: Stage, { key }: Caller, model: string, more: object = {}): Promise<AgentClient> =>
  AgentClient.open(server.url, key, { model, ...more })

interface Body {
  readonly messages: ReadonlyArray<Frame>
  readonly tools: ReadonlyArray<{ readonly function: Frame }>
  readonly max_tokens?: number
}

const bodyOf = (asked: AskedOf | undefined): Body => JSON.parse(asked?.body ?? "{}")

const messagesIn = (asked: AskedOf | undefined): ReadonlyArray<Frame> => bodyOf(asked).messages

const errorCode = (done: Frame): unknown => (done["error"] as Frame | undefined)?.["code"]

/** The status with which a handshake is answered. */
const statusOf = async ({ server }: Stage, key: string): Promise<number> => {
  try {
    const socket = await AgentSocket.open(server.url, key, { model: coder })
    socket.leave()
    return 101
  } catch (error) {
    return Number(/response: (\d+)/.exec(String(error))?.[1])
  }
}

layer(server, live)("What an agent session may cost", (it) => {
  it.effect("is asked at the handshake: of the owner, and of a key with a limit of its own", () =>
    onStage(async (stage) => {
      const poor = await stage.caller(0)
      assert.strictEqual(await statusOf(stage, poor.key), 402)
      const caller = await stage.caller(5)
      stage.play({ [coder]: answersWith("All right.", { usage: tokens(100, 1_000) }) })
      const spender = await caller.makeKey({ kind: "router", name: "spender" })
      const client = await AgentClient.open(stage.server.url, spender, { model: coder })
      assert.strictEqual((await client.ask("p1", "One"))["status"], "completed")
      const { body } = await ask(stage.server, "GET", "/api/v1/keys", { key: caller.key })
      const { data } = body as {
        readonly data: ReadonlyArray<{ readonly id: string; readonly name: string }>
      }
      const id = data.find(({ name }) => name === "spender")?.id
      // It has spent 0.002142 USD, and was let in a moment ago for what its owner has.
      const { status } = await ask(stage.server, "PATCH", `/api/v1/keys/${id}`, {
        key: caller.key,
        json: { spend_limit_usd: 0.002 }
      })
      assert.strictEqual(status, 200)
      assert.strictEqual(await statusOf(stage, spender), 402)
      assert.strictEqual(await statusOf(stage, caller.key), 101)
      assert.strictEqual(await statusOf(stage, await caller.makeKey({ kind: "router" })), 101)
      assert.strictEqual(await statusOf(stage, spender), 402)
      assert.strictEqual(await statusOf(stage, poor.key), 402)
    })
  )

  it.effect("ends at the budget of its hello, having said that it comes near", () =>
    onStage(async (stage) => {
      const caller = await stage.caller(5)
      // 100 prompt and 1,000 output tokens cost 0.002142 USD with the markup.
      stage.play({ [coder]: answersWith("All right.", { usage: tokens(100, 1_000) }) })
      const client = await open(stage, caller, coder, { budgetUsd: 0.005 })
      assert.strictEqual((await client.ask("p1", "One"))["status"], "completed")
      assert.deepStrictEqual(client.events("budget_warning"), [])
      assert.strictEqual((await client.ask("p2", "Two"))["status"], "completed")
      assert.deepInclude(client.events("budget_warning")[0], { budgetUsd: 0.005 })
      const listened = stage.listen()
      const last = await client.ask("p3", "Three")
      const asked = listened()
      if (asked.length > 0) assert.isBelow(Number(bodyOf(asked[0]).max_tokens), 500)
      const over = last["status"] === "budget" ? last : await client.ask("p4", "Four")
      assert.deepInclude(over, { status: "budget" })
      assert.strictEqual(errorCode(over), "budget_exceeded")
    })
  )

  it.effect("ends a prompt that the credits do not pay for, and says so", () =>
    onStage(async (stage) => {
      const caller = await stage.caller(0.0001)
      stage.play({ [coder]: answersWith("All right.", { usage: tokens(10, 5) }) })
      const client = await open(stage, caller, coder)
      const done = await client.ask("p1", "x".repeat(40_000))
      assert.deepInclude(done, { status: "error", costUsd: 0 })
      assert.strictEqual(errorCode(done), "insufficient_credits")
    })
  )
})

layer(server, live)("What the model of an agent session is told", (it) => {
  it.effect("says where it is and what it can do", () =>
    onStage(async (stage) => {
      const caller = await stage.caller(5)
      stage.play({ [coder]: answersWith("All right.", { usage: tokens(10, 5) }) })
      const client = await open(stage, caller, coder)
      const listened = stage.listen()
      await client.ask("p1", "Hello")
      const [system, user] = messagesIn(listened()[0])
      assert.include(String(system?.["content"]), "Workspace: /work")
      assert.deepStrictEqual(user, { role: "user", content: "Hello" })
      const { tools } = bodyOf(listened()[0])
      assert.deepStrictEqual(
        tools.map(({ function: { name } }) => name),
        ["read", "write", "edit", "ls", "find", "grep", "bash"]
      )
    })
  )

  it.effect("gives it the images of a prompt, and words for what is none", () =>
    onStage(async (stage) => {
      const caller = await stage.caller(5)
      stage.play({ [seeing]: answersWith("All right.", { usage: tokens(10, 5) }) })
      const png = Buffer.from("89504e470d0a1a0a0000000d49484452", "hex")
      const upload = async (name: string, bytes: Buffer): Promise<string> => {
        const form = new FormData()
        form.append("file", new Blob([Uint8Array.from(bytes)], { type: "image/png" }), name)
        const headers = { authorization: `Bearer ${caller.key}` }
        const answer = await fetch(`${stage.server.url}/api/v1/files`, {
          method: "POST",
          body: form,
          headers
        })
        return ((await answer.json()) as { readonly id: string }).id
      }
      const images = [await upload("a.png", png), await upload("b.png", Buffer.from("text"))]
      stage.play({ [coder]: answersWith("All right.", { usage: tokens(10, 5) }) })
      const blind = await open(stage, caller, coder)
      assert.strictEqual((await blind.ask("p1", "Look", { images }))["status"], "completed")
      const client = await open(stage, caller, seeing)
      const listened = stage.listen()
      await client.ask("p1", "Look", { images: [...images, "fil_0000000000000000000000"] })
      const [, user] = messagesIn(listened()[0])
      assert.deepStrictEqual(user?.["content"], [
        { type: "text", text: "Look" },
        { type: "image_url", image_url: { url: `data:image/png;base64,${png.toString("base64")}` } },
        { type: "text", text: `[The image ${images[1]} is not shown: it is no PNG, JPEG, WebP or GIF]` },
        {
          type: "text",
          text: "[The image fil_0000000000000000000000 is not shown: it is not there any more]"
        }
      ])
    })
  )

  it.effect("puts a summary in the place of what does not fit any more, and goes on from it", () =>
    onStage(async (stage) => {
      const caller = await stage.caller(5)
      stage.play({ [small]: answersWith("A SUMMARY OF IT", { usage: tokens(2_500, 5) }) })
      const client = await open(stage, caller, small)
      for (let index = 0; index < 6; index++) await client.ask(`p${index}`, `${index} ${"word ".repeat(600)}`)
      const end = client.events("compaction_end").find(({ ok }) => ok === true)
      assert.strictEqual(end?.["summary"], "A SUMMARY OF IT")
      const listened = stage.listen()
      await client.ask("last", "And now?")
      const told = JSON.stringify(messagesIn(listened().at(-1)))
      assert.include(told, "A SUMMARY OF IT")
      assert.notInclude(told, "0 word")
      assert.include(told, "And now?")
    })
  )

  it.effect("makes a summary when it is asked to, and says when there is nothing to leave out", () =>
    onStage(async (stage) => {
      const caller = await stage.caller(5)
      stage.play({ [coder]: answersWith("IN SHORT", { usage: tokens(10, 5) }) })
      const client = await open(stage, caller, coder)
      client.say({ type: "compact", id: "c1" })
      assert.deepInclude(await client.done("c1"), { status: "completed", turns: 0 })
      assert.deepInclude(client.events("compaction_end")[0], { ok: false })
      // More than what is kept as it is.
      for (let index = 0; index < 4; index++)
        await client.ask(`p${index}`, `${index} ${"word ".repeat(9_000)}`)
      client.say({ type: "compact", id: "c2", instructions: "Keep the numbers" })
      await client.done("c2")
      assert.deepInclude(client.events("compaction_end").at(-1), { ok: true, summary: "IN SHORT" })
    })
  )
})

layer(server, live)("Who answers in an agent session", (it) => {
  it.effect("changes the model within a collection, and says so", () =>
    onStage(async (stage) => {
      const caller = await stage.caller(5)
      const collection = await caller.collect([coder, seeing])
      stage.play({
        [coder]: answersWith("All right.", { usage: tokens(10, 5) }),
        [seeing]: answersWith("All right.", { usage: tokens(10, 5) })
      })
      const client = await open(stage, caller, collection)
      await client.ask("p1", "One")
      stage.play({ [coder]: refuses(503, "down") })
      const done = await client.ask("p2", "Two")
      assert.strictEqual(done["status"], "completed")
      assert.deepInclude(client.events("model_fallback")[0], { from: coder, to: seeing })
    })
  )

  it.effect("never changes a model that was named", () =>
    onStage(async (stage) => {
      const caller = await stage.caller(5)
      stage.play({ [failing]: refuses(503, "down") })
      const client = await open(stage, caller, failing)
      const done = await client.ask("p1", "One")
      assert.strictEqual(done["status"], "error")
      assert.deepStrictEqual(client.events("model_fallback"), [])
      assert.strictEqual(textOf(client.events("message_end")[0]), "")
    })
  )

  it.effect("refuses a model that the key may not use or that calls no tools", () =>
    onStage(async (stage) => {
      const caller = await stage.caller(5)
      const scoped = await caller.makeKey({ kind: "router", models: [coder] })
      const client = await AgentClient.open(stage.server.url, scoped, { model: small })
      assert.strictEqual(await client.closed(), 4000)
      assert.deepInclude(client.of("error")[0], { code: "model_forbidden", fatal: true })
      const unknown = await open(stage, caller, "means/nothing")
      assert.deepInclude(await unknown.awaits("an error", ({ type }) => type === "error"), {
        code: "model_forbidden"
      })
    })
  )
})
