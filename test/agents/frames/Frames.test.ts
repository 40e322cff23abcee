import fc from "fast-check"
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { closeCodes } from "#schemas/agents/ServerFrame.ts"
import { type Caller, makeCaller } from "#test/llm/Caller.ts"
import { sharedServer, type TestServer } from "#test/harness/TestServer.ts"
import { assertSound, FrameClient, hello } from "./FrameClient.ts"
import { FrameSocket, type Heard } from "./FrameSocket.ts"
import { goodFrames, type Shot, shots } from "./Shots.ts"
import { workOnce } from "./Witness.ts"

/** FRAME_SHOTS sets how many frames are sent, FRAME_SEED repeats a run. */
const count = Number(process.env["FRAME_SHOTS"] ?? 200)
const seed = Number(process.env["FRAME_SEED"] ?? Date.now() % 2_147_483_647)

let server: typeof TestServer.Service
let attacker: Caller
let bystander: Caller

beforeAll(async () => {
  server = await sharedServer()
  attacker = await makeCaller(server.server, 5)
  bystander = await makeCaller(server.server, 5)
})

const lastError = (heard: ReadonlyArray<Heard>): Heard | undefined =>
  heard.findLast(({ type }) => type === "error")

/** Checks the answers against the contract's for a frame of this kind. */
const assertAnswered = (shot: Shot, answers: ReadonlyArray<Heard>, code: number | undefined): void => {
  const error = lastError(answers)
  switch (shot.kind) {
    case "huge":
      return assert.strictEqual(code, closeCodes.tooBig)
    case "hopeless":
      // Invalid UTF-8 is the engine's to refuse (RFC 6455 8.1).
      if (shot.text instanceof Uint8Array && !shot.isBinary) return assert.include([1007, 1006], code)
      assert.strictEqual(code, closeCodes.protocol)
      return void assert.deepInclude(error, { code: "bad_frame", fatal: true })
    case "faulty": {
      assert.isUndefined(code)
      assert.deepInclude(error, { code: "bad_frame", fatal: false })
      const message = String(error?.["message"])
      return assert.isTrue(message.startsWith(shot.field), `${message} does not name ${shot.field}`)
    }
    case "good":
      if (code !== undefined) assert.strictEqual(code, closeCodes.normal)
      return
  }
}

const fire = async (client: FrameClient, shot: Shot): Promise<void> => {
  const { isBinary, text } = shot
  const answers = await client.answers((socket) =>
    isBinary ? socket.binary(Buffer.from(text)) : socket.text(text)
  )
  const { socket } = client
  assertAnswered(shot, answers, socket.closedWith)
  if (socket.closedWith === undefined) return
  assertSound(socket)
  if (answers.some(({ reason, type }) => type === "bye" && reason === "client_bye")) client.sessionId = ""
  await client.comeBack()
}

