import { subscribe, unsubscribe } from "node:diagnostics_channel"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { eventually } from "#test/harness/Eventually.ts"
import { type Answer, TestServer } from "#test/harness/TestServer.ts"
import { at, modernRequest, request } from "./Asking.ts"
import { diagnosticRooms, endedSessions } from "./DiagnosticRoom.ts"
import { waits } from "./DiagnosticTools.ts"

const live = { excludeTestServices: true } as const
const served = TestServer.own(
  {
    rooms: new Set(["accounts", "diagnostic"]),
    baseUrl: "https://signalbox.example/app",
    corsOrigins: new Set(["https://console.example"]),
    limits: { mcpBodiesBytes: 2_500_000 }
  },
  { rooms: diagnosticRooms }
)

const call = (name: string, args: object = {}, id: unknown = 1) =>
  request("tools/call", { name, arguments: args }, id)

const textOf = ({ json }: Answer, ...path: ReadonlyArray<string | number>): unknown =>
  at(json, ...path, "result", "content", 0, "text")

const about = ({ headers, json, status }: Answer) => [status, headers.get("content-type"), json]

/** A body that comes in pieces, so that the front asks about it before it reads it. */
const long = (bytes: number) => JSON.stringify(call("measure", { text: "x".repeat(bytes) }))

