import { assert, describe, it } from "@effect/vitest"
import { legacyVersions, modernVersions } from "#streams/mcp/Protocol.ts"
import { at, modernRequest, request, say, type Sent } from "./Asking.ts"
import { diagnosticServer } from "./DiagnosticTools.ts"

/** The methods of all versions, those of a server's own requests too: the schemas of the official clients have no others. */
const requests = [
  "initialize",
  "ping",
  "tools/list",
  "tools/call",
  "prompts/list",
  "prompts/get",
  "resources/list",
  "resources/read",
  "resources/templates/list",
  "resources/subscribe",
  "resources/unsubscribe",
  "completion/complete",
  "logging/setLevel",
  "tasks/get",
  "tasks/list",
  "tasks/result",
  "tasks/cancel",
  "server/discover",
  "subscriptions/listen",
  "sampling/createMessage",
  "elicitation/create",
  "roots/list"
]
const notifications = [
  "notifications/initialized",
  "notifications/cancelled",
  "notifications/progress",
  "notifications/message",
  "notifications/tools/list_changed",
  "notifications/prompts/list_changed",
  "notifications/resources/list_changed",
  "notifications/resources/updated",
  "notifications/roots/list_changed",
  "notifications/elicitation/complete",
  "notifications/subscriptions/acknowledged",
  "notifications/tasks/status"
]

interface Era {
  readonly name: string
  readonly served: ReadonlyArray<string>
  /** the status of a method that is not found */
  readonly unknown: number
  readonly asked: (method: string) => { readonly headers: Sent; readonly body: object }
}

const params = { name: "who" }

const eras: ReadonlyArray<Era> = [
  ...legacyVersions.map((name): Era => ({
    name,
    served: ["initialize", "ping", "tools/list", "tools/call"],
    unknown: 200,
    asked: (method) => ({ headers: { "mcp-protocol-version": name }, body: request(method, params) })
  })),
  ...modernVersions.map((name): Era => ({
    name,
    served: ["server/discover", "tools/list", "tools/call"],
    unknown: 404,
    asked: (method) => modernRequest(method, params)
  }))
]

describe("every method", () => {
  it.each(eras)(
    "is served without any before it, or is not found, in $name",
    async ({ asked, served, unknown }) => {
      for (const method of [...requests, ...notifications]) {
        const { body, headers } = asked(method)
        const { json, status } = await say(headers, JSON.stringify(body))
        const expected = served.includes(method) ? [200, undefined] : [unknown, -32601]
        assert.deepStrictEqual([status, at(json, "error", "code")], expected, method)
      }
    }
  )

  it.each(eras)("that comes without an id is taken, and not done, in $name", async ({ asked }) => {
    for (const method of [...requests, ...notifications]) {
      const { body, headers } = asked(method)
      const said = await say(headers, JSON.stringify({ ...body, id: undefined }))
      assert.deepStrictEqual(said, { status: 202, json: undefined }, method)
    }
  })
})

describe("a batch of 100", () => {
  const ids = [0, -7, 1.5, 2 ** 53 - 1, "", "a", "0", "null", "é".repeat(1_000), "twice", "twice"]
  const call = (name: string, args: object) => (id: unknown) =>
    request("tools/call", { name, arguments: args }, id)
  const failed = "a failed result"
  /** a message with this id, and its reply; undefined: there is none */
  const kinds: ReadonlyArray<readonly [message: (id: unknown) => unknown, reply: unknown]> = [
    [(id) => request("ping", {}, id), "a result"],
    [(id) => request("initialize", { protocolVersion: "2025-03-26" }, id), "a result"],
    [(id) => request("tools/list", undefined, id), "a result"],
    [call("measure", { text: "four" }), "a result"],
    [call("measure", { text: 4 }), failed],
    [call("test_error_handling", {}), failed],
    [call("nothing", {}), -32602],
    [(id) => request("tools/call", [] as object, id), -32602],
    [(id) => request("prompts/list", {}, id), -32601],
    [(id) => request("server/discover", {}, id), -32601],
    [(id) => ({ jsonrpc: "1.0", id, method: "ping" }), -32600],
    [(id) => ({ jsonrpc: "2.0", id, method: 5 }), -32600],
    [() => ({ jsonrpc: "2.0", method: "notifications/initialized" }), undefined],
    [() => ({ jsonrpc: "2.0", method: "tools/call", params: { name: "break" } }), undefined],
    [(id) => ({ jsonrpc: "2.0", id, result: {} }), undefined]
  ]
  /** Messages whose id is none are answered with null. */
  const without = [
    5,
    null,
    "text",
    [],
    {},
    [request("ping")],
    request("ping", {}, true),
    request("ping", {}, {})
  ]

  it("of every kind and all kinds of ids is answered message by message, in order", async () => {
    const all = Array.from({ length: 100 }, (_, index) => {
      if (index % 12 === 11) return { message: without[Math.floor(index / 12)], id: null, reply: -32600 }
      const id = ids[index % ids.length]
      const [message, reply] = kinds[index % kinds.length] ?? []
      return { message: message?.(id), id, reply }
    })
    const { json, status } = await say({}, JSON.stringify(all.map(({ message }) => message)))
    assert.strictEqual(status, 200)
    const replies = (json as ReadonlyArray<unknown>).map((reply) => [
      at(reply, "id"),
      at(reply, "error", "code") ?? (at(reply, "result", "isError") === true ? failed : "a result")
    ])
    assert.deepStrictEqual(
      replies,
      all.flatMap(({ id, reply }) => (reply === undefined ? [] : [[id, reply]]))
    )
    assert.strictEqual(new Set(all.map(({ reply }) => reply)).size, 6)
  })
})

describe("messages in the wrong order", () => {
  const initialize = request("initialize", { protocolVersion: "2025-06-18", capabilities: {} })
  const initialized = { jsonrpc: "2.0", method: "notifications/initialized" }
  const list = request("tools/list")
  const call = request("tools/call", { name: "measure", arguments: { text: "four" } })
  const response = { jsonrpc: "2.0", id: 7, result: {} }

  it.each([
    [[call, list, initialize]],
    [[initialized, call, initialize, initialized, list]],
    [[initialize, initialize, call, initialized, initialized, list]],
    [[response, initialized, response, list, initialize, call]]
  ])("are answered as in the right one", async (messages) => {
    for (const message of messages) {
      const said = await say({}, JSON.stringify(message))
      if (message === initialized || message === response) {
        assert.strictEqual(said.status, 202)
        continue
      }
      assert.strictEqual(said.status, 200)
      if (message === initialize) assert.strictEqual(at(said.json, "result", "protocolVersion"), "2025-06-18")
      if (message === list)
        assert.lengthOf(
          at(said.json, "result", "tools") as ReadonlyArray<unknown>,
          diagnosticServer.tools.size
        )
      if (message === call)
        assert.deepStrictEqual(at(said.json, "result", "structuredContent"), { characters: 4 })
    }
  })
})
