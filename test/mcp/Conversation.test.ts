import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { makeServer } from "#streams/mcp/McpServer.ts"
import { legacyVersions } from "#streams/mcp/Protocol.ts"
import { tool } from "#streams/mcp/Tool.ts"
import {
  at,
  capabilities,
  envelope,
  modernRequest,
  request,
  say,
  type Said,
  type Sent,
  version
} from "./Asking.ts"
import { diagnosticServer } from "./DiagnosticTools.ts"

const legacy = (body: unknown, headers: Sent = {}): Promise<Said> => say(headers, JSON.stringify(body))
const modern = ({ body, headers }: ReturnType<typeof modernRequest>, changed: Sent = {}): Promise<Said> =>
  say({ ...headers, ...changed }, JSON.stringify(body))

const info = { name: "signalbox-diagnostic", title: "Diagnostic tools", version: "0.1.0" }
const code = ({ json, status }: Said) => [status, at(json, "error", "code"), at(json, "id")]

describe("legacy clients", () => {
  it.each([...legacyVersions, "2024-10-07", "2026-07-28", undefined])(
    "that ask for %s in initialize get it, or the newest one",
    async (asked) => {
      const { json, status } = await legacy(
        request("initialize", { protocolVersion: asked, capabilities: {} })
      )
      assert.deepStrictEqual(
        [status, json],
        [
          200,
          {
            jsonrpc: "2.0",
            id: 1,
            result: {
              protocolVersion: legacyVersions.some((known) => known === asked) ? asked : "2025-11-25",
              capabilities: { tools: {} },
              serverInfo: info,
              instructions: "Tools that tests call."
            }
          }
        ]
      )
    }
  )

  it.each(["", ...legacyVersions])(
    "of the header %s list and call tools without initialize",
    async (named) => {
      const headers = { "mcp-protocol-version": named, "mcp-session-id": "made up" }
      assert.deepStrictEqual((await legacy(request("ping"), headers)).json, {
        jsonrpc: "2.0",
        id: 1,
        result: {}
      })
      const { json } = await legacy(request("tools/list", {}), headers)
      assert.strictEqual(at(json, "result", "tools", 0, "name"), "test_simple_text")
      assert.deepStrictEqual(Object.keys(at(json, "result") as object), ["tools"])
      const call = await legacy(
        request("tools/call", { name: "measure", arguments: { text: "four" } }),
        headers
      )
      assert.deepStrictEqual(at(call.json, "result"), {
        content: [{ type: "text", text: '{"characters":4}' }],
        structuredContent: { characters: 4 }
      })
    }
  )

  it.each<readonly [body: unknown, status: number, code: number, id: unknown]>([
    [[], 400, -32600, null],
    ["text", 400, -32600, null],
    [7, 400, -32600, null],
    [null, 400, -32600, null],
    [{ jsonrpc: "1.0", id: 1, method: "ping" }, 400, -32600, 1],
    [{ jsonrpc: 2, id: 1, method: "ping" }, 400, -32600, 1],
    [{ jsonrpc: "2.0", id: 1 }, 400, -32600, 1],
    [{ jsonrpc: "2.0", id: 1, method: 5 }, 400, -32600, 1],
    [request("ping", undefined, null), 400, -32600, null],
    [request("ping", undefined, { a: 1 }), 400, -32600, null],
    [request("ping", undefined, [1]), 400, -32600, null],
    [request("ping", undefined, true), 400, -32600, null],
    [request("ping", undefined, 2 ** 53), 400, -32600, null],
    [request("ping", undefined, "x".repeat(1_001)), 400, -32600, null],
    [request("prompts/list"), 200, -32601, 1],
    [request("server/discover"), 200, -32601, 1],
    [request("logging/setLevel", { level: "debug" }), 200, -32601, 1],
    [request("constructor"), 200, -32601, 1],
    [{ ...request("nothing"), params: [1] }, 200, -32601, 1],
    [{ ...request("tools/list"), params: [1] }, 200, -32602, 1],
    [{ ...request("tools/call"), params: "text" }, 200, -32602, 1],
    [request("initialize", { protocolVersion: 5 }), 200, -32602, 1],
    [request("tools/list", { cursor: "2" }), 200, -32602, 1],
    [request("tools/call"), 200, -32602, 1],
    [request("tools/call", { name: 5 }), 200, -32602, 1],
    [request("tools/call", { name: "nothing" }), 200, -32602, 1],
    [request("tools/call", { name: "__proto__" }), 200, -32602, 1],
    [request("tools/call", { name: "measure", arguments: [1] }), 200, -32602, 1],
    [request("tools/call", { name: "measure", arguments: "text" }), 200, -32602, 1]
  ])("%j is %d, %d, id %j", async (body, status, expected, id) => {
    assert.deepStrictEqual(code(await legacy(body)), [status, expected, id])
  })

  it.each(["", " ", "{", '{"jsonrpc":"2.0",}', "[1,]", "\u0000", "undefined", "{'a':1}"])(
    "whose body is %j, no JSON, get 400, -32700, id null",
    async (body) => {
      assert.deepStrictEqual(code(await say({}, body)), [400, -32700, null])
    }
  )

  it("whose body is not UTF-8, nests too deeply or has too many values get 400", async () => {
    assert.deepStrictEqual(code(await say({}, Uint8Array.of(0x22, 0xff, 0x22))), [400, -32700, null])
    const deep = `{"jsonrpc":"2.0","id":1,"method":"ping","params":${"[".repeat(2_000)}${"]".repeat(2_000)}}`
    assert.deepStrictEqual(code(await say({}, deep)), [400, -32600, null])
    assert.deepStrictEqual(code(await say({}, `[${"0,".repeat(300_001)}0]`)), [400, -32600, null])
  })

  it.each(["text", "", 0, -1, 1.5, 2 ** 53 - 1, "1", "x".repeat(1_000)])("get the id %j back", async (id) => {
    assert.deepStrictEqual((await legacy(request("ping", undefined, id))).json, {
      jsonrpc: "2.0",
      id,
      result: {}
    })
  })

  it.each([
    { jsonrpc: "2.0", method: "notifications/initialized" },
    { jsonrpc: "2.0", method: "notifications/cancelled", params: [1] },
    { jsonrpc: "2.0", method: "tools/call", params: { name: "break" } },
    { jsonrpc: "2.0", id: 1, result: {} },
    { jsonrpc: "2.0", id: null, error: { code: 1, message: "no" } },
    [
      { jsonrpc: "2.0", method: "a" },
      { jsonrpc: "2.0", id: 4, result: {} }
    ]
  ])("that only tell something, such as %j, get 202 and nothing", async (body) => {
    assert.deepStrictEqual(await legacy(body), { status: 202, json: undefined })
  })

  it("send batches of 1 to 100, answered in order, whatever is in them", async () => {
    const mixed = [
      request("ping", {}, "a"),
      { jsonrpc: "2.0", method: "notifications/initialized" },
      request("tools/call", { name: "measure", arguments: { text: "one" } }, 2),
      5,
      request("nothing", {}, 4),
      { app: "plain" },
      request("initialize", { protocolVersion: "2024-11-05" }, 5)
    ]
    const { json, status } = await legacy(mixed)
    assert.strictEqual(status, 200)
    const all = json as ReadonlyArray<unknown>
    assert.deepStrictEqual(
      all.map((reply) => [at(reply, "id"), at(reply, "error", "code")]),
      [
        ["a", undefined],
        [2, undefined],
        [null, -32600],
        [4, -32601],
        [null, -32600],
        [5, undefined]
      ]
    )
    const many = (count: number) => Array.from({ length: count }, (_, index) => request("ping", {}, index))
    assert.deepStrictEqual(
      ((await legacy(many(100))).json as ReadonlyArray<unknown>).map((reply) => at(reply, "id")),
      Array.from({ length: 100 }, (_, index) => index)
    )
    assert.deepStrictEqual((await legacy(many(1))).json, [{ jsonrpc: "2.0", id: 0, result: {} }])
    assert.deepStrictEqual(code(await legacy(many(101))), [400, -32600, null])
  })

  it("send no message at all: the body is the room's", async () => {
    assert.deepStrictEqual(await legacy({ app: "a", message: "b" }), {
      status: "plain",
      json: { app: "a", message: "b" }
    })
    assert.strictEqual((await say({}, '{"__proto__":{"jsonrpc":"2.0"}}')).status, "plain")
  })
})

