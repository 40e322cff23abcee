import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { type Answer, TestServer } from "#test/harness/TestServer.ts"
import { at, modernRequest, request } from "./Asking.ts"
import { diagnosticRooms } from "./DiagnosticRoom.ts"

const live = { excludeTestServices: true, timeout: 300_000 } as const
const limit = 80 * 1024 * 1024

/** A call with a text of so many bytes of UTF-8, filled up to the byte with `filling` of one byte each. */
const callOf = (bytes: number, filling: (room: number) => string, body: object): string => {
  const [before = "", after = ""] = JSON.stringify(body).split("HERE")
  return `${before}${filling(bytes - before.length - after.length)}${after}`
}

const measure = { name: "measure", arguments: { text: "HERE" } }
const ascii = (room: number): string => "x".repeat(room)
/** One character outside Latin-1 makes each of the others take two bytes in memory. */
const wide = (room: number): string => `€${"x".repeat(room - 3)}`

const characters = ({ json }: Answer): unknown => at(json, "result", "structuredContent", "characters")

layer(TestServer.own({ rooms: new Set(["accounts", "diagnostic"]) }, { rooms: diagnosticRooms }), live)(
  "a call of 80 MB",
  (it) => {
    it.effect("is answered in every era, and one byte more is 413 and says where such files go", () =>
      Effect.gen(function* () {
        const { ask } = yield* TestServer
        const overhead = JSON.stringify(request("tools/call", measure)).length - "HERE".length
        const legacy = yield* ask("POST", "/mcp", {
          body: callOf(limit, ascii, request("tools/call", measure))
        })
        assert.deepStrictEqual([legacy.status, characters(legacy)], [200, limit - overhead])
        const unicode = yield* ask("POST", "/mcp", {
          body: callOf(limit, wide, request("tools/call", measure))
        })
        assert.deepStrictEqual([unicode.status, characters(unicode)], [200, limit - overhead - 2])
        const { body, headers } = modernRequest("tools/call", measure)
        const modern = yield* ask("POST", "/mcp", { headers, body: callOf(limit, ascii, body) })
        assert.strictEqual(modern.status, 200)
        const longer = yield* ask("POST", "/mcp", {
          body: callOf(limit + 1, ascii, request("tools/call", measure))
        })
        assert.deepStrictEqual(
          [longer.status, longer.json],
          [413, { error: "body: at most 83886080 bytes; larger files go to POST /attachments" }]
        )
      })
    )

    it.effect("that is no JSON, or nothing but values, is refused; others are answered meanwhile", () =>
      Effect.gen(function* () {
        const { ask } = yield* TestServer
        const open = `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"${"x".repeat(limit - 60)}`
        const values = `[${"0,".repeat(limit / 2 - 2)}0]`
        const deep = "[".repeat(limit)
        const plain = JSON.stringify({ message: "x".repeat(limit - 20) })
        const refused: Array<readonly [status: number, code: unknown]> = []
        const hostile = Effect.forEach([open, values, deep], (body) =>
          Effect.map(ask("POST", "/mcp", { body }), (answer) => {
            refused.push([answer.status, at(answer.json, "error", "code")])
          })
        )
        const pings: Array<number> = []
        const ping = Effect.forever(
          Effect.andThen(
            Effect.map(
              ask("POST", "/mcp", { json: request("ping") }),
              ({ status }) => void pings.push(status)
            ),
            Effect.sleep(20)
          )
        )
        yield* Effect.raceFirst(hostile, ping)
        assert.deepStrictEqual(refused, [
          [400, -32700],
          [400, -32600],
          [400, -32600]
        ])
        assert.isAbove(pings.length, 3)
        assert.isTrue(pings.every((status) => status === 200))
        const taken = yield* ask("POST", "/mcp", { body: plain })
        assert.deepStrictEqual([taken.status, at(taken.json, "bytes")], [201, plain.length])
      })
    )

    it.effect("of many clients at once are answered or refused with 503, and memory is given back", () =>
      Effect.gen(function* () {
        const { ask } = yield* TestServer
        const body = callOf(limit, ascii, request("tools/call", measure))
        const answers = yield* Effect.forEach([1, 2, 3, 4, 5], () => ask("POST", "/mcp", { body }), {
          concurrency: "unbounded"
        })
        const statuses = answers.map(({ status }) => status)
        assert.isTrue(
          statuses.every((status) => status === 200 || status === 503),
          statuses.join()
        )
        assert.include(statuses, 200)
        const after = yield* ask("POST", "/mcp", { body })
        assert.strictEqual(after.status, 200)
      })
    )
  }
)
