import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { agentErrorCodes, closeCodes, type ErrorFrame } from "#schemas/agents/ServerFrame.ts"
import { backoffMillis } from "#src/clients/agent/connection/Link.ts"
import { ConnectionClosed, PromptTooLong } from "#src/clients/agent/connection/ConnectionClosed.ts"
import { readFrame } from "#src/clients/agent/connection/ReadFrame.ts"
import { retryAfterMillis } from "#src/clients/agent/connection/Socket.ts"
import { streamPieces } from "#src/clients/agent/connection/ToolCalls.ts"
import { decideRetry } from "#src/clients/agent/connection/RetryDecision.ts"
import { ScriptedServer, sessionId } from "../ScriptedServer.ts"
import { inDirectory, TestClient } from "../TestClient.ts"

const withServer = (use: (server: ScriptedServer, directory: string) => Promise<void>): Promise<void> =>
  inDirectory(async (directory) => {
    const server = await ScriptedServer.start((session) => Promise.resolve(session.done()))
    try {
      await use(server, directory)
    } finally {
      await server.close()
    }
  })

const failureOf = async (made: Promise<unknown>): Promise<ConnectionClosed> => {
  const error: unknown = await made.then(
    () => undefined,
    (reason: unknown) => reason
  )
  if (error instanceof ConnectionClosed) return error
  return assert.fail(`no ConnectionClosed but ${String(error)}`)
}

describe("the wait before the next attempt", () => {
  it("is between what the server asks for and twice the wait before, and at most 10 seconds of its own", () => {
    fc.assert(
      fc.property(
        fc.nat(1_000),
        fc.nat(20_000),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        (failures, asked, random) => {
          const millis = backoffMillis(failures, asked, () => random)
          assert.isAtLeast(millis, asked)
          assert.isAtMost(millis, Math.max(asked, Math.min(10_000, 250 * 2 ** failures)))
        }
      )
    )
  })

  it("reads Retry-After as seconds and as a date, and anything else as nothing", () => {
    const now = Date.parse("2026-11-21T12:00:00Z")
    assert.strictEqual(retryAfterMillis("7", now), 7_000)
    assert.strictEqual(retryAfterMillis("Sat, 21 Nov 2026 12:00:30 GMT", now), 30_000)
    for (const header of [undefined, "", "soon", "-3", "Sat, 21 Nov 2026 11:00:00 GMT"]) {
      assert.strictEqual(retryAfterMillis(header, now), 0, header)
    }
  })
})

describe("the end of a connection", () => {
  const error = (code: ErrorFrame["code"]): ErrorFrame => ({ type: "error", code, message: "m", fatal: true })

  it("is final where another client took the session, the key was revoked, or the session ended", () => {
    for (const [code, reason] of [
      [closeCodes.superseded, "superseded"],
      [closeCodes.revoked, "revoked"]
    ] as const) {
      const decision = decideRetry({ kind: "closed", code }, true)
      assert.strictEqual(decision.retry ? "" : decision.reason, reason)
    }
    const bye = { type: "bye", reason: "ended", resumable: false } as const
    assert.isFalse(decideRetry({ kind: "closed", code: 1000, bye }, true).retry)
  })

  it("is followed at once by the next one where the server restarts, moves the session or drops a slow reader", () => {
    for (const code of [closeCodes.restart, closeCodes.slow]) {
      const decision = decideRetry({ kind: "closed", code }, true)
      assert.isTrue(decision.retry && decision.atOnce)
    }
    const bye = { type: "bye", reason: "restart", resumable: true, retryAfterMs: 700 } as const
    const decision = decideRetry({ kind: "closed", code: closeCodes.restart, bye }, true)
    assert.strictEqual(decision.retry ? decision.askedMillis : 0, 700)
  })

  it("after a fatal error is final unless the error passes by itself", () => {
    const passing = agentErrorCodes.filter(
      (code) => decideRetry({ kind: "closed", code: 1000, error: error(code) }, false).retry
    )
    assert.deepStrictEqual(passing, ["busy", "rate_limited", "overloaded", "upstream_error", "internal"])
  })
})

