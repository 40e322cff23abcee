import { createHash } from "node:crypto"
import { connect } from "node:net"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { eventually } from "#test/harness/Eventually.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { at, modernRequest, request } from "#test/mcp/Asking.ts"
import { usageOf } from "./attachments/AttachmentStage.ts"
import { base, baseParts, end, file, messagesOf, part, sendForm, sendParts } from "./Forms.ts"
import { contentsOf, unusedOf } from "./SentFiles.ts"
import { longFaults, tryCalls, tryForms, tryJson } from "./SendWays.ts"
import { api, faultOf, makeStage, type SentBody } from "./Stage.ts"

const live = { excludeTestServices: true } as const
const mib = 1024 * 1024
const fileMax = 50 * mib

/** A busy machine takes its time to read them. */
const settings = { rooms: new Set(["accounts", "notify"]), limits: { mcpReadMillis: 120_000 } }

const pattern = (bytes: number): Buffer =>
  Buffer.alloc(
    bytes,
    Buffer.from(Array.from({ length: 65_537 }, (_, index) => (index * 31 + (index >> 9)) & 255))
  )
const sha256 = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex")

/** A call with one file, as text: its base64 is not copied more often than it has to be. */
const callWith = (bytes: Buffer, more: object = {}): string => {
  const attachments = [{ filename: "large.bin", content_base64: "HERE" }]
  const params = { name: "send_notification", arguments: { app: "a", message: "m", attachments, ...more } }
  const [before = "", after = ""] = JSON.stringify(modernRequest("tools/call", params).body).split("HERE")
  return before + bytes.toString("base64") + after
}
const { headers } = modernRequest("tools/call", { name: "send_notification" })

layer(TestServer.own(settings), live)("a large send", (it) => {
  it.effect("by a call has a file of 50 MB, byte for byte, and one byte more is refused by name", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const stage = yield* makeStage
      yield* stage.project()
      const key = yield* stage.projectKey()
      const bytes = pattern(fileMax)
      const sent = yield* ask("POST", "/mcp", { key, headers, body: callWith(bytes) })
      const { messages } = at(sent.json, "result", "structuredContent") as SentBody
      const [stored] = yield* contentsOf(messages[0])
      assert.strictEqual(sha256(stored?.bytes ?? Buffer.alloc(0)), sha256(bytes))
      const refused = yield* ask("POST", "/mcp", { key, headers, body: callWith(pattern(fileMax + 1)) })
      assert.deepStrictEqual(
        [at(refused.json, "result", "isError"), at(refused.json, "result", "content", 0, "text")],
        [true, "attachments[0]: at most 52428800 bytes"]
      )
      assert.strictEqual(yield* unusedOf(stage.userId), 0)
    })
  )

  it.effect("of 80 MB is a call, a larger one is 413 and says where files go", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const stage = yield* makeStage
      yield* stage.project()
      const key = yield* stage.projectKey()
      const text = (bytes: number): string => {
        const attachments = [{ filename: "a.txt", text: "x".repeat(40 * mib) }]
        const args = { app: "a", message: "m", attachments, padding: "" }
        const call = JSON.stringify(request("tools/call", { name: "send_notification", arguments: args }))
        return call.replace('"padding":""', `"padding":"${"y".repeat(bytes - call.length)}"`)
      }
      const sent = yield* ask("POST", "/mcp", { key, body: text(80 * mib) })
      assert.strictEqual(at(sent.json, "result", "structuredContent", "messages", 0, "attachments"), 1)
      const longer = yield* ask("POST", "/mcp", { key, body: text(80 * mib + 1) })
      assert.deepStrictEqual(faultOf(longer), [
        413,
        "body: at most 83886080 bytes; larger files go to POST /api/v1/attachments"
      ])
      const plain = { app: "a", message: "m", padding: "x".repeat(8 * mib) }
      for (const path of ["/mcp", `${api}/messages`])
        assert.deepStrictEqual(faultOf(yield* ask("POST", path, { key, json: plain })), [
          413,
          "body: at most 8388608 bytes"
        ])
    })
  )

  it.effect("by a form has files of 50 MB each, and one byte more names its part", () =>
    Effect.gen(function* () {
      const stage = yield* makeStage
      yield* stage.project()
      const key = yield* stage.projectKey()
      const bytes = pattern(fileMax)
      const sent = yield* sendForm(key, [...base, ["a", new Blob([Uint8Array.from(bytes)]), "a.bin"]])
      const [stored] = yield* contentsOf(messagesOf(sent)[0])
      assert.strictEqual(sha256(stored?.bytes ?? Buffer.alloc(0)), sha256(bytes))
      const before = yield* usageOf(stage.userId)
      const longer = yield* sendForm(key, [
        ...base,
        file("small"),
        ["dump", new Blob([Uint8Array.from(bytes), "x"]), "b.bin"]
      ])
      assert.deepStrictEqual(faultOf(longer), [413, "dump: at most 52428800 bytes"])
      assert.deepStrictEqual(yield* usageOf(stage.userId), before)
      assert.strictEqual(yield* unusedOf(stage.userId), 0)
    })
  )

  it.effect("by a form has 20 files, and fields of 8 MiB together", () =>
    Effect.gen(function* () {
      const stage = yield* makeStage
      yield* stage.project()
      const key = yield* stage.projectKey()
      const files = (count: number) => Array.from({ length: count }, (_, index) => file(`file ${index}`))
      const sent = yield* sendForm(key, [...base, ...files(20)])
      assert.strictEqual(messagesOf(sent)[0]?.attachments, 20)
      const refused = yield* sendForm(key, [...base, ...files(21)])
      assert.deepStrictEqual(faultOf(refused), [400, "attachments: at most 20"])
      assert.strictEqual(yield* unusedOf(stage.userId), 0)
      const long = "x".repeat(4 * mib)
      const fields = yield* sendParts(key, [part('name="title"', long), part('name="unknown"', long)])
      assert.deepStrictEqual(faultOf(fields), [413, "body: at most 8388608 bytes"])
      // Compact JSON is what counts.
      const wide = `[${" ".repeat(1_100_000)}1]`
      const json = 'name="body"\r\nContent-Type: application/json'
      assert.strictEqual((yield* sendParts(key, [part(json, wide)])).status, 201)
      const cut = yield* sendParts(key, [part(json, wide.slice(0, -1))])
      assert.deepStrictEqual(faultOf(cut), [400, "body: expected JSON, as its part says"])
    })
  )

  it.effect("tells a long field that is at fault in one text, whichever way it comes", () =>
    Effect.gen(function* () {
      yield* tryJson(longFaults)
      assert.isAbove(yield* tryForms(longFaults), 1)
      assert.isAbove(yield* tryCalls(longFaults), 2)
    })
  )

  it.effect("leaves no file where its client leaves, wherever the form is cut", () =>
    Effect.gen(function* () {
      const { port } = yield* TestServer
      const stage = yield* makeStage
      yield* stage.project()
      const key = yield* stage.projectKey()
      const whole = Buffer.concat([
        ...baseParts,
        part('name="f"; filename="a"', "first"),
        part('name="f"; filename="b"', pattern(100_000)),
        part('name="title"', "t"),
        end
      ])
      const head =
        `POST ${api}/messages HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n` +
        `Content-Type: multipart/form-data; boundary=xXxBOUNDARYxXx\r\nContent-Length: ${whole.length}\r\n\r\n`
      for (let cut = 100; cut < whole.length; cut += 9_001)
        yield* Effect.promise(
          () =>
            new Promise<void>((left) => {
              const socket = connect(port, "127.0.0.1")
              socket.on("error", () => left())
              socket.write(head)
              socket.write(whole.subarray(0, cut), () => setTimeout(() => socket.destroy(), 20))
              socket.on("close", () => left())
            })
        )
      yield* eventually(
        "no file is left",
        Effect.gen(function* () {
          const usage = yield* usageOf(stage.userId)
          return (yield* unusedOf(stage.userId)) === 0 && usage?.attachments === 0 && usage.reserved === 0
        })
      )
    })
  )
})