layer(served, live)("an endpoint of the Model Context Protocol", (it) => {
  it.effect("answers POST alone, always in JSON, on all of its paths", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      for (const path of ["/mcp", "/api/v1/mcp", "/api/mcp"]) {
        for (const method of ["GET", "DELETE", "PUT", "PATCH"]) {
          const refused = yield* ask(method, path, { key: "", headers: { accept: "text/event-stream" } })
          assert.deepStrictEqual(
            [refused.headers.get("allow"), ...about(refused)],
            ["POST", 405, "application/json", { error: "Method not allowed" }]
          )
        }
        const answer = yield* ask("POST", path, {
          json: request("ping"),
          headers: { accept: "text/event-stream", "x-request-id": "mine" }
        })
        assert.deepStrictEqual(about(answer), [
          200,
          "application/json",
          { jsonrpc: "2.0", id: 1, result: {} }
        ])
        assert.strictEqual(answer.headers.get("x-request-id"), "mine")
        assert.match(answer.headers.get("ratelimit-remaining") ?? "", /^\d+$/)
      }
      const told = yield* ask("POST", "/mcp", {
        json: { jsonrpc: "2.0", method: "notifications/initialized" }
      })
      assert.deepStrictEqual(
        [told.status, told.bytes.length, told.headers.get("content-type")],
        [202, 0, null]
      )
      const { body, headers } = modernRequest("server/discover")
      assert.strictEqual((yield* ask("POST", "/mcp", { json: body, headers })).status, 200)
      assert.strictEqual((yield* ask("POST", "/mcp", { json: body })).status, 400)
    })
  )

  it.effect("lets in before it reads: 401, 429 and 413 are flat", () =>
    Effect.gen(function* () {
      const { ask, makeKey } = yield* TestServer
      const flat = (error: string, status: number) => [status, "application/json", { error }]
      for (const body of ["{", long(2_000_000)]) {
        for (const key of ["", "sk_wrong", `sk_${"0".repeat(40)}`]) {
          const refused = yield* ask("POST", "/mcp", { key, body })
          assert.deepStrictEqual(about(refused), flat("Invalid or missing API key", 401))
          assert.strictEqual(refused.headers.get("www-authenticate"), "Bearer")
        }
      }
      const { key } = yield* makeKey({ rate_limit_per_minute: 1 })
      assert.strictEqual((yield* ask("POST", "/mcp", { key, json: request("ping") })).status, 200)
      for (const body of [JSON.stringify(request("ping")), long(2_000_000)]) {
        const refused = yield* ask("POST", "/mcp", { key, body })
        assert.deepStrictEqual([refused.status, Object.keys(refused.json as object)], [429, ["error"]])
        assert.match(refused.headers.get("retry-after") ?? "", /^\d+$/)
      }
      assert.deepStrictEqual(
        about(yield* ask("POST", "/api/mcp", { body: long(1024 * 1024) })),
        flat("body: at most 1048576 bytes", 413)
      )
    })
  )

  it.effect("takes a body without a length, to the same limits", () =>
    Effect.gen(function* () {
      const { adminKey, url } = yield* TestServer
      const send = (path: string, bytes: number) =>
        Effect.promise(async () => {
          const answer = await fetch(`${url}${path}`, {
            method: "POST",
            headers: { authorization: `Bearer ${adminKey}` },
            body: new Blob([long(bytes)]).stream(),
            duplex: "half"
          })
          return [answer.status, await answer.text()] as const
        })
      const read = yield* send("/mcp", 1_000_000)
      assert.strictEqual(read[0], 200)
      assert.include(read[1], '"characters":1000000')
      assert.deepStrictEqual(yield* send("/api/mcp", 1024 * 1024), [
        413,
        '{"error":"body: at most 1048576 bytes"}'
      ])
      assert.strictEqual((yield* send("/mcp", 2_000_000))[0], 503)
    })
  )

  it.effect("refuses pages of other origins, before it asks for a key", () =>
    Effect.gen(function* () {
      const { ask, port } = yield* TestServer
      const from = (origin: string) =>
        ask("POST", "/mcp", { key: "", json: request("ping"), headers: { origin } })
      for (const origin of [
        "https://evil.example",
        "null",
        "http://signalbox.example",
        "https://localhost.evil.example",
        `http://localhost.evil.example:${port}`
      ]) {
        const refused = yield* from(origin)
        assert.strictEqual(refused.status, 403, origin)
        assert.deepStrictEqual(
          [Object.keys(refused.json as object), at(refused.json, "error", "code")],
          [["jsonrpc", "error"], -32600]
        )
      }
      const unread = yield* ask("POST", "/mcp", {
        body: long(2_000_000),
        headers: { origin: "https://evil.example" }
      })
      assert.strictEqual(unread.status, 403)
      for (const origin of [
        "https://signalbox.example",
        "https://console.example",
        `http://localhost:${port}`,
        `http://127.0.0.1:${port}`,
        `http://[::1]:${port}`
      ])
        assert.strictEqual((yield* from(origin)).status, 401, origin)
    })
  )

  it.effect("hands a body that is no message to the room, where it takes some", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const json = { app: "a", message: "b" }
      const plain = yield* ask("POST", "/mcp", { json, headers: { "idempotency-key": "once" } })
      assert.deepStrictEqual([plain.status, plain.headers.get("x-plain")], [201, "yes"])
      assert.deepInclude(plain.json, {
        json,
        bytes: JSON.stringify(json).length,
        contentType: "application/json",
        idempotencyKey: "once"
      })
      const refused = yield* ask("POST", "/api/mcp", { json })
      assert.deepStrictEqual(
        [refused.status, at(refused.json, "error", "code"), at(refused.json, "id")],
        [400, -32600, null]
      )
    })
  )

  it.effect("tells a tool its caller: the key, the query, an Idempotency-Key of a call that is alone", () =>
    Effect.gen(function* () {
      const { ask, makeKey } = yield* TestServer
      const { id, key } = yield* makeKey()
      const headers = { "idempotency-key": "once", "mcp-session-id": "any" }
      const alone = yield* ask("POST", "/mcp?session=a", { key, headers, json: call("who") })
      assert.deepStrictEqual(at(alone.json, "result", "structuredContent"), {
        keyId: id,
        idempotencyKey: "once",
        session: "any",
        query: "session=a"
      })
      const batch = yield* ask("POST", "/mcp", { key, headers, json: [call("who")] })
      assert.deepInclude(at(batch.json, 0, "result", "structuredContent"), { idempotencyKey: "" })
      const modern = modernRequest("tools/call", { name: "who" })
      const stateless = yield* ask("POST", "/mcp", {
        headers: { ...headers, ...modern.headers },
        json: modern.body
      })
      assert.deepInclude(at(stateless.json, "result", "structuredContent"), { session: "" })
    })
  )

  it.effect("keeps the room's sessions: initialize issues an id, one that is not open is 404", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const initialize = request("initialize", { protocolVersion: "2025-11-25" })
      const session =
        (yield* ask("POST", "/api/mcp", { json: initialize })).headers.get("mcp-session-id") ?? ""
      assert.match(session, /^session-of-/)
      const ping = (id: string) =>
        ask("POST", "/api/mcp", { json: request("ping"), headers: { "mcp-session-id": id } })
      assert.deepStrictEqual([(yield* ping(session)).status, (yield* ping("another")).status], [200, 404])
      endedSessions.add(session)
      assert.deepStrictEqual((yield* ping(session)).json, {
        jsonrpc: "2.0",
        error: { code: -32001, message: "Session not found" }
      })
      const again = yield* ask("POST", "/api/mcp", {
        json: initialize,
        headers: { "mcp-session-id": session }
      })
      assert.strictEqual(again.status, 200)
      const modern = modernRequest("tools/list")
      const stateless = yield* ask("POST", "/api/mcp", {
        json: modern.body,
        headers: { ...modern.headers, "mcp-session-id": session }
      })
      assert.strictEqual(stateless.status, 200)
      const elsewhere = yield* ask("POST", "/mcp", {
        json: initialize,
        headers: { "mcp-session-id": session }
      })
      assert.deepStrictEqual([elsewhere.status, elsewhere.headers.get("mcp-session-id")], [200, null])
    })
  )

  it.effect(
    "gives a call a deadline, and makes one that breaks a failed result that tells nothing of its cause",
    () =>
      Effect.gen(function* () {
        const { ask, logged } = yield* TestServer
        const batch = yield* ask("POST", "/mcp", {
          json: [
            call("wait", { millis: 60_000 }, "a"),
            call("break", {}, "b"),
            call("wait", { millis: 1 }, "c")
          ],
          headers: { "x-request-id": "of-the-break" }
        })
        assert.deepStrictEqual(
          [0, 1, 2].map((index) => [
            at(batch.json, index, "id"),
            at(batch.json, index, "result", "isError"),
            textOf(batch, index)
          ]),
          [
            ["a", true, "wait took longer than 0.3 s"],
            ["b", true, "Internal error (request of-the-break)"],
            ["c", undefined, "waited"]
          ]
        )
        assert.deepStrictEqual(waits.slice(-4), ["begin 60000", "Failure 60000", "begin 1", "Success 1"])
        const quit = yield* ask("POST", "/mcp", { json: call("quit") })
        assert.deepStrictEqual(about(quit), [
          503,
          "application/json",
          { error: "The request was interrupted; try again" }
        ])
        const line = logged().find((line) => line.includes("a secret of the server"))
        assert.include(line, "of-the-break")
      })
  )

  it.effect("bounds the bodies of all calls under way, in fair shares per user", () =>
    Effect.gen(function* () {
      const { ask, makeUser, url } = yield* TestServer
      const [greedy, other] = [yield* makeUser(), yield* makeUser()]
      const leave = new AbortController()
      const padding = "x".repeat(1_000_000)
      const held = fetch(`${url}/api/mcp`, {
        method: "POST",
        headers: { authorization: `Bearer ${greedy.key}` },
        body: JSON.stringify(call("wait", { millis: 90_003, padding })),
        signal: leave.signal
      }).then(
        () => "answered",
        () => "left"
      )
      yield* eventually(
        "begin 90003",
        Effect.sync(() => waits.includes("begin 90003"))
      )
      const measured = ({ key }: { readonly key: string }) =>
        ask("POST", "/api/mcp", { key, json: call("measure", { text: padding }) })
      assert.deepStrictEqual(about(yield* measured(greedy)), [
        503,
        "application/json",
        { error: "The requests under way are too large together; try again" }
      ])
      assert.strictEqual((yield* measured(other)).status, 200)
      leave.abort()
      assert.strictEqual(yield* Effect.promise(() => held), "left")
      yield* eventually(
        "the share is given back",
        Effect.map(measured(greedy), ({ status }) => status === 200)
      )
    })
  )

  it.effect("ends a call with its client, and with its key", () =>
    Effect.gen(function* () {
      const { ask, makeKey, url } = yield* TestServer
      const { id, key } = yield* makeKey()
      const leave = new AbortController()
      const left = fetch(`${url}/api/mcp`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}` },
        body: JSON.stringify(call("wait", { millis: 90_001 })),
        signal: leave.signal
      })
      yield* eventually(
        "begin 90001",
        Effect.sync(() => waits.includes("begin 90001"))
      )
      leave.abort()
      yield* Effect.promise(() =>
        left.then(
          () => assert.fail("it was answered"),
          () => undefined
        )
      )
      yield* eventually(
        "Failure 90001",
        Effect.sync(() => waits.includes("Failure 90001"))
      )
      const [refused] = yield* Effect.all(
        [
          ask("POST", "/api/mcp", { key, json: call("wait", { millis: 90_002 }) }),
          Effect.andThen(
            eventually(
              "begin 90002",
              Effect.sync(() => waits.includes("begin 90002"))
            ),
            ask("DELETE", `/api/v1/keys/${id}`)
          )
        ],
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(about(refused), [
        401,
        "application/json",
        { error: "Invalid or missing API key" }
      ])
      assert.include(waits, "Failure 90002")
    })
  )

  it.effect("reads a body that is large, or has many values, in a thread, and no other", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const threads: Array<unknown> = []
      const onThread = (message: unknown): void => void threads.push(message)
      subscribe("worker_threads", onThread)
      yield* Effect.addFinalizer(() => Effect.sync(() => unsubscribe("worker_threads", onThread)))
      const small = yield* ask("POST", "/mcp", { body: long(1_000_000) })
      assert.deepStrictEqual([textOf(small), threads.length], ['{"characters":1000000}', 0])
      const large = yield* ask("POST", "/mcp", { body: long(1_100_000) })
      assert.deepStrictEqual([textOf(large), threads.length], ['{"characters":1100000}', 1])
      const parts = Array.from({ length: 10_000 }, () => ({ filename: "a" }))
      const many = yield* ask("POST", "/mcp", { json: call("measure", { text: "a", parts }) })
      assert.strictEqual(textOf(many), '{"characters":1}')
      const garbled = yield* ask("POST", "/mcp", { body: long(1_100_000).slice(0, -1) })
      assert.deepStrictEqual([garbled.status, at(garbled.json, "error", "code")], [400, -32700])
      const values = yield* ask("POST", "/mcp", {
        json: call("measure", { text: "a", parts: Array(300_001).fill(0) })
      })
      assert.deepStrictEqual([values.status, at(values.json, "error", "code")], [400, -32600])
    })
  )
})