describe("frames of a newer server", () => {
  it("count with their number and are left alone, but for calls, which are answered, and goodbyes", () => {
    assert.deepStrictEqual(readFrame('{"type":"event","kind":"news","seq":7,"promptId":""}'), {
      kind: "strange",
      seq: 7,
      type: "event news",
      why: ""
    })
    const strange = readFrame('{"type":"tool.request","seq":8,"callId":"c","method":"fs.fly"}')
    assert.deepStrictEqual(strange, { kind: "strange_call", callId: "c", seq: 8 })
    const bye = readFrame('{"type":"bye","reason":"tired","resumable":true,"retryAfterMs":5}')
    assert.isTrue(bye.kind === "known" && bye.frame.type === "bye" && bye.frame.retryAfterMs === 5)
    const error = readFrame('{"type":"error","code":"tired","message":"Come back","fatal":true}')
    assert.isTrue(
      error.kind === "known" && error.frame.type === "error" && error.frame.message === "Come back"
    )
    const ready = readFrame('{"type":"ready","sessionId":"ses_x"}')
    assert.isTrue(ready.kind === "strange" && ready.type === "ready" && ready.why.includes("sessionId"))
    for (const text of ["", "[", "null", "7", '"ready"'])
      assert.strictEqual(readFrame(text).kind, "broken", text)
  })
})

describe("streamed output", () => {
  it("is cut into pieces of at most 16 KiB that are whole characters and add up to it", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "grapheme", minLength: 1, maxLength: 50 }),
        fc.integer({ min: 1, max: 2_000 }),
        (unit, times) => {
          const text = unit.repeat(times)
          const pieces = streamPieces(text)
          assert.strictEqual(pieces.join(""), text)
          for (const piece of pieces) {
            assert.isAtMost(Buffer.byteLength(piece), 16_384)
            assert.isTrue(piece.isWellFormed())
          }
        }
      ),
      { numRuns: 50 }
    )
  })
})

describe("connecting", () => {
  it("sends the key as a bearer token, and says which journal it keeps", () =>
    withServer(async (server, directory) => {
      const test = new TestClient(server, directory)
      await test.client.start()
      assert.deepStrictEqual(server.keys, ["Bearer sk-test"])
      const [hello] = server.received
      assert.isTrue(hello?.type === "hello" && (hello.client.journalId?.length ?? 0) > 20)
      await test.client.bye()
    }))

  it("is final with the server's own words where the key or the account is refused", () =>
    withServer(async (server, directory) => {
      for (const [status, reason] of [
        [401, "key_refused"],
        [402, "no_credits"],
        [403, "key_refused"],
        [404, "no_gateway"]
      ] as const) {
        server.refusals = [{ status, body: '{"error":"not you"}' }]
        const test = new TestClient(server, directory)
        const closed = await failureOf(test.client.start())
        assert.strictEqual(closed.reason, reason)
        assert.match(closed.message, /not you/)
      }
    }))

  it("tries again after 429 and 5xx, and not before Retry-After", () =>
    withServer(async (server, directory) => {
      server.refusals = [{ status: 503 }, { status: 429, headers: { "Retry-After": "1" } }]
      const test = new TestClient(server, directory)
      const ready = test.client.start()
      await test.until(
        () => test.events.filter((_) => _.type === "link" && _.state === "waiting").length === 2
      )
      const waits = test.events.flatMap((_) =>
        _.type === "link" && _.state === "waiting" ? [_.retryInMillis] : []
      )
      assert.deepStrictEqual(waits, [0, 1_000])
      assert.strictEqual((await ready).sessionId, sessionId)
      await test.client.bye()
    }))

  it("is given up in time where somebody waits for it", () =>
    inDirectory(async (directory) => {
      const gone = await ScriptedServer.start()
      const { url } = gone
      await gone.close()
      const test = new TestClient({ url }, directory, {
        patience: { firstMillis: 0, lostMillis: 0 },
        random: () => 0.5
      })
      const closed = await failureOf(test.client.start())
      assert.strictEqual(closed.reason, "unreachable")
      assert.match(closed.message, /ECONNREFUSED/)
    }))

  it("answers a ping with its time and the number of the last frame", () =>
    withServer(async (server, directory) => {
      const test = new TestClient(server, directory)
      await test.client.start()
      const id = test.client.prompt("go")
      await test.untilDone(id)
      const received = new Promise((resolve) => {
        for (const socket of server.connections)
          socket.on("message", (data) => resolve(JSON.parse(String(data))))
      })
      for (const socket of server.connections) socket.send('{"type":"ping","ts":123.5}')
      assert.deepStrictEqual(await received, { type: "pong", ts: 123.5, ack: server.session.last })
      await test.client.bye()
    }))
})

