import { assert, layer } from "@effect/vitest"
import type { Frame } from "#test/agents/rest/AgentSocket.ts"
import { textOf } from "./AgentClient.ts"
import { inRoom, roomLayer } from "./SandboxRoom.ts"

const live = { excludeTestServices: true } as const
const kindsOf = (frames: ReadonlyArray<Frame>) => frames.map(({ kind, type }) => kind ?? type)
const isRequest = ({ type }: Frame): boolean => type === "tool.request"
const succeeded = { ok: true, result: { exitCode: 0, output: "ok", truncated: false } }

layer(roomLayer, live)("Steering an agent session", (it) => {
  it.effect("applies a steer after the running turn's calls, and a follow-up when the work would end", () =>
    inRoom(async ({ caller, open }) => {
      const client = await open((await caller(5)).key, {}, () => undefined)
      client.say({ type: "prompt", id: "p1", text: "run make\nsay First is done." })
      const request = await client.awaits("the request", isRequest)
      client.say({ type: "steer", id: "later", mode: "follow_up", text: "say Second is done." })
      client.say({ type: "steer", id: "now", text: "say Something else." })
      const [, update] = await client
        .awaits(
          "both in the queue",
          ({ kind, queue }) => kind === "queue_update" && (queue as ReadonlyArray<unknown>).length === 2
        )
        .then(() => client.events("queue_update"))
      assert.deepStrictEqual(update?.["queue"], [
        { id: "later", text: "say Second is done.", mode: "follow_up" },
        { id: "now", text: "say Something else.", mode: "steer" }
      ])
      client.answer(request, succeeded)
      const done = await client.done("p1")
      assert.strictEqual(done["status"], "completed")
      const kinds = kindsOf(client.frames)
      assert.isBelow(kinds.indexOf("tool_end"), kinds.indexOf("steer_applied"))
      assert.deepStrictEqual(
        client.events("steer_applied").map(({ id }) => id),
        ["now", "later"]
      )
      const said = client.events("message_end").map(textOf)
      assert.include(said.at(-2), "Something else.")
      assert.include(said.at(-1), "Second is done.")
    })
  )

  it.effect("takes a steer for a prompt where nothing is worked on", () =>
    inRoom(async ({ caller, open }) => {
      const client = await open((await caller(5)).key)
      client.say({ type: "steer", id: "s1", text: "say Hello." })
      assert.strictEqual((await client.done("s1"))["status"], "completed")
      assert.include(textOf(client.events("message_end")[0]), "Hello.")
    })
  )

  it.effect("takes at most 16 messages that wait, and says which it did not take", () =>
    inRoom(async ({ caller, open }) => {
      const client = await open((await caller(5)).key, {}, () => undefined)
      client.say({ type: "prompt", id: "p1", text: "run make" })
      await client.awaits("the request", isRequest)
      for (let index = 0; index < 17; index++)
        client.say({ type: "steer", id: `s${index}`, mode: "follow_up", text: "say More." })
      const refused = await client.awaits("a refusal", ({ type }) => type === "error")
      assert.deepInclude(refused, { code: "busy", fatal: false, id: "s16" })
      client.say({ type: "abort", clearQueue: true })
      assert.strictEqual((await client.done("p1"))["status"], "aborted")
      assert.deepStrictEqual(client.events("queue_update").at(-1)?.["queue"], [])
      assert.strictEqual((await client.ask("p2", "say Go on."))["turns"], 1, "what waited is gone")
    })
  )

  it.effect("takes one prompt at a time, and one that is sent twice once", () =>
    inRoom(async ({ caller, open }) => {
      const client = await open((await caller(5)).key, {}, () => undefined)
      client.say({ type: "prompt", id: "p1", text: "run make\nsay Done." })
      const request = await client.awaits("the request", isRequest)
      client.say({ type: "prompt", id: "p1", text: "run make\nsay Done." })
      client.say({ type: "prompt", id: "p2", text: "say Me too." })
      const refused = await client.awaits("a refusal", ({ type }) => type === "error")
      assert.deepInclude(refused, { code: "busy", id: "p2", fatal: false })
      client.answer(request, succeeded)
      await client.done("p1")
      client.say({ type: "prompt", id: "p1", text: "run make\nsay Done." })
      await client.ask("p3", "say Next.")
      assert.deepStrictEqual(
        client.of("prompt.done").map(({ id }) => id),
        ["p1", "p3"]
      )
    })
  )
})

layer(roomLayer, live)("Aborting a prompt", (it) => {
  it.effect("ends an answer in its middle, keeps what was said, and charges no more than that", () =>
    inRoom(async ({ caller, open }) => {
      const client = await open((await caller(5)).key)
      client.say({ type: "prompt", id: "p1", text: "wait 30\nwords 2000" })
      await client.awaits("some words", ({ seq }) => Number(seq) > 5)
      client.say({ type: "abort" })
      const done = await client.done("p1")
      assert.strictEqual(done["status"], "aborted")
      const [message] = client.events("message_end")
      assert.strictEqual(message?.["stopReason"], "aborted")
      assert.isAbove(textOf(message).length, 0)
      assert.isBelow((done["usage"] as { readonly completionTokens: number }).completionTokens, 1_000)
      assert.strictEqual((await client.ask("p2", "say Again."))["status"], "completed")
    })
  )

  it.effect("tells the client to end its calls, and takes what it says of them", () =>
    inRoom(async ({ caller, open }) => {
      const client = await open((await caller(5)).key, {}, () => undefined)
      client.say({ type: "prompt", id: "p1", text: "run one\n& run two\nsay Done." })
      await client.awaits("both requests", () => client.of("tool.request").length === 2)
      client.say({ type: "abort", id: "p1" })
      await client.awaits("both cancels", () => client.of("tool.cancel").length === 2)
      const [first] = client.of("tool.request")
      if (first !== undefined)
        client.answer(first, { ok: false, error: { code: "cancelled", message: "killed in its middle" } })
      assert.strictEqual((await client.done("p1"))["status"], "aborted")
      const errors = client
        .events("tool_end")
        .map(({ error }) => (error as { readonly message: string }).message)
      assert.strictEqual(errors.length, 2)
      assert.include(errors, "killed in its middle")
    })
  )

  it.effect("leaves a prompt alone that it does not mean", () =>
    inRoom(async ({ caller, open }) => {
      const client = await open((await caller(5)).key, {}, () => undefined)
      client.say({ type: "prompt", id: "p1", text: "run make\nsay Done." })
      const request = await client.awaits("the request", isRequest)
      client.say({ type: "abort", id: "another" })
      client.answer(request, succeeded)
      assert.strictEqual((await client.done("p1"))["status"], "completed")
    })
  )
})