describe("the gateway among clients that send anything", () => {
  it(
    "answers every frame as the contract has it, and works for the others meanwhile",
    { timeout: 600_000 },
    async () => {
      const before = server.logged().length
      const client = await FrameClient.open(server.url, attacker.key)
      const witness = await FrameClient.open(server.url, bystander.key)
      const over = new AbortController()
      const working = (async () => {
        for (let round = 0; !over.signal.aborted; round++) await workOnce(witness, `round-${round}`, 5)
      })()
      try {
        for (const [index, shot] of fc.sample(shots, { numRuns: count, seed }).entries()) {
          try {
            await fire(client, shot)
          } catch (error) {
            const text = Buffer.from(shot.text).toString().slice(0, 300)
            throw new Error(`FRAME_SEED=${seed}, frame ${index}, ${shot.kind}: ${text}`, { cause: error })
          }
        }
      } finally {
        over.abort()
        await working
      }
      assertSound(client.socket)
      assertSound(witness.socket)
      await workOnce(witness, "after", 3)
      for (const line of server.logged().slice(before))
        assert.notMatch(line, /"level":"(error|fatal)"|Unhandled|RangeError/i)
    }
  )

  it("refuses every frame but a hello at the beginning, and then closes with 4000", async () => {
    const [sample] = fc.sample(fc.array(goodFrames, { minLength: 40, maxLength: 40 }), { numRuns: 1, seed })
    for (const frame of new Map((sample ?? []).map((frame) => [frame["type"], frame])).values()) {
      if (frame["type"] === "hello") continue
      const socket = await FrameSocket.open(server.url, attacker.key, frame)
      assert.strictEqual(await socket.closed(), closeCodes.protocol)
      assert.deepInclude(lastError(socket.heard), { code: "hello_required", fatal: true })
    }
  })

  const openings: ReadonlyArray<readonly [what: string, more: object, code: string]> = [
    ["of another protocol", { protocol: 2 }, "bad_protocol"],
    ["without a protocol", { protocol: undefined }, "bad_protocol"],
    ["without a client", { client: undefined }, "bad_frame"],
    ["for a session that is none", { resume: "ses_0000000000000000000000" }, "unknown_session"],
    ["for a model that is none", { model: "sandbox/nobody" }, "model_forbidden"],
    ["for a model that calls no tools", { model: "sandbox/echo" }, "model_forbidden"]
  ]
  for (const [what, more, code] of openings) {
    it(`refuses a hello ${what} with ${code}`, async () => {
      const socket = await FrameSocket.open(server.url, attacker.key, hello(more))
      assert.strictEqual(await socket.closed(), closeCodes.protocol)
      assert.deepInclude(lastError(socket.heard), { code, fatal: true })
    })
  }

  it("gives nobody the session of another user, and leaves its client there", async () => {
    const owner = await FrameClient.open(server.url, bystander.key)
    const socket = await FrameSocket.open(server.url, attacker.key, hello({ resume: owner.sessionId }))
    assert.strictEqual(await socket.closed(), closeCodes.protocol)
    assert.deepInclude(lastError(socket.heard), { code: "not_owner", fatal: true })
    await workOnce(owner, "mine", 2)
  })

  it("takes a second hello for a fault, and what came with the first in its order", async () => {
    const prompt = { type: "prompt", id: "p", text: "say Hi." }
    const socket = await FrameSocket.open(server.url, attacker.key, hello(), hello(), prompt)
    assert.strictEqual(socket.heard[0]?.["type"], "ready")
    assert.isDefined(await socket.hear(({ id, type }) => type === "prompt.done" && id === "p"))
    assert.deepInclude(lastError(socket.heard), { code: "bad_frame", fatal: false })
    socket.say({ type: "bye" })
    assert.strictEqual(await socket.closed(), closeCodes.normal)
  })

  it("takes a prompt, a result and a chunk that are sent again once", async () => {
    const client = await FrameClient.open(server.url, attacker.key)
    const { socket } = client
    const prompt = { type: "prompt", id: "twice", text: "run one\nrun two\nsay Done." }
    socket.say(prompt)
    socket.say(prompt)
    const first = await socket.hear(({ type }) => type === "tool.request")
    const { callId } = first ?? {}
    const chunk = { type: "tool.stream", callId, index: 0, stream: "stdout", data: "once" }
    const result = { type: "tool.result", callId, ok: true, durationMs: 1 }
    const output = { exitCode: 0, output: "once", truncated: false }
    for (const frame of [chunk, chunk, { ...result, result: output }, { ...result, ok: false }, prompt])
      socket.say(frame)
    const second = await socket.hear(
      (frame) => frame["type"] === "tool.request" && frame["callId"] !== callId
    )
    socket.say({ ...result, callId: second?.["callId"], result: output })
    const done = await socket.hear(({ type }) => type === "prompt.done")
    assert.deepInclude(done, { id: "twice", status: "completed", toolCalls: 2, turns: 3 })
    const of = (kind: string) => socket.heard.filter((frame) => frame["kind"] === kind)
    assert.deepStrictEqual([of("tool_update").length, of("tool_end").length], [1, 2])
    assert.isUndefined(lastError(socket.heard))
    assertSound(socket)
    socket.say({ type: "bye" })
    await socket.closed()
  })

  it("bounds what a client has it say again, and tell to models", async () => {
    const client = await FrameClient.open(server.url, attacker.key)
    const { socket } = client
    socket.say({ type: "prompt", id: "long", text: "run one\nread two\nsay Done." })
    const first = await socket.hear(({ type }) => type === "tool.request")
    const { callId } = first ?? {}
    const text = "x".repeat(250 * 1024)
    const answers = await client.answers(() => {
      for (let steer = 0; steer < 4; steer++) socket.say({ type: "steer", id: `steer-${steer}`, text })
    })
    assert.deepStrictEqual(
      answers.filter(({ code }) => code === "busy").map(({ id }) => id),
      ["steer-2", "steer-3"]
    )
    const error = { code: "exec_failed", message: "m".repeat(1_048_000) }
    socket.say({ type: "tool.result", callId, ok: false, error, durationMs: 1 })
    const second = await socket.hear(
      (frame) => frame["type"] === "tool.request" && frame["callId"] !== callId
    )
    const result = { content: "c".repeat(1_048_000), totalLines: 1, truncated: false }
    socket.say({ type: "tool.result", callId: second?.["callId"], ok: true, result, durationMs: 1 })
    const done = await socket.hear(({ type }) => type === "prompt.done")
    assert.deepInclude(done, { id: "long", status: "completed" })
    assertSound(socket)
    socket.say({ type: "bye" })
    await socket.closed()
  })

  it("says why a prompt failed, and nothing else of it", async () => {
    const { socket } = await FrameClient.open(server.url, attacker.key)
    socket.say({ type: "prompt", id: "fails", text: "fail 400\nsay Never." })
    const done = await socket.hear(({ type }) => type === "prompt.done")
    assert.deepStrictEqual(Object.keys(Object(done?.["error"])), ["code", "message"])
    socket.say({ type: "bye" })
    await socket.closed()
  })

  it("ends a session at its client's word, whatever is open: as many may be made again", async () => {
    for (let session = 0; session < 12; session++) {
      const { socket } = await FrameClient.open(server.url, attacker.key)
      socket.say({ type: "prompt", id: "p", text: "run sleep 60" })
      await socket.hear(({ type }) => type === "tool.request")
      socket.say({ type: "bye" })
      assert.strictEqual(await socket.closed(), closeCodes.normal)
    }
  })

  it("closes the socket of a client that floods it, and keeps its session", async () => {
    const client = await FrameClient.open(server.url, attacker.key)
    const pong = JSON.stringify({ type: "pong", ts: 1, ack: 0 })
    for (let sent = 0; sent < 10_000; sent++) client.socket.text(pong)
    assert.strictEqual(await client.socket.closed(), closeCodes.protocol)
    assert.deepInclude(lastError(client.socket.heard), { code: "rate_limited", fatal: true })
    await client.comeBack()
    await workOnce(client, "again", 1)
  })
})
