import { assert, describe, it } from "@effect/vitest"
import { codes, legacyVersions } from "#streams/mcp/Protocol.ts"
import { seededRandom } from "#test/harness/SeededRandom.ts"
import { at, capabilities, modernRequest, say, type Said, type Sent, version } from "./Asking.ts"

/** Messages that no client should send, made at random from a seed: every one gets a decided answer. */

const methods = [
  "initialize",
  "ping",
  "tools/list",
  "tools/call",
  "server/discover",
  "notifications/initialized",
  "notifications/cancelled",
  "prompts/list",
  "resources/read",
  "subscriptions/listen",
  "logging/setLevel",
  "",
  "constructor",
  "TOOLS/LIST",
  5,
  null,
  {},
  undefined
]
const values = [
  undefined,
  null,
  true,
  0,
  -1,
  1.5,
  1e300,
  "",
  "text",
  "\ud800",
  "\u0000",
  [],
  [1],
  {},
  { a: { b: [{}] } },
  "x".repeat(5_000)
]
const ids = [1, "a", 0, -7, 1.5, "", 2 ** 60, null, true, [], {}, undefined, "y".repeat(2_000)]
const versions = [...legacyVersions, "2026-07-28", "1999-01-01", "", undefined, 5, null, {}]
const tools = [
  "measure",
  "who",
  "test_custom_header",
  "test_missing_capability",
  "test_error_handling",
  "nothing",
  "__proto__",
  7,
  undefined
]

type Pick = <A>(from: ReadonlyArray<A>) => A | undefined

const without = (record: Record<string, unknown>): object =>
  Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined))

const paramsOf = (pick: Pick): unknown => {
  if (pick([1, 2, 3, 4]) === 1) return pick(values)
  const meta = pick([
    undefined,
    without({ [version]: pick(versions), [capabilities]: pick([{}, { sampling: {} }, undefined, [], 5]) }),
    pick(values)
  ])
  return without({
    _meta: meta,
    name: pick(tools),
    arguments: pick([
      {},
      { text: pick(values) },
      { text: "a", times: pick(values) },
      { region: pick(values) },
      { text: "a", parts: [pick(values), { filename: pick(values) }] },
      pick(values)
    ]),
    protocolVersion: pick(versions),
    cursor: pick([undefined, undefined, undefined, pick(values)])
  })
}

const messageOf = (pick: Pick): unknown => {
  if (pick([1, 2, 3, 4, 5, 6, 7, 8]) === 1) return pick(values) ?? null
  return without({
    jsonrpc: pick(["2.0", "2.0", "2.0", "2.0", "2.0", "1.0", 2, undefined]),
    id: pick(ids),
    method: pick(methods),
    params: paramsOf(pick),
    result: pick([undefined, undefined, undefined, {}]),
    error: pick([undefined, undefined, undefined, { code: 1, message: "no" }])
  })
}

const headersOf = (pick: Pick, message: unknown): Sent => {
  const text = (value: unknown): string => (typeof value === "string" ? value : "")
  return {
    "mcp-protocol-version": text(pick([at(message, "params", "_meta", version), pick(versions)])),
    "mcp-method": text(pick([at(message, "method"), at(message, "method"), "tools/list", ""])),
    "mcp-name": text(
      pick([at(message, "params", "name"), at(message, "params", "name"), "measure", "=?base64?!?="])
    ),
    "mcp-param-region": text(pick(["", "text", "=?base64?dGV4dA==?="]))
  }
}

/** Any message with any headers; now and then a modern one whose headers fit. */
const askedOf = (pick: Pick): { readonly body: unknown; readonly headers: Sent } => {
  if (pick([1, 2, 3, 4]) === 1) {
    const name = pick(tools)
    return modernRequest(
      pick(["tools/call", "tools/list"]) ?? "",
      without({ name, arguments: pick([{}, { text: pick(values) }]) }),
      pick(ids)
    )
  }
  const body = messageOf(pick)
  return { body, headers: headersOf(pick, body) }
}

const statuses = [200, 202, 400, 404]
const known: ReadonlyArray<unknown> = Object.values(codes)

