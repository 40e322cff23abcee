import { assert, beforeAll, describe, it } from "@effect/vitest"
import { connect } from "node:net"
import * as Decimal from "#schemas/llm/Decimal.ts"
import { picoOf, picoOfNumber } from "#schemas/llm/Money.ts"
import { ask } from "#test/harness/ApiClient.ts"
import { sharedServer } from "#test/harness/TestServer.ts"
import { until } from "#test/harness/Eventually.ts"
import { makeCaller } from "../Caller.ts"
import { type Frame, readStream } from "../ChatClient.ts"
import { type SandboxServer, startSandboxServer } from "./SandboxServer.ts"

let running: SandboxServer
beforeAll(async () => {
  running = await startSandboxServer()
})

const streaming = { stream: true, stream_options: { include_usage: true } }

/** The habit of many clients: to read the first choice of every frame, and trust that it is there. */
const naivelyRead = (frames: ReadonlyArray<Frame>): string =>
  frames.map((frame) => frame.choices[0]!.delta.content ?? "").join("")

describe("a client that reads choices[0].delta of every frame", () => {
  it("survives the summary frame, which is the last before [DONE]", async () => {
    const { frames, isDone, router, text } = await running.caller.say("sandbox/echo", "Hello there", {
      stream: true
    })
    assert.strictEqual(naivelyRead(frames), text)
    assert.deepStrictEqual(
      [isDone, frames.at(-1)?.object, frames.at(-1)?.router],
      [true, "chat.completion.chunk", router]
    )
    assert.deepStrictEqual(frames.at(-1)?.choices, [{ index: 0, delta: {}, finish_reason: null }])
  })

  it("sees one usage chunk, without choices and before the summary, only if it asks for one", async () => {
    const { frames, usage } = await running.caller.say("sandbox/echo", "Hello there", streaming)
    const withUsage = frames.slice(0, -1).filter((frame) => frame.usage !== undefined)
    assert.deepStrictEqual([withUsage.length, withUsage[0]?.choices], [1, []])
    assert.strictEqual(frames.indexOf(withUsage[0]!), frames.length - 2)
    assert.strictEqual(usage?.total_tokens, (usage?.prompt_tokens ?? 0) + (usage?.completion_tokens ?? 0))
    const without = await running.caller.say("sandbox/echo", "Hello there", { stream: true })
    assert.isTrue(without.frames.slice(0, -1).every((frame) => frame.usage === undefined))
    assert.strictEqual(without.frames.at(-1)?.usage?.total_tokens, usage?.total_tokens)
  })

  it("never sees what the upstream charges", async () => {
    for (const more of [streaming, {}]) {
      const { frames, raw, router } = await running.caller.say("sandbox/echo", "Hello there", more)
      // The platform's charge is in the summary, and nowhere else.
      const own = `"cost":${router?.charged_usd}`
      assert.notMatch(frames.length === 0 ? raw : raw.replace(own, ""), /"cost"|is_byok/)
    }
  })

  it("gets content chunks as the upstream sent them, byte for byte", async () => {
    const asked = { model: "sandbox/echo", messages: [{ role: "user", content: "grüße 👋" }], stream: true }
    const direct = await (await running.sandbox.post("/chat/completions", asked)).text()
    const { raw } = await running.caller.say("sandbox/echo", "grüße 👋", { stream: true })
    const contents = (text: string) =>
      text
        .split("\n\n")
        .filter((event) => /"content":"[^"]/.test(event))
        .map((event) => event.replace(/"id":"[^"]*"/, ""))
    assert.deepStrictEqual(contents(raw), contents(direct))
  })
})

