import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { RawClient, statusOf } from "#test/front/RawClient.ts"
import { TestServer, textOf } from "#test/harness/TestServer.ts"

const boundary = "----signalbox"
const part = (name: string, text: string): string =>
  `--${boundary}\r\nContent-Disposition: form-data; name="${name}"; filename="${name}.txt"\r\n\r\n${text}\r\n`
const end = `--${boundary}--\r\n`
const contentType = `multipart/form-data; boundary=${boundary}`

const files = "/api/v1/files"

const send = (body: string) =>
  Effect.flatMap(TestServer, ({ ask }) =>
    ask("POST", files, { headers: { "content-type": contentType }, body })
  )

/** A connection on which the head of an upload, or a part of one, has been sent. */
const begun = (text: string, more: string) =>
  Effect.gen(function* () {
    const { adminKey, port } = yield* TestServer
    const client = yield* Effect.acquireRelease(
      Effect.promise(() => RawClient.open(port)),
      (opened) => Effect.sync(() => opened.destroy())
    )
    const head =
      `POST ${files} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${adminKey}\r\n` +
      `Content-Type: ${contentType}\r\n${more}\r\n`
    yield* Effect.promise(() => client.send(head + text))
    return client
  })

const rows = Effect.flatMap(SqlClient, (sql) =>
  Effect.map(
    sql<{ n: number }>`SELECT count(*)::int AS n FROM files WHERE deleted_at IS NULL`,
    (_) => _[0]?.n
  )
)

layer(TestServer.own(), { excludeTestServices: true })("an upload by a stranger", (it) => {
  it.effect("cut off after any byte of its form stores nothing", () =>
    Effect.gen(function* () {
      const form = part("file", "\r\n--\r\n--") + end
      const before = yield* rows
      for (let at = 0; at < form.length; at++) {
        const client = yield* begun(form.slice(0, at), `Content-Length: ${form.length}\r\n`)
        client.socket.end()
        const text = yield* Effect.promise(() => client.closed())
        assert.notStrictEqual(statusOf(text), 200, `cut at ${at}`)
      }
      // The same form as a whole, so that the cut ones failed for their cuts.
      const client = yield* begun(form, `Content-Length: ${form.length}\r\n`)
      const text = yield* Effect.promise(() => client.until((heard) => heard.endsWith("}")))
      assert.strictEqual(statusOf(text), 200)
      assert.strictEqual(yield* rows, (before ?? 0) + 1)
    })
  )

  it.effect("whose form ends before its length does waits for the rest, and is stored", () =>
    Effect.gen(function* () {
      const form = part("file", "x") + end
      const epilogue = "behind the form"
      const client = yield* begun(form, `Content-Length: ${form.length + epilogue.length}\r\n`)
      yield* Effect.sleep("200 millis")
      assert.strictEqual(client.text, "")
      yield* Effect.promise(() => client.send(epilogue))
      const text = yield* Effect.promise(() => client.until((heard) => heard.endsWith("}")))
      assert.strictEqual(statusOf(text), 200)
    })
  )

  it.effect("of ten thousand parts is refused at the second", () =>
    Effect.gen(function* () {
      const before = yield* rows
      const many = Array.from({ length: 10_000 }, () => part("file", "x")).join("") + end
      const refused = yield* send(many)
      assert.deepStrictEqual(
        [refused.status, refused.json],
        [400, { error: "file: expected one field only" }]
      )
      assert.strictEqual(yield* rows, before)
    })
  )

  it.effect("keeps forms within its file, and lines that are almost its boundary", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const inner = (part("file", "inner") + end).replaceAll(boundary, "inner")
      const almost = `\r\n--${boundary.slice(0, -1)}\r\n-${boundary}\r\n--${boundary.toUpperCase()}`
      for (const text of [inner, almost, almost.repeat(2_000)]) {
        const stored = yield* send(part("file", text) + end)
        assert.strictEqual(stored.status, 200)
        const read = yield* ask("GET", textOf(stored, "url"))
        assert.strictEqual(Buffer.from(read.bytes).toString(), text)
      }
    })
  )

  it.effect("that stalls, or trickles in, is 408 and loses its connection", () =>
    Effect.gen(function* () {
      const before = yield* rows
      const length = "Content-Length: 100000\r\n"
      const stalled = yield* begun(part("file", "begun").slice(0, -2), length)
      const trickling = yield* begun(part("file", "begun").slice(0, -2), length)
      const timer = setInterval(() => trickling.socket.write("a"), 100)
      for (const client of [stalled, trickling]) {
        const text = yield* Effect.promise(() => client.closed())
        assert.strictEqual(statusOf(text), 408)
        assert.isTrue(text.endsWith(JSON.stringify({ error: "file: the form comes too slowly" })))
      }
      clearInterval(timer)
      assert.strictEqual(yield* rows, before)
    })
  )
})