/** A response of JSON-RPC with a result or an error, and never both. */
const assertReply = (reply: unknown, why: string): void => {
  assert.strictEqual(at(reply, "jsonrpc"), "2.0", why)
  const id = at(reply, "id")
  assert.isTrue(id === null || typeof id === "string" || typeof id === "number", why)
  const code = at(reply, "error", "code")
  assert.strictEqual(typeof at(reply, "result") === "object", code === undefined, why)
  assert.isTrue(code === undefined || known.includes(code), why)
  const failed = at(reply, "result", "isError")
  if (failed === true) assert.isAbove(String(at(reply, "result", "content", 0, "text")).length, 0, why)
}

const assertDecided = ({ json, status }: Said, body: string, headers: Sent): void => {
  const why = `${JSON.stringify(headers)} ${body.slice(0, 600)} → ${String(status)} ${JSON.stringify(json)}`
  if (status === "plain") return assert.strictEqual(at(JSON.parse(body), "jsonrpc"), undefined, why)
  assert.include(statuses, status, why)
  if (status === 202) return assert.strictEqual(json, undefined, why)
  for (const reply of Array.isArray(json) ? json : [json]) assertReply(reply, why)
  if (Array.isArray(json)) assert.strictEqual(status, 200, why)
}

const seed = 19

describe("messages made at random", () => {
  const random = seededRandom(seed)
  const pick: Pick = (from) => from[Math.floor(random() * from.length)]

  it("get a decided answer, one by one and with any headers", async () => {
    const seen = new Set<unknown>()
    for (let count = 0; count < 700; count++) {
      const { body: message, headers } = askedOf(pick)
      const body = JSON.stringify(message)
      const said = await say(headers, body)
      assertDecided(said, body, headers)
      seen.add(at(said.json, "error", "code") ?? said.status)
    }
    // Each decided answer was met: the generator reaches them all.
    const all = [-32600, -32601, -32602, -32020, -32021, -32022, 200, 202, "plain"]
    assert.deepStrictEqual(
      all.filter((answer) => !seen.has(answer)),
      []
    )
  })

  it("get their answers in order in batches of 100, each with its id", async () => {
    const isModern = (message: unknown): boolean =>
      ![undefined, ...legacyVersions].some((named) => named === at(message, "params", "_meta", version))
    const legacyMessage = (): unknown => {
      const message = messageOf(pick)
      return isModern(message) ? legacyMessage() : message
    }
    for (let count = 0; count < 8; count++) {
      const numbered = Array.from({ length: 100 }, legacyMessage).map((message, index) =>
        at(message, "id") === 1 ? { ...(message as object), id: `number ${index}` } : message
      )
      const body = JSON.stringify(numbered)
      const said = await say({}, body)
      assertDecided(said, body, {})
      const asked = numbered.flatMap((message) => {
        const isRequest = at(message, "jsonrpc") === "2.0" && typeof at(message, "method") === "string"
        const id = at(message, "id")
        return isRequest && typeof id === "string" && id.startsWith("number") ? [id] : []
      })
      const told = (said.json as ReadonlyArray<unknown>).map((reply) => at(reply, "id"))
      assert.deepStrictEqual(
        told.filter((id) => asked.some((one) => one === id)),
        asked,
        `seed ${seed}, batch ${count}`
      )
    }
  })

  it("are refused wherever they are cut, with a byte changed or added", async () => {
    const { body, headers } = modernRequest("tools/call", { name: "measure", arguments: { text: "é" } })
    const bytes = new TextEncoder().encode(JSON.stringify(body))
    for (let end = 0; end < bytes.length; end++)
      assert.strictEqual((await say(headers, bytes.slice(0, end))).status, 400, `cut at ${end}`)
    const decoder = new TextDecoder()
    for (let index = 0; index < bytes.length; index++) {
      const changed = bytes.slice()
      changed[index] = Math.floor(random() * 256)
      assertDecided(await say(headers, changed), isText(changed) ? decoder.decode(changed) : "{}", headers)
    }
  })
})

const isText = (bytes: Uint8Array): boolean => {
  try {
    JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes))
    return true
  } catch (error) {
    if (error instanceof TypeError || error instanceof SyntaxError) return false
    throw error
  }
}