describe("modern clients", () => {
  const meta = { "io.modelcontextprotocol/serverInfo": info }

  it("discover versions and capabilities, list and call tools; every result is complete", async () => {
    const cached = { ttlMs: 3_600_000, cacheScope: "public", resultType: "complete", _meta: meta }
    const discovered = await modern(modernRequest("server/discover"))
    assert.deepStrictEqual(
      [discovered.status, at(discovered.json, "result")],
      [
        200,
        {
          supportedVersions: ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"],
          capabilities: { tools: {} },
          instructions: "Tools that tests call.",
          ...cached
        }
      ]
    )
    const { json } = await modern(modernRequest("tools/list"))
    const { tools, ...rest } = at(json, "result") as { readonly tools: ReadonlyArray<unknown> }
    assert.deepStrictEqual([rest, tools.length], [cached, diagnosticServer.tools.size])
    const call = await modern(modernRequest("tools/call", { name: "measure", arguments: { text: "four" } }))
    assert.deepStrictEqual(at(call.json, "result"), {
      content: [{ type: "text", text: '{"characters":4}' }],
      structuredContent: { characters: 4 },
      resultType: "complete",
      _meta: meta
    })
  })

  it.each<
    readonly [
      why: string,
      asked: ReturnType<typeof modernRequest>,
      headers: Sent,
      code: number,
      status: number
    ]
  >([
    ["no version in the header", modernRequest("tools/list"), { "mcp-protocol-version": "" }, -32020, 400],
    [
      "another version there",
      modernRequest("tools/list"),
      { "mcp-protocol-version": "2025-11-25" },
      -32020,
      400
    ],
    ["no method in the header", modernRequest("tools/list"), { "mcp-method": "" }, -32020, 400],
    ["another method there", modernRequest("tools/list"), { "mcp-method": "TOOLS/LIST" }, -32020, 400],
    ["no name in the header", modernRequest("tools/call", { name: "who" }), { "mcp-name": "" }, -32020, 400],
    [
      "another name there",
      modernRequest("tools/call", { name: "who" }),
      { "mcp-name": "measure" },
      -32020,
      400
    ],
    [
      "a name in broken base64",
      modernRequest("tools/call", { name: "who" }),
      { "mcp-name": "=?base64?d2hv!?=" },
      -32020,
      400
    ],
    [
      "unlike parameter",
      modernRequest("tools/call", { name: "test_custom_header", arguments: { region: "a" } }),
      { "mcp-param-region": "b" },
      -32020,
      400
    ],
    [
      "missing parameter",
      modernRequest("tools/call", { name: "test_custom_header", arguments: { region: "a" } }),
      {},
      -32020,
      400
    ],
    [
      "made up parameter",
      modernRequest("tools/call", { name: "test_custom_header" }),
      { "mcp-param-region": "b" },
      -32020,
      400
    ],
    ["initialize", modernRequest("initialize"), {}, -32601, 404],
    ["ping", modernRequest("ping"), {}, -32601, 404],
    ["an unknown method", modernRequest("prompts/list"), {}, -32601, 404],
    ["an unknown tool", modernRequest("tools/call", { name: "nothing" }), {}, -32602, 200],
    ["a page", modernRequest("tools/list", { cursor: "2" }), {}, -32602, 200],
    [
      "a missing capability",
      modernRequest("tools/call", { name: "test_missing_capability" }),
      {},
      -32021,
      400
    ]
  ])("with %s are refused", async (_, asked, headers, expected, status) => {
    assert.deepStrictEqual(code(await modern(asked, headers)), [status, expected, 1])
  })

  it.each<readonly [why: string, meta: unknown, headers: Sent, code: number]>([
    ["no _meta", undefined, { "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/list" }, -32602],
    ["no version in it", { [capabilities]: {} }, { "mcp-protocol-version": "2026-07-28" }, -32602],
    ["a version that is no text", { [version]: 5, [capabilities]: {} }, {}, -32602],
    ["null for a version", { [version]: null, [capabilities]: {} }, {}, -32602],
    ["no capabilities", { [version]: "2026-07-28" }, { "mcp-protocol-version": "2026-07-28" }, -32602],
    [
      "a list of capabilities",
      { ...envelope, [capabilities]: [] },
      { "mcp-protocol-version": "2026-07-28" },
      -32602
    ],
    [
      "an unknown version",
      { ...envelope, [version]: "1999-01-01" },
      { "mcp-protocol-version": "1999-01-01" },
      -32022
    ],
    ["an unknown version in the header alone", undefined, { "mcp-protocol-version": "1999-01-01" }, -32022],
    [
      "two versions",
      { ...envelope, [version]: "1999-01-01" },
      { "mcp-protocol-version": "2026-07-28" },
      -32020
    ]
  ])("with %s are refused with 400", async (_, _meta, headers, expected) => {
    const said = await legacy(request("tools/list", _meta === undefined ? {} : { _meta }), headers)
    assert.deepStrictEqual(code(said), [400, expected, 1])
  })

  it("are told the versions, and the capability, that are missing", async () => {
    const headers = { "mcp-protocol-version": "1999-01-01" }
    assert.deepStrictEqual(at((await legacy(request("ping", {}), headers)).json, "error", "data"), {
      supported: ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"],
      requested: "1999-01-01"
    })
    const call = await modern(modernRequest("tools/call", { name: "test_missing_capability" }))
    assert.deepStrictEqual(at(call.json, "error", "data"), { requiredCapabilities: { sampling: {} } })
  })

  it("write a name in base64 where a header cannot hold it, and may have spaces around it", async () => {
    const asked = modernRequest("tools/call", { name: "measure", arguments: { text: "a" } })
    for (const name of ["=?base64?bWVhc3VyZQ==?=", "  measure\t"])
      assert.strictEqual((await modern(asked, { "mcp-name": name })).status, 200, name)
    const region = modernRequest("tools/call", {
      name: "test_custom_header",
      arguments: { region: "Zürich" }
    })
    const said = await modern(region, { "mcp-param-region": "=?base64?WsO8cmljaA==?=" })
    assert.strictEqual(at(said.json, "result", "content", 0, "text"), "Zürich")
  })

  it("send one message: batches are refused, notifications taken", async () => {
    const { body, headers } = modernRequest("tools/list")
    assert.deepStrictEqual(code(await legacy([body], headers)), [400, -32600, null])
    assert.deepStrictEqual(code(await legacy([request("ping"), body])), [400, -32600, null])
    const told = { jsonrpc: "2.0", method: "notifications/cancelled", params: { _meta: envelope } }
    assert.deepStrictEqual(await legacy(told, headers), { status: 202, json: undefined })
  })
})

