import { assert, layer } from "@effect/vitest"
import { until } from "#test/harness/Eventually.ts"
import { ask } from "#test/harness/ApiClient.ts"
import type { Frame } from "#test/agents/rest/AgentSocket.ts"
import { textOf } from "./AgentClient.ts"
import { inRoom, roomLayer } from "./SandboxRoom.ts"

const live = { excludeTestServices: true } as const
const from = (journalId: string) => ({ client: { version: "1", platform: "test", journalId } })

layer(roomLayer, live)("Resuming an agent session", (it) => {
  it.effect("replays what was missed, of finished messages only the end, and nothing twice", () =>
    inRoom(async ({ caller, open }) => {
      const { key } = await caller(5)
      const first = await open(key)
      await first.ask("p1", "words 20")
      const { seq, sessionId } = first
      await first.ask("p2", "words 20\nread a.txt\nsay Done.")
      first.leave()
      const second = await open(key, { resume: sessionId, lastSeq: seq })
      const replayed = await second
        .awaits("the end", ({ type }) => type === "prompt.done")
        .then(() => second.frames.slice(1))
      assert.deepInclude(second.frames[0], { resumed: true, sessionId })
      assert.deepStrictEqual(
        replayed.map(({ kind, type }) => kind ?? type),
        [
          "turn_start",
          "message_end",
          "tool_start",
          "tool_end",
          "turn_end",
          "turn_start",
          "message_end",
          "turn_end",
          "prompt.done"
        ]
      )
      const numbers = replayed.map((frame) => Number(frame["seq"]))
      assert.isTrue(numbers.every((number) => number > seq))
      assert.deepStrictEqual(
        numbers,
        numbers.toSorted((a, b) => a - b)
      )
    })
  )

  it.effect("replays from the store what memory has let go of, and says what is missing", () =>
    inRoom(async ({ caller, open }) => {
      const { key } = await caller(5)
      const first = await open(key)
      await first.ask("p1", "words 20\nsay Done.")
      first.say({ type: "pong", ts: 1, ack: first.seq })
      first.leave()
      const second = await open(key, { resume: first.sessionId, lastSeq: 0 })
      await second.awaits("the end", ({ type }) => type === "prompt.done")
      const kinds = second.frames.map(({ kind, type }) => kind ?? type)
      const all = ["ready", "turn_start", "message_end", "replay_gap", "prompt.done"]
      assert.deepStrictEqual(kinds.slice(0, 5), all)
      const done = Number(second.of("prompt.done")[0]?.["seq"])
      assert.deepInclude(second.events("replay_gap")[0], { from: 2, to: done - 1, seq: done - 1 })
      assert.strictEqual(second.events("turn_start")[0]?.["text"], "words 20\nsay Done.")
    })
  )

  it.effect("sends the older of two clients away", () =>
    inRoom(async ({ caller, open }) => {
      const { key } = await caller(5)
      const first = await open(key)
      const second = await open(key, { resume: first.sessionId, lastSeq: 0 })
      assert.strictEqual(await first.closed(), 4009)
      assert.deepInclude(first.of("bye")[0], { reason: "superseded" })
      assert.strictEqual((await second.ask("p1", "say Hello."))["status"], "completed")
    })
  )

  it.effect("asks again for a call that is open, with the same id and the next attempt", () =>
    inRoom(async ({ caller, open }) => {
      const { key } = await caller(5)
      const first = await open(key, from("j-1"), () => undefined)
      first.say({ type: "prompt", id: "p1", text: "run make\n& read a.txt\nsay Done." })
      await first.awaits("both requests", () => first.of("tool.request").length === 2)
      first.leave()
      const second = await open(key, { ...from("j-1"), resume: first.sessionId, lastSeq: first.seq })
      assert.strictEqual(second.frames[0]?.["activePrompt"], "p1")
      await second.done("p1")
      const calls = (frames: ReadonlyArray<Frame>) => frames.map(({ attempt, callId }) => [callId, attempt])
      assert.deepStrictEqual(
        calls(second.of("tool.request")),
        calls(first.of("tool.request")).map(([callId]) => [callId, 2])
      )
    })
  )

  it.effect("does not ask another machine for what the first may have done, but tells the model", () =>
    inRoom(async ({ caller, open }) => {
      const { key } = await caller(5)
      const first = await open(key, from("j-1"), () => undefined)
      first.say({ type: "prompt", id: "p1", text: "run make\n& read a.txt\nshow" })
      await first.awaits("both requests", () => first.of("tool.request").length === 2)
      first.leave()
      const second = await open(key, { ...from("j-2"), resume: first.sessionId, lastSeq: first.seq })
      await second.done("p1")
      assert.deepStrictEqual(
        second.of("tool.request").map(({ method }) => method),
        ["fs.read"]
      )
      const codes = second.events("tool_end").map(({ error }) => (error as Frame | undefined)?.["code"])
      assert.includeMembers(codes, ["interrupted", undefined])
    })
  )

  it.effect("lets the model end its answer while nobody is there, and then waits", () =>
    inRoom(async ({ adminKey, caller, open, url }) => {
      const { key } = await caller(5)
      const first = await open(key, from("j-1"))
      first.say({ type: "prompt", id: "p1", text: "wait 20\nwords 30\nrun make\nsay Done." })
      await first.awaits("some words", ({ seq }) => Number(seq) > 3)
      first.leave()
      const server = { url, adminKey: () => adminKey }
      await until("the answer is stored, and nothing was asked for", async () => {
        const { body } = await ask(server, "GET", `/api/v1/agent/sessions/${first.sessionId}`, { key })
        const transcript = JSON.stringify(body)
        return transcript.includes("make") && transcript.includes("tool_call")
          ? undefined
          : transcript.slice(0, 300)
      })
      const second = await open(key, { ...from("j-1"), resume: first.sessionId, lastSeq: first.seq })
      assert.strictEqual((await second.done("p1"))["status"], "completed")
      assert.strictEqual(second.of("tool.request")[0]?.["attempt"], 1)
    })
  )

  it.effect("goes on in a session whose client said bye", () =>
    inRoom(async ({ caller, open }) => {
      const { key } = await caller(5)
      const first = await open(key)
      await first.ask("p1", "say One.")
      first.say({ type: "bye" })
      assert.strictEqual(await first.closed(), 1000)
      const second = await open(key, { resume: first.sessionId, lastSeq: first.seq })
      await second.ask("p2", "say Two.")
      assert.include(textOf(second.events("message_end").at(-1)), "Two.")
    })
  )

  it.effect("takes another model and other thinking from a hello that resumes", () =>
    inRoom(async ({ caller, open }) => {
      const { key } = await caller(5)
      const first = await open(key)
      const changes = { model: "sandbox/coder-free", thinkingLevel: "high" }
      const second = await open(key, { resume: first.sessionId, lastSeq: 0, ...changes })
      assert.deepInclude(second.frames[0]?.["model"], { id: "sandbox/coder-free" })
      assert.strictEqual(second.frames[0]?.["thinkingLevel"], "high")
      assert.strictEqual((await second.ask("p1", "say For nothing."))["costUsd"], 0)
    })
  )

  it.effect("is paid with the key of who resumes it, within what that key may spend", () =>
    inRoom(async ({ adminKey, caller, open, url }) => {
      const { key, makeKey } = await caller(5)
      const first = await open(key)
      await first.ask("p1", "say One.")
      first.leave()
      const limited = await makeKey({ kind: "router", spend_limit_usd: 1 })
      const second = await open(limited, { resume: first.sessionId, lastSeq: first.seq })
      const { costUsd } = await second.ask("p2", "say Two.")
      assert.isAbove(Number(costUsd), 0)
      const server = { url, adminKey: () => adminKey }
      await until("it is booked", async () => {
        const { body } = await ask(server, "GET", "/api/v1/credits", { key: limited })
        const spent = (body as { readonly key: { readonly spent_usd: number } }).key.spent_usd
        return Math.abs(spent - Number(costUsd)) < 1e-9 ? undefined : `${spent} of ${String(costUsd)}`
      })
    })
  )

  it.effect("refuses what is not there, somebody else's, or another workspace's", () =>
    inRoom(async ({ caller, open }) => {
      const { key } = await caller(5)
      const { sessionId } = await open(key)
      const refused = async (by: string, hello: object) => {
        const client = await open(by, { lastSeq: 0, ...hello })
        const code = await client.closed()
        return [client.of("error")[0]?.["code"], code]
      }
      const unknown = "ses_0000000000000000000000"
      assert.deepStrictEqual(await refused(key, { resume: unknown }), ["unknown_session", 4000])
      const other = await caller(5)
      assert.deepStrictEqual(await refused(other.key, { resume: sessionId }), ["not_owner", 4000])
      const elsewhere = { resume: sessionId, workspace: { root: "/else", name: "else" } }
      assert.deepStrictEqual(await refused(key, elsewhere), ["workspace_mismatch", 4000])
    })
  )
})

