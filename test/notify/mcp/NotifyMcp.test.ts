import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { type Asked, TestServer } from "#test/harness/TestServer.ts"
import { at, modernRequest, request } from "#test/mcp/Asking.ts"
import { uploaded } from "../attachments/AttachmentStage.ts"
import { contentsOf, unusedOf } from "../SentFiles.ts"
import { api, faultOf, invalidKey, live, makeStage, otherKind, type SentBody, subscribe } from "../Stage.ts"

const base = { app: "agent", message: "done" }
const callOf = (args: unknown, name = "send_notification", id: unknown = 1) =>
  request("tools/call", { name, arguments: args }, id)

const ask = (key: string, json: unknown, more: Omit<Asked, "json" | "key"> = {}) =>
  Effect.flatMap(TestServer, (server) => server.ask("POST", "/mcp", { key, json, ...more }))

/** The result of a call: its structured content, or the text of its failure. */
const resultOf = (json: unknown): unknown =>
  at(json, "result", "isError") === true
    ? at(json, "result", "content", 0, "text")
    : at(json, "result", "structuredContent")
const called = (key: string, args: unknown, headers: Readonly<Record<string, string>> = {}) =>
  Effect.map(ask(key, callOf(args), { headers }), ({ json }) => resultOf(json))

layer(TestServer.shared, live)("the tools of notifications", (it) => {
  it.effect("are two, with a title, annotations and both schemas, in both eras at both addresses", () =>
    Effect.gen(function* () {
      const server = yield* TestServer
      const stage = yield* makeStage
      const key = yield* stage.projectKey()
      const list = modernRequest("tools/list")
      for (const path of ["/mcp", `${api}/mcp`]) {
        const legacy = yield* server.ask("POST", path, { key, json: request("tools/list") })
        const modern = yield* server.ask("POST", path, { key, json: list.body, headers: list.headers })
        const tools = at(legacy.json, "result", "tools") as ReadonlyArray<unknown>
        assert.deepStrictEqual(at(modern.json, "result", "tools"), tools)
        assert.deepInclude(at(modern.json, "result"), { ttlMs: 3_600_000, cacheScope: "public" })
        assert.deepStrictEqual(
          tools.map((tool) => [at(tool, "name"), at(tool, "title"), at(tool, "annotations")]),
          [
            [
              "send_notification",
              "Send a notification",
              { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: true }
            ],
            [
              "list_projects",
              "List projects",
              { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false }
            ]
          ]
        )
        const [send, projects] = tools
        assert.deepStrictEqual(at(send, "inputSchema", "required"), ["app", "message"])
        const names = "app message title url project body priority attachments attachment_ids"
        assert.deepStrictEqual(Object.keys(at(send, "inputSchema", "properties") as object), names.split(" "))
        assert.deepStrictEqual(at(send, "outputSchema", "required"), ["ok", "recipients", "messages"])
        assert.deepStrictEqual(at(projects, "inputSchema"), { type: "object" })
        assert.deepStrictEqual(at(projects, "outputSchema", "required"), ["projects", "key"])
      }
      const hello = yield* ask(key, request("initialize", { protocolVersion: "2025-06-18" }))
      assert.deepInclude(at(hello.json, "result"), {
        protocolVersion: "2025-06-18",
        capabilities: { tools: {} }
      })
      assert.strictEqual(at(hello.json, "result", "serverInfo", "name"), "signalbox-notify")
      const discover = modernRequest("server/discover")
      const found = yield* ask(key, discover.body, { headers: discover.headers })
      assert.deepStrictEqual(at(found.json, "result", "supportedVersions"), [
        "2026-07-28",
        "2025-11-25",
        "2025-06-18",
        "2025-03-26",
        "2024-11-05"
      ])
    })
  )

  it.effect("send what REST sends, with files of text and of bytes, and answer it twice", () =>
    Effect.gen(function* () {
      const stage = yield* makeStage
      const one = yield* stage.project({ slug: "one" })
      yield* stage.project({ slug: "two" })
      yield* subscribe([one], { channels: 2 })
      const key = yield* stage.projectKey()
      const upload = yield* uploaded(key)
      const args = {
        ...base,
        title: "Title",
        url: "https://example.com/",
        project: ["one"],
        body: { a: [1] },
        priority: "high",
        attachments: [
          { filename: "a b.log", text: "line\u0000 €" },
          { filename: "b", content_base64: "AAEC\r\n/w==", content_type: "image/png" },
          { filename: "c", content_base64: "" }
        ],
        attachment_ids: [upload.id],
        unknown: 1
      }
      const { json } = yield* ask(key, callOf(args))
      const sent = at(json, "result", "structuredContent") as SentBody
      assert.strictEqual(at(json, "result", "content", 0, "text"), JSON.stringify(sent))
      const [message, ...others] = sent.messages
      assert.deepStrictEqual([sent.ok, sent.recipients, others.length], [true, 1, 0])
      assert.deepStrictEqual(
        (yield* contentsOf(message)).map(({ bytes, filename }) => [filename, bytes.toString("latin1")]),
        [
          [upload.filename, "hello"],
          ["a_b.log", Buffer.from("line\u0000 €").toString("latin1")],
          ["b", "\u0000\u0001\u0002\u00ff"],
          ["c", ""]
        ]
      )
      const { ask: rest } = yield* TestServer
      const shown = (yield* rest("GET", `${api}/messages/${message?.id}`, { key: stage.key })).json
      assert.deepInclude(shown, { ...base, title: "Title", url: "https://example.com/", priority: "high" })
    })
  )

  it.effect("list what the key covers, as GET /projects does", () =>
    Effect.gen(function* () {
      const { ask: rest } = yield* TestServer
      const stage = yield* makeStage
      yield* stage.project({ slug: "one" })
      yield* stage.project({ slug: "two" })
      const key = yield* stage.projectKey({ projects: ["two"], name: "narrow" })
      const { json } = yield* rest("GET", `${api}/projects`, { key })
      for (const args of [{}, undefined, { unknown: 1 }]) {
        const listed = yield* ask(key, callOf(args, "list_projects"))
        assert.deepStrictEqual(at(listed.json, "result", "structuredContent"), json)
      }
      assert.strictEqual(at(json, "key", "name"), "narrow")
    })
  )

  it.effect("refuse files that are none by name, and leave none of a call that fails", () =>
    Effect.gen(function* () {
      const stage = yield* makeStage
      yield* stage.project({ slug: "one" })
      const key = yield* stage.projectKey()
      const file = { filename: "a", text: "b" }
      const refused = (attachments: unknown, more: object = {}) =>
        called(key, { ...base, attachments, ...more })
      for (const [attachments, fault] of [
        ["a", "attachments: expected a list of files"],
        [Array.from({ length: 21 }, () => file), "attachments: at most 20"],
        [[file, "a"], "attachments[1]: expected an object"],
        [[{ text: "b" }], "attachments[0].filename: is required"],
        [[{ filename: "", text: "b" }], "attachments[0].filename: expected text of 1 to 255 characters"],
        [[{ filename: 1, text: "b" }], "attachments[0].filename: expected text of 1 to 255 characters"],
        [[{ ...file, content_type: 1 }], "attachments[0].content_type: expected text of 1 to 255 characters"],
        [[{ filename: "a" }], "attachments[0]: expected either text or content_base64"],
        [[{ ...file, content_base64: "" }], "attachments[0]: expected either text or content_base64"],
        [[{ filename: "a", text: null }], "attachments[0]: expected either text or content_base64"],
        [[{ filename: "a", text: 1 }], "attachments[0].text: expected text"],
        [
          [{ filename: "a", text: "\ud800" }],
          "attachments[0].text: expected well-formed Unicode, not half of a surrogate pair"
        ],
        ...["A", "A===", "AB=", "ABC==", "A=BC", "AB_C", "é", 1].map(
          (content_base64) =>
            [[{ filename: "a", content_base64 }], "attachments[0].content_base64: expected base64"] as const
        )
      ] as const)
        assert.strictEqual(yield* refused(attachments), fault)
      const twenty = Array.from({ length: 20 }, (_, index) => `att_${index}`)
      assert.strictEqual(yield* refused([file], { attachment_ids: twenty }), "attachments: at most 20")
      assert.strictEqual(yield* refused([file], { project: "none" }), "project: not found")
      assert.strictEqual(
        yield* refused([file], { attachment_ids: ["att_none"] }),
        "attachment_ids[0]: no unused upload of this account"
      )
      assert.strictEqual(yield* unusedOf(stage.userId), 0)
      for (const arguments_ of [[], "a", 1]) {
        const { json } = yield* ask(key, callOf(arguments_))
        assert.strictEqual(at(json, "error", "code"), -32602)
      }
    })
  )

  it.effect("count each send in the key's minute, one in a batch too, and beside it the request", () =>
    Effect.gen(function* () {
      const stage = yield* makeStage
      yield* stage.project()
      const key = yield* stage.projectKey({ rateLimitPerMinute: 3 })
      const batch = yield* ask(key, [
        callOf(base, "send_notification", "a"),
        callOf({}, "list_projects", "b"),
        callOf({ app: "a" }, "send_notification", "c"),
        request("ping", {}, "d"),
        { jsonrpc: "2.0", method: "notifications/initialized" },
        callOf(base, "send_notification", "e"),
        callOf(base, "send_notification", "f")
      ])
      const refusal = /^Sends are limited to 3 in 60 s; try again in \d+ s$/
      assert.strictEqual(batch.status, 200)
      assert.deepStrictEqual(
        [0, 1, 2, 3, 4, 5].map((index) => at(batch.json, index, "id")),
        ["a", "b", "c", "d", "e", "f"]
      )
      assert.strictEqual(resultOf(at(batch.json, 2)), "message: is required")
      assert.isTrue(at(resultOf(at(batch.json, 4)), "ok"))
      assert.match(String(resultOf(at(batch.json, 5))), refusal)
      assert.notStrictEqual(batch.headers.get("ratelimit-limit"), "3")
      const plain = yield* ask(key, base)
      assert.strictEqual(plain.status, 429)
      assert.match(String(faultOf(plain)[1]), refusal)
      assert.match(plain.headers.get("retry-after") ?? "", /^\d+$/)
      assert.strictEqual(plain.headers.get("ratelimit-limit"), "3")
      const { ask: rest } = yield* TestServer
      assert.strictEqual((yield* rest("POST", `${api}/messages`, { key, json: base })).status, 429)
      // The request itself counts against the general rate, which is not used up.
      assert.strictEqual((yield* ask(key, request("ping"))).status, 200)
    })
  )

  it.effect("take an Idempotency-Key for a call that is alone, and for a plain body", () =>
    Effect.gen(function* () {
      const { ask: rest } = yield* TestServer
      const stage = yield* makeStage
      yield* stage.project()
      const key = yield* stage.projectKey()
      const headers = { "idempotency-key": "once" }
      const args = { ...base, attachments: [{ filename: "a", text: "same" }] }
      const first = yield* ask(key, callOf(args), { headers })
      const again = yield* ask(key, callOf(args), { headers })
      assert.deepStrictEqual(resultOf(again.json), resultOf(first.json))
      assert.deepStrictEqual(
        [first, again].map((answer) => answer.headers.get("idempotent-replay")),
        [null, "true"]
      )
      assert.strictEqual(yield* unusedOf(stage.userId), 0)
      const used = "This Idempotency-Key was used for another request"
      assert.strictEqual(yield* called(key, base, headers), used)
      assert.deepStrictEqual(faultOf(yield* ask(key, base, { headers })), [409, used])
      assert.strictEqual(
        yield* called(key, base, { "idempotency-key": "é" }),
        "Idempotency-Key: expected 1 to 255 characters of ASCII"
      )
      const batch = yield* ask(key, [callOf(args), callOf(args)], { headers })
      const ids = [0, 1].map((index) => at(resultOf(at(batch.json, index)), "messages", 0, "id"))
      assert.strictEqual(new Set([...ids, at(resultOf(first.json), "messages", 0, "id")]).size, 3)
      // One key is one request, whichever way it comes.
      const plain = { "idempotency-key": "plain" }
      const sent = yield* rest("POST", `${api}/messages`, { key, json: base, headers: plain })
      const replay = yield* ask(key, { ...base, unknown: 1 }, { headers: plain })
      assert.deepStrictEqual(
        [replay.status, replay.json, replay.headers.get("idempotent-replay")],
        [201, sent.json, "true"]
      )
    })
  )

  it.effect("take a plain body as REST does", () =>
    Effect.gen(function* () {
      const { ask: rest } = yield* TestServer
      const stage = yield* makeStage
      yield* stage.project({ slug: "one" })
      const key = yield* stage.projectKey({ rateLimitPerMinute: 6_000 })
      const upload = yield* uploaded(key)
      const sent = yield* ask(key, { ...base, body: "b", attachments: [upload.id], bodyFormat: "log" })
      assert.strictEqual(sent.status, 201)
      assert.strictEqual((sent.json as SentBody).messages[0]?.attachments, 1)
      const typed = (type: string) => ({ headers: { "content-type": type } })
      for (const [asked, status] of [
        [{ json: {} }, 400],
        [{ json: { ...base, project: "none" } }, 404],
        [{ json: { ...base, attachments: ["att_none"] } }, 400]
      ] as const) {
        const [plain, expected] = [
          yield* rest("POST", "/mcp", { key, ...asked }),
          yield* rest("POST", `${api}/messages`, { key, ...asked })
        ]
        assert.deepStrictEqual([plain.status, plain.json], [status, expected.json])
        for (const name of ["content-type", "ratelimit-limit", "retry-after"])
          assert.strictEqual(plain.headers.get(name), expected.headers.get(name), name)
      }
      const form = yield* ask(key, base, typed("application/x-www-form-urlencoded"))
      assert.deepStrictEqual(faultOf(form), [415, "Content-Type must be application/json"])
    })
  )

  it.effect("are for project keys, for POST, and for pages that may ask", () =>
    Effect.gen(function* () {
      const { ask: rest, port } = yield* TestServer
      const stage = yield* makeStage
      const key = yield* stage.projectKey()
      for (const method of ["GET", "DELETE"]) {
        const refused = yield* rest(method, "/mcp", { key: "" })
        assert.deepStrictEqual([refused.status, refused.headers.get("allow")], [405, "POST"])
      }
      assert.deepStrictEqual(faultOf(yield* ask(stage.key, request("ping"))), [401, otherKind])
      assert.deepStrictEqual(faultOf(yield* ask("prj_none", request("ping"))), [401, invalidKey])
      const from = (origin: string) => ask(key, request("ping"), { headers: { origin } })
      assert.strictEqual((yield* from("https://evil.example")).status, 403)
      assert.strictEqual((yield* from(`http://localhost:${port}`)).status, 200)
      const ignored = { accept: "text/event-stream", "mcp-session-id": "any" }
      const pong = yield* ask(key, request("ping"), { headers: ignored })
      assert.deepStrictEqual([pong.status, at(pong.json, "result")], [200, {}])
    })
  )
})
