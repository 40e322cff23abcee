import { assert, layer } from "@effect/vitest"
import { textOf } from "./AgentClient.ts"
import { inRoom, roomLayer } from "./SandboxRoom.ts"

const live = { excludeTestServices: true } as const

layer(roomLayer, live)("The loop of an agent session", (it) => {
  it.effect("calls tools, tells the model what came of them, and says what it all came to", () =>
    inRoom(async ({ caller, open }) => {
      const client = await open((await caller(5)).key)
      const done = await client.ask("p1", "read a.txt\nsay It says\nshow")
      assert.strictEqual(done["status"], "completed")
      assert.deepInclude(done, { turns: 2, toolCalls: 1, toolCallsDenied: 0, coveredBySubscription: false })
      assert.isAbove(Number(done["costUsd"]), 0)
      assert.include(textOf(client.events("message_end")[1]), "one\ntwo")
      const order = client.frames
        .map((frame) => frame["kind"] ?? frame["type"])
        .filter((kind) => kind !== "text_delta")
      assert.deepStrictEqual(order, [
        "ready",
        "turn_start",
        "message_end",
        "tool_start",
        "tool.request",
        "tool_end",
        "turn_end",
        "turn_start",
        "message_end",
        "turn_end",
        "prompt.done"
      ])
      const numbers = client.frames.flatMap(({ seq, type }) => (type === "ready" ? [] : [seq]))
      assert.deepStrictEqual(
        numbers,
        numbers.map((_, index) => index + 1),
        "no number is left out"
      )
    })
  )

  it.effect("shows every word of an answer as it comes, and the whole of it at its end", () =>
    inRoom(async ({ caller, open }) => {
      const client = await open((await caller(5)).key)
      await client.ask("p1", "think Let me see.\nwords 30")
      const [message] = client.events("message_end")
      const shown = client.events("text_delta").map(({ delta }) => delta)
      assert.strictEqual(shown.join(""), textOf(message))
      const thoughts = client.events("thinking_delta").map(({ delta }) => delta)
      assert.include(thoughts.join(""), "Let me see.")
    })
  )

  it.effect("asks for several calls at once, and tells the model of them in its own order", () =>
    inRoom(async ({ caller, open }) => {
      const client = await open((await caller(5)).key, {}, () => undefined)
      client.say({ type: "prompt", id: "p1", text: "run one\n& run two\n& run three\nsay Done." })
      await client.awaits("the third request", () => client.of("tool.request").length === 3)
      for (const request of client.of("tool.request").toReversed()) {
        const { command } = request["params"] as { readonly command: string }
        client.answer(request, { ok: true, result: { exitCode: 0, output: command, truncated: false } })
      }
      await client.done("p1")
      assert.strictEqual(client.events("tool_end").length, 3)
    })
  )

  it.effect("are counted by what they do, for /metrics", () =>
    inRoom(async ({ caller, open, url }) => {
      const client = await open((await caller(5)).key, {}, () => undefined)
      client.say({ type: "prompt", id: "p1", text: "run make\nsay Done." })
      await client.awaits("the request", ({ type }) => type === "tool.request")
      const metrics = await (await fetch(`${url}/metrics`)).text()
      const read = (name: string) =>
        Number(new RegExp(`^signalbox_agent_sessions${name}(?:\\{.*\\})? (\\d+)`, "m").exec(metrics)?.[1])
      assert.isAtLeast(read(""), 1)
      assert.isAtLeast(read("_attached"), 1)
      assert.strictEqual(read("_waiting"), 1)
      assert.strictEqual(read("_answering"), 0)
    })
  )

  it.effect("does not bother the client with calls that make no sense", () =>
    inRoom(async ({ caller, open }) => {
      const client = await open((await caller(5)).key)
      const calls =
        'call read {"file":"a.txt"}\n& call fly {}\n& call grep {"pattern":"x","context":99}\nsay Done.'
      const done = await client.ask("p1", calls)
      assert.strictEqual(done["status"], "completed")
      assert.deepStrictEqual(client.of("tool.request"), [])
      const codes = client.events("tool_end").map(({ error }) => (error as { readonly code: string }).code)
      assert.deepStrictEqual(codes, ["invalid_params", "invalid_params", "invalid_params"])
    })
  )

  it.effect("makes none of the calls of a message that was cut off", () =>
    inRoom(async ({ caller, open }) => {
      const client = await open((await caller(5)).key)
      await client.ask("p1", "length\nread a.txt\nsay Done.")
      assert.deepStrictEqual(client.of("tool.request"), [])
      assert.strictEqual(client.events("message_end")[0]?.["stopReason"], "length")
    })
  )

  it.effect("tries a call to a model again that failed, and shows no word twice", () =>
    inRoom(async ({ caller, open }) => {
      const client = await open((await caller(5)).key)
      const done = await client.ask("p1", "fail 503 2 times\nwords 5")
      assert.strictEqual(done["status"], "completed")
      assert.deepStrictEqual(
        client.events("retry").map(({ attempt }) => attempt),
        [2, 3]
      )
      assert.strictEqual(client.events("message_end").length, 1)
    })
  )

  it.effect("gives up on a model that goes on failing, and says why", () =>
    inRoom(async ({ caller, open }) => {
      const client = await open((await caller(5)).key)
      const done = await client.ask("p1", "fail 503\nwords 5")
      assert.strictEqual(done["status"], "error")
      assert.match((done["error"] as { readonly code: string }).code, /^(upstream_error|overloaded)$/)
      assert.strictEqual(client.events("retry").length, 3)
      assert.strictEqual((await client.ask("p2", "say Better."))["status"], "completed")
    })
  )

  it.effect("ends a prompt that takes more turns than it may", () =>
    inRoom(async ({ caller, open }) => {
      const client = await open((await caller(5)).key)
      const done = await client.ask("p1", Array.from({ length: 9 }, () => "ls").join("\n"))
      assert.deepInclude(done, { status: "max_turns", turns: 6 })
    })
  )

  it.effect("counts what the client refused", () =>
    inRoom(async ({ caller, open }) => {
      const denied = { ok: false, denied: true, error: { code: "denied", message: "The user said no" } }
      const client = await open((await caller(5)).key, {}, () => denied)
      const done = await client.ask("p1", "run rm x\nshow")
      assert.deepInclude(done, { toolCalls: 1, toolCallsDenied: 1 })
      assert.include(textOf(client.events("message_end").at(-1)), "The user said no")
    })
  )

  it.effect("takes a result of another form for a failure of the client", () =>
    inRoom(async ({ caller, open }) => {
      const client = await open((await caller(5)).key, {}, () => ({ ok: true, result: { lines: 3 } }))
      await client.ask("p1", "read a.txt\nsay Done.")
      const error = client.events("tool_end")[0]?.["error"]
      assert.deepInclude(error, { code: "exec_failed" })
    })
  )

  it.effect("tells a client that is too slow to end its call, and goes on without it", () =>
    inRoom(async ({ caller, open }) => {
      const client = await open((await caller(5)).key, {}, () => undefined)
      await client.ask("p1", "run (1 s) sleep 60\nsay Done.")
      assert.deepInclude(client.of("tool.cancel")[0], { reason: "timeout" })
      assert.deepInclude(client.events("tool_end")[0]?.["error"], { code: "timeout" })
    })
  )

  it.effect("passes on what a command prints while it runs, each piece once and at most 1 MiB of it", () =>
    inRoom(async ({ caller, open }) => {
      const client = await open((await caller(5)).key, {}, () => undefined)
      client.say({ type: "prompt", id: "p1", text: "run make\nsay Done." })
      const request = await client.awaits("the request", ({ type }) => type === "tool.request")
      const { callId } = request
      const piece = (index: number, data: string) =>
        client.say({ type: "tool.stream", callId, index, stream: "stdout", data })
      piece(0, "first")
      piece(0, "first")
      for (let index = 1; index <= 70; index++) piece(index, "x".repeat(16 * 1024))
      client.answer(request, { ok: true, result: { exitCode: 0, output: "", truncated: false } })
      await client.done("p1")
      const shown = client.events("tool_update").map(({ data }) => String(data))
      assert.strictEqual(shown[0], "first")
      assert.strictEqual(shown.filter((data) => data === "first").length, 1)
      assert.isAtMost(shown.join("").length, 1024 * 1024)
      assert.isAbove(shown.join("").length, 1000 * 1024)
    })
  )
})
