import { request as httpRequest } from "node:http"
import { Readable } from "node:stream"
import { pipeline } from "node:stream/promises"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { eventually } from "#test/harness/Eventually.ts"
import { type Answer, TestServer } from "#test/harness/TestServer.ts"
import { at, modernRequest, request } from "./Asking.ts"
import { diagnosticRooms } from "./DiagnosticRoom.ts"

const live = { excludeTestServices: true } as const
const mib = 1024 * 1024
const limit = 80 * mib

/** A call with a text of so many bytes of UTF-8, filled up to the byte with `filling` of one byte each. */
const callOf = (bytes: number, filling: (room: number) => string, body: object): string => {
  const [before = "", after = ""] = JSON.stringify(body).split("HERE")
  return `${before}${filling(bytes - before.length - after.length)}${after}`
}

const measure = { name: "measure", arguments: { text: "HERE" } }
const ascii = (room: number): string => "x".repeat(room)
/** One character outside Latin-1 makes each of the others take two bytes in memory. */
const wide = (room: number): string => `€${"x".repeat(room - 3)}`

/** Sends a call of so many bytes, made as they leave: of this process's memory all but a piece is the server's. */
const pour = (url: string, key: string, bytes: number): Effect.Effect<number> =>
  Effect.promise(async () => {
    const [before = "", after = ""] = JSON.stringify(request("tools/call", measure)).split("HERE")
    const asked = httpRequest(url, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-length": bytes }
    })
    const status = new Promise<number>((answered, failed) => {
      asked.once("error", failed)
      asked.once("response", (answer) => {
        answer.resume().once("end", () => answered(answer.statusCode ?? 0))
      })
    })
    const pieces = function* () {
      yield before
      let left = bytes - before.length - after.length
      for (const piece = "x".repeat(64 * 1024); left > 0; left -= piece.length) yield piece.slice(0, left)
      yield after
    }
    // One that is refused unread may close before all of it was sent; its answer counts.
    await Promise.allSettled([pipeline(Readable.from(pieces()), asked), status])
    return status
  })

/** Bytes that this process holds when all garbage is gone. */
const heldBytes = (): number => {
  setFlagsFromString("--expose-gc")
  runInNewContext("gc()")
  const { arrayBuffers, heapUsed } = process.memoryUsage()
  return arrayBuffers + heapUsed
}

const characters = ({ json }: Answer): unknown => at(json, "result", "structuredContent", "characters")

/** A busy machine takes its time to read them. */
const settings = { rooms: new Set(["accounts", "diagnostic"]), limits: { mcpReadMillis: 120_000 } }

layer(TestServer.own(settings, { rooms: diagnosticRooms }), live)("a call of 80 MB", (it) => {
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
          Effect.map(ask("POST", "/mcp", { json: request("ping") }), ({ status }) => void pings.push(status)),
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

  it.effect(
    "of many users at once are answered or refused with 503, in bounded memory that is given back",
    () =>
      Effect.gen(function* () {
        const { makeKey, makeUser, url } = yield* TestServer
        const people = yield* Effect.forEach([1, 2, 3, 4], () => makeUser())
        const keys = yield* Effect.forEach(people, ({ key }) => makeKey({}, key))
        const before = heldBytes()
        const rssBefore = process.memoryUsage.rss()
        let rss = 0
        const watch = setInterval(() => (rss = Math.max(rss, process.memoryUsage.rss())), 10)
        const statuses = yield* Effect.forEach(
          [...keys, ...keys, ...keys],
          ({ key }) => pour(`${url}/mcp`, key, limit),
          { concurrency: "unbounded" }
        )
        clearInterval(watch)
        assert.isTrue(
          statuses.every((status) => status === 200 || status === 503),
          statuses.join()
        )
        assert.include(statuses, 200)
        assert.include(statuses, 503)
        assert.isBelow((rss - rssBefore) / mib, 700)
        assert.strictEqual(yield* pour(`${url}/mcp`, keys[0]?.key ?? "", limit), 200)
        yield* eventually(
          "memory is given back",
          Effect.sync(() => heldBytes() - before < 32 * mib)
        )
      })
  )
})