describe("arguments", () => {
  const texts = async (name: string, args: unknown): Promise<ReadonlyArray<unknown>> => {
    const { json, status } = await legacy(request("tools/call", { name, arguments: args }))
    return [status, at(json, "result", "isError"), at(json, "result", "content", 0, "text")]
  }

  it.each<readonly [args: unknown, text: string]>([
    [{}, "text: is required"],
    [undefined, "text: is required"],
    [{ text: 5 }, "text: expected text"],
    [{ text: "a", times: 1.5 }, "times: expected an integer"],
    [{ text: "a", parts: [{}] }, "parts[0].filename: is required"],
    [{ text: "a", parts: [{ filename: "b", kind: "c" }] }, 'parts[0].kind: expected "text" | "file"'],
    [{ text: "\ud800" }, "text: expected well-formed Unicode, not half of a surrogate pair"],
    [{ text: "a\u0000" }, "text: expected text without NUL characters"]
  ])("%j are a failed result that names the field", async (args, text) => {
    assert.deepStrictEqual(await texts("measure", args), [200, true, text])
  })

  it("that are not known are ignored; a handler's failure is a failed result with its text alone", async () => {
    assert.deepStrictEqual(await texts("measure", { text: "a", more: 1 }), [
      200,
      undefined,
      '{"characters":1}'
    ])
    assert.deepStrictEqual(await texts("test_error_handling", {}), [
      200,
      true,
      "This tool intentionally returns an error for testing"
    ])
  })

  it("may be right, and the result a failed one with parts and structure all the same", async () => {
    const half = tool({
      name: "half",
      title: "Half",
      description: "Does half of it",
      annotations: {},
      input: Schema.Struct({ isTold: Schema.optionalKey(Schema.Boolean) }),
      output: Schema.Struct({ done: Schema.Int }),
      handle: ({ isTold = false }) =>
        Effect.succeed({ isError: true, ...(isTold ? { structured: { done: 1 } } : {}) })
    })
    const server = makeServer({ ...info, instructions: "", tools: [half] })
    const result = async (args: object) => {
      const called = request("tools/call", { name: "half", arguments: args })
      return at((await say({}, JSON.stringify(called), server)).json, "result")
    }
    assert.deepStrictEqual(await result({ isTold: true }), {
      content: [{ type: "text", text: '{"done":1}' }],
      structuredContent: { done: 1 },
      isError: true
    })
    assert.deepStrictEqual(await result({}), { content: [], isError: true })
  })

  it("have a JSON Schema made of the tool's own, as its result", () => {
    const listed = diagnosticServer.tools.get("measure")?.listed
    assert.deepStrictEqual(listed, {
      name: "measure",
      title: "Length",
      description: "Measures a text",
      inputSchema: {
        type: "object",
        properties: {
          text: { type: "string" },
          times: { type: "integer", minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER },
          parts: {
            type: "array",
            items: {
              type: "object",
              properties: { filename: { type: "string" }, kind: { type: "string", enum: ["text", "file"] } },
              required: ["filename"],
              additionalProperties: true
            }
          }
        },
        required: ["text"],
        additionalProperties: true
      },
      outputSchema: {
        type: "object",
        properties: {
          characters: { type: "integer", minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER }
        },
        required: ["characters"],
        additionalProperties: true
      },
      annotations: { readOnlyHint: true, openWorldHint: false }
    })
  })

  it("refer to another schema only where one is within itself", () => {
    interface Tree {
      readonly children: ReadonlyArray<Tree>
    }
    const Tree = Schema.Struct({
      children: Schema.Array(Schema.suspend((): Schema.Codec<Tree> => Tree))
    }).annotate({ identifier: "Tree" })
    const { listed } = tool({
      name: "plant",
      title: "Plant",
      description: "Plants a tree",
      annotations: {},
      input: Schema.Struct({ tree: Tree }),
      handle: () => Effect.succeed({})
    })
    const items = at(listed, "inputSchema", "properties", "tree", "properties", "children", "items")
    assert.deepStrictEqual(items, { $ref: "#/$defs/Tree" })
    assert.strictEqual(at(listed, "inputSchema", "$defs", "Tree", "type"), "object")
  })

  it("are refused in the words of the room, which also says what versions it speaks", async () => {
    const Named = Schema.Struct({ ref: Schema.String }).annotate({ identifier: "Named" })
    const click = tool({
      name: "click",
      title: "Click",
      description: "Clicks",
      annotations: {},
      input: Named,
      handle: () => Effect.succeed({})
    })
    const server = makeServer({
      ...info,
      instructions: "",
      tools: [click],
      legacy: ["2024-11-05"],
      modern: [],
      invalidArguments: (name, { field, text }) => `Invalid arguments for tool "${name}": ${field}: ${text}`
    })
    assert.strictEqual(at(click.listed, "inputSchema", "type"), "object")
    const called = await say({}, JSON.stringify(request("tools/call", { name: "click" })), server)
    assert.strictEqual(
      at(called.json, "result", "content", 0, "text"),
      'Invalid arguments for tool "click": ref: is required'
    )
    const { body, headers } = modernRequest("server/discover")
    assert.deepStrictEqual(at((await say(headers, JSON.stringify(body), server)).json, "error", "data"), {
      supported: ["2024-11-05"],
      requested: "2026-07-28"
    })
    assert.throws(() => makeServer({ ...info, instructions: "", tools: [click, click] }), /names in common/)
  })
})