describe("a prompt", () => {
  it("that no server would take is refused here, and not sent over one connection after the other", () =>
    withServer(async (server, directory) => {
      const test = new TestClient(server, directory)
      await test.client.start()
      for (const text of ["x".repeat(262_145), "€".repeat(90_000), "\0".repeat(200_000)]) {
        assert.throws(() => test.client.prompt(text), PromptTooLong)
      }
      await test.untilDone(test.client.prompt("x".repeat(262_144)))
      await test.client.bye()
    }))
})

describe("one session after another", () => {
  it("opens the same one anew with another model, and a fresh or an earlier one where asked to", () =>
    withServer(async (server, directory) => {
      const test = new TestClient(server, directory, { model: "a/one" })
      await test.client.start()
      const reopened = await test.client.reopen({ model: "b/two", thinkingLevel: "high" })
      assert.deepStrictEqual([reopened.sessionId, reopened.model.id], [sessionId, "b/two"])
      const other = `ses_${"c".repeat(22)}`
      await test.client.resume(other)
      server.ready = (ready) => ({ ...ready, sessionId: `ses_${"d".repeat(22)}` })
      await test.client.newSession()
      await test.client.bye()
      const hellos = server.received.flatMap((frame) =>
        frame.type === "hello" ? [[frame.resume, frame.model]] : []
      )
      assert.deepStrictEqual(hellos, [
        [undefined, "a/one"],
        [sessionId, "b/two"],
        [other, undefined],
        [undefined, "b/two"]
      ])
    }))

  it("goes on with the one of before where an earlier one cannot be had", () =>
    withServer(async (server, directory) => {
      const test = new TestClient(server, directory)
      await test.client.start()
      server.refusals = [{ status: 404, body: '{"error":"No such session"}' }]
      const closed = await failureOf(test.client.resume(`ses_${"c".repeat(22)}`))
      assert.match(closed.message, /No such session/)
      server.refusals = [{ status: 402, body: '{"error":"Too dear"}' }]
      const refused = await failureOf(test.client.reopen({ model: "too/dear" }))
      assert.match(refused.message, /Too dear/)
      assert.isFalse(test.events.some((event) => event.type === "link" && event.state === "closed"))
      assert.strictEqual(test.client.ready?.sessionId, sessionId)
      await test.untilDone(test.client.prompt("go"))
      await test.client.bye()
    }))

  it("is refused while another client of this machine has it, and let go with a goodbye", () =>
    withServer(async (server, directory) => {
      const first = new TestClient(server, directory)
      await first.client.start()
      const second = new TestClient(server, directory, { resume: sessionId })
      const closed = await failureOf(second.client.start())
      assert.strictEqual(closed.reason, "locked")
      assert.match(closed.message, new RegExp(`Process ${process.pid} `))
      await first.client.bye()
      const third = new TestClient(server, directory, { resume: sessionId })
      await third.client.start()
      await third.client.bye()
    }))

  it("ends for good, with its calls, when another client takes it over", () =>
    inDirectory(async (directory) => {
      const server = await ScriptedServer.start(async (session) => {
        await session.call("c1", "proc.exec", { command: "sleep" })
      })
      let isAborted = false
      const test = new TestClient(server, directory, {
        run: (_, { signal }) =>
          new Promise((resolve) => {
            signal.addEventListener("abort", () => {
              isAborted = true
              resolve({ ok: false, error: { code: "cancelled", message: "" } })
            })
          })
      })
      await test.client.start()
      test.client.prompt("go")
      await test.untilEvent((event) => event.type === "tool" && event.state === "started")
      await test.until(() => test.runs.length === 1)
      for (const socket of server.connections) socket.close(4009)
      await test.untilEvent((event) => event.type === "link" && event.state === "closed")
      assert.isTrue(isAborted)
      await server.close()
    }))
})