const off = TestServer.own({ ...settings, attachmentsDirectory: null })

layer(off, live)("a send with files where there is no storage", (it) => {
  it.effect("is 501 as a form and a failed result as a call, and without files it is sent", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const stage = yield* makeStage
      yield* stage.project()
      const key = yield* stage.projectKey()
      const none = "This server has no storage for attachments"
      assert.deepStrictEqual(faultOf(yield* sendForm(key, [...base, file("a")])), [501, none])
      assert.strictEqual((yield* sendForm(key, base)).status, 201)
      const call = request("tools/call", {
        name: "send_notification",
        arguments: { app: "a", message: "m", attachments: [{ filename: "a", text: "b" }] }
      })
      const { json, status } = yield* ask("POST", "/mcp", { key, json: call })
      assert.deepStrictEqual(
        [status, at(json, "result", "isError"), at(json, "result", "content", 0, "text")],
        [200, true, none]
      )
    })
  )
})

layer(TestServer.own({ ...settings, attachmentQuotaBytes: 1_000 }), live)("a send beyond the quota", (it) => {
  it.effect("is 507, and leaves none of its files", () =>
    Effect.gen(function* () {
      const stage = yield* makeStage
      yield* stage.project()
      const key = yield* stage.projectKey()
      const small = yield* sendForm(key, [...base, file("x".repeat(100))])
      assert.strictEqual(small.status, 201)
      const refused = yield* sendForm(key, [...base, file("y".repeat(100)), file("z".repeat(5_000))])
      assert.deepStrictEqual(faultOf(refused), [507, "Quota of 1000 bytes for attachments reached"])
      assert.strictEqual(yield* unusedOf(stage.userId), 0)
    })
  )
})