describe("a client on a bare socket", () => {
  /** Sends one streamed request and answers the socket once the first content has come. */
  const begin = async (model: string, text: string) => {
    const { hostname, port } = new URL(running.server.url)
    const socket = connect(Number(port), hostname)
    const body = JSON.stringify({ model, stream: true, messages: [{ role: "user", content: text }] })
    socket.write(
      `POST /api/v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: bearer ${running.caller.key}\r\n` +
        `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
    )
    let received = ""
    await new Promise<void>((resolve, reject) => {
      socket.on("error", reject)
      socket.on("close", () => reject(new Error(`closed: ${received}`)))
      socket.on("data", (bytes) => {
        received += bytes.toString()
        if (received.includes(`"content"`)) resolve()
      })
    })
    return socket
  }

  it("that resets its connection within a stream aborts the upstream's call", async () => {
    // Other files call the same sandbox.
    const { aborted } = await running.sandbox.served("sandbox/slow")
    const socket = await begin("sandbox/slow", "Write 300 words")
    socket.resetAndDestroy()
    await until("the upstream's call is aborted", async () =>
      (await running.sandbox.served("sandbox/slow")).aborted === aborted + 1 ? undefined : "it goes on"
    )
  })

  it("that stops reading does not make the server read the whole answer into memory", async () => {
    const before = await running.sandbox.served("sandbox/free")
    const socket = await begin("sandbox/free", "Write 100000 words")
    socket.pause()
    const served = await running.sandbox.served("sandbox/free")
    assert.strictEqual(served.completed, before.completed)
    socket.destroy()
    await until("the upstream's call is aborted", async () =>
      (await running.sandbox.served("sandbox/free")).aborted === before.aborted + 1 ? undefined : "it goes on"
    )
  })

  it("is told the request's id, its rate limit, and not to keep the answer", async () => {
    const { headers } = await running.caller.say("sandbox/free", "hi", { stream: true })
    assert.match(headers.get("content-type") ?? "", /^text\/event-stream/)
    for (const name of ["x-request-id", "ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"]) {
      assert.isNotNull(headers.get(name), name)
    }
  })
})

describe("the ledger after calls of every kind", () => {
  it("took what the upstream says it served, with the markup, to the last pico-dollar", async () => {
    const { sandbox, server } = running
    const caller = await makeCaller(server, 5)
    const before = await sandbox.served("sandbox/thinker")
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, index) =>
        caller.say("sandbox/thinker", `Write ${index + 1} words`, index % 2 === 0 ? streaming : {})
      )
    )
    for (const { raw, router, status } of answers)
      assert.deepStrictEqual([status, router?.charged_usd !== undefined], [200, true], raw)
    const served = await sandbox.served("sandbox/thinker")
    assert.strictEqual(served.completed - before.completed, 40)
    // Other files of the worker have the same upstream, and ask the same model.
    const upstream = sum(
      Object.entries(served.costs).map(
        ([cost, calls]) => marked(cost) * BigInt(calls - (before.costs[cost] ?? 0))
      )
    )
    assert.strictEqual(
      sum(answers.map(({ router }) => picoOfNumber(router?.charged_usd ?? 0) ?? 0n)),
      upstream
    )
    await until("all of it is settled", async () => {
      const spent = picoOfNumber((await caller.credits()).lifetime_spent_usd)
      return spent === upstream ? undefined : `${spent} of ${upstream}`
    })
  })
})

const sum = (amounts: ReadonlyArray<bigint>): bigint => amounts.reduce((total, amount) => total + amount, 0n)

/** Pico-USD of a cost with the markup of 2 %. */
const marked = (cost: string): bigint =>
  picoOf(Decimal.multiply(Decimal.parse(cost) ?? Decimal.zero, { units: 102n, scale: 2 }))

describe("a server without UPSTREAM_URL", () => {
  it("serves the built-in sandbox, plainly labelled, and starts with it", async () => {
    const { server } = await sharedServer()
    // Other files make collections on the same server.
    const { body } = await ask(server, "GET", "/api/v1/models?include_collections=false")
    const { data } = body as { readonly data: ReadonlyArray<{ id: string; owned_by: string }> }
    assert.isTrue(
      data.length > 10 &&
        data.every(({ id, owned_by }) => id.startsWith("sandbox/") && owned_by === "sandbox")
    )
    const free = { model: "sandbox/free", messages: [{ role: "user", content: "hi" }], stream: true }
    const response = await fetch(`${server.url}/api/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${server.adminKey()}`, "content-type": "application/json" },
      body: JSON.stringify(free)
    })
    assert.include(readStream(await response.text()).text, "sandbox/free")
  })
})