layer(roomLayer, live)("Whom the gateway lets in", (it) => {
  it.effect("gives a key eight live sessions, and resumes any of them all the same", () =>
    inRoom(async ({ caller, open }) => {
      const { key } = await caller(5)
      const clients = await Promise.all(Array.from({ length: 8 }, () => open(key)))
      const ninth = await open(key)
      assert.strictEqual(await ninth.closed(), 4000)
      assert.deepInclude(ninth.of("error")[0], { code: "rate_limited", fatal: true })
      const resumed = await open(key, { resume: clients[0]?.sessionId, lastSeq: 0 })
      assert.strictEqual(resumed.closedWith, undefined)
      clients[1]?.say({ type: "bye" })
      await clients[1]?.closed()
      await until("there is room again", async () => {
        const tenth = await open(key)
        return tenth.of("ready").length === 1 ? undefined : JSON.stringify(tenth.frames)
      })
    })
  )

  it.effect("asks no money of a key that has some and may run nothing, but says so", () =>
    inRoom(async ({ caller, open }) => {
      const { makeKey } = await caller(5)
      const client = await open(await makeKey({ kind: "router", models: ["sandbox/echo"] }), {
        model: undefined
      })
      assert.strictEqual(await client.closed(), 4000)
      assert.deepInclude(client.of("error")[0], { code: "model_forbidden", fatal: true })
    })
  )

  it.effect("ends the sessions of a key that is revoked", () =>
    inRoom(async ({ adminKey, caller, open, url }) => {
      const { key, makeKey } = await caller(5)
      const second = await makeKey({ kind: "account" })
      const client = await open(second)
      const server = { url, adminKey: () => adminKey }
      const { body } = await ask(server, "GET", "/api/v1/keys", { key })
      const { data } = body as {
        readonly data: ReadonlyArray<{ readonly id: string; readonly prefix: string }>
      }
      const id = data.find(({ prefix }) => second.startsWith(prefix))?.id
      await ask(server, "DELETE", `/api/v1/keys/${id}`, { key })
      assert.strictEqual(await client.closed(), 4001)
      assert.deepInclude(client.of("bye")[0], { reason: "revoked", resumable: false })
    })
  )
})
