import { readdirSync } from "node:fs"
import { join } from "node:path"
import { isDeepStrictEqual } from "node:util"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { AppConfig } from "#src/Config.ts"
import { openNew } from "#src/infra/blobs/BlobStore.ts"
import { statusOf } from "#test/front/RawClient.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { begun, items, told, upload } from "./TransferSteps.ts"

const live = { excludeTestServices: true } as const

const boundary = "----signalbox"
const contentType = `multipart/form-data; boundary=${boundary}`
const end = `--${boundary}--\r\n`

const part = (head: string, text: string): string => `--${boundary}\r\n${head}\r\n\r\n${text}\r\n`
const file = (filename: string, text: string): string =>
  part(`Content-Disposition: form-data; name="files"; filename="${filename}"`, text)

const aUser = Effect.flatMap(TestServer, ({ makeUser }) => makeUser())

const send = (key: string, body: string, type = contentType) =>
  Effect.flatMap(TestServer, ({ ask }) =>
    ask("POST", "/api/upload", { key, headers: { "content-type": type }, body })
  )

const posted = (key: string, more: string) =>
  begun(key, "POST /api/upload", [`Content-Type: ${contentType}`, more])

/** All that uploads leave: rows, and files under way. */
const traces = Effect.gen(function* () {
  const sql = yield* SqlClient
  const { dataDir } = yield* AppConfig
  const [row] = yield* sql<{
    n: number
  }>`SELECT (SELECT count(*) FROM file_versions) + (SELECT count(*) FROM directories)
    + (SELECT count(*) FROM blobs) + (SELECT count(*) FROM blob_uploads) AS n`
  return [Number(row?.n), readdirSync(join(dataDir, "blobs", "tmp")).length] as const
})

/** Once what was refused is gone again. */
const unchanged = (before: readonly [number, number]) =>
  Effect.orDie(
    eventually(
      `as before: ${before}`,
      Effect.map(traces, (now) => isDeepStrictEqual(now, before))
    )
  )

const malformed = [400, "body: the form is cut off or malformed"] as const

layer(TestServer.own(), live)("a form of shared files", (it) => {
  it.effect("cut off after any byte stores nothing", () =>
    Effect.gen(function* () {
      const { key } = yield* aUser
      const form =
        file("a.txt", "\r\n--\r\n--") + part('Content-Disposition: form-data; name="path"', "b") + end
      const before = yield* traces
      for (let at = 0; at < form.length; at++) {
        const client = yield* posted(key, `Content-Length: ${form.length}`)
        yield* Effect.promise(() => client.send(form.slice(0, at)))
        client.socket.end()
        const text = yield* Effect.promise(() => client.closed())
        assert.notStrictEqual(statusOf(text), 200, `cut at ${at}`)
      }
      yield* unchanged(before)
      // The same form as a whole, so that the cut ones failed for their cuts.
      assert.deepStrictEqual(
        items(yield* send(key, form)).map(({ name, size }) => [name, size]),
        [["b", 8]]
      )
    }).pipe(Effect.scoped)
  )

  it.effect("whose length ends before it does is 400 at any of its bytes", () =>
    Effect.gen(function* () {
      const { key } = yield* aUser
      const form = file("a.txt", "text") + end
      const before = yield* traces
      // Without the line behind its last boundary it is whole.
      for (let at = 0; at < form.length - 2; at++) {
        const answer = told(yield* send(key, form.slice(0, at)))
        assert.deepStrictEqual(answer, malformed, `cut at ${at}`)
      }
      yield* unchanged(before)
    })
  )

  it.effect("with a boundary that lies, or parts that are none of a form, is 400", () =>
    Effect.gen(function* () {
      const { key } = yield* aUser
      const before = yield* traces
      const forms = [
        [file("a", "a") + end, "multipart/form-data; boundary=another"],
        [file("a", "a") + end, "multipart/form-data; boundary="],
        [file("a", "a") + end, "multipart/form-data"],
        [part("Content-Type: text/plain", "a") + end, contentType],
        [part('Content-Disposition: other; name="files"; filename="a"', "a") + end, contentType],
        [part('Content-Disposition: attachment; name="files"; filename="a"', "a") + end, contentType],
        [
          part('Content-Disposition: form-data; name="files"; filename="a"; filename="b"', "a") + end,
          contentType
        ],
        [
          part(
            'Content-Disposition: form-data; name="files"; filename="a"\r\nContent-Disposition: form-data; name="dir"',
            "a"
          ) + end,
          contentType
        ],
        [file("a\u0000b", "a") + end, contentType],
        [file("a", "a") + file("b", "b"), contentType]
      ] as const
      for (const [form, type] of forms)
        assert.strictEqual((yield* send(key, form, type)).status, 400, `${type} ${form}`)
      yield* unchanged(before)
    })
  )

  it.effect("of ten thousand parts is 400, whatever they are", () =>
    Effect.gen(function* () {
      const { key } = yield* aUser
      const before = yield* traces
      const many = (one: string) => Array.from({ length: 10_000 }, () => one).join("") + end
      const refused = [400, "body: more than 6000 parts"] as const
      assert.deepStrictEqual(
        told(yield* send(key, many(part('Content-Disposition: form-data; name="x"', "")))),
        refused
      )
      assert.deepStrictEqual(
        told(yield* send(key, many(part('Content-Disposition: form-data; name="dir"', "")))),
        [400, "dir: given twice"]
      )
      yield* unchanged(before)
    })
  )

  it.effect("keeps forms within its files, and names that would end a header as they are", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const { key } = yield* aUser
      const inner = (file("inner", "inner") + end).replaceAll(boundary, "inner")
      const name = "a%0d%0aX-Evil: 1;\\ b.txt"
      const [made] = items(yield* send(key, file(name, inner) + end))
      assert.deepStrictEqual([made?.name, made?.size], [name, inner.length])
      const read = yield* ask("GET", `/api/files/${made?.fileId}`, { key })
      assert.strictEqual(Buffer.from(read.bytes).toString(), inner)
      assert.isNull(read.headers.get("x-evil"))
    })
  )

  it.effect("that its client leaves amid a file stores nothing", () =>
    Effect.gen(function* () {
      const { key } = yield* aUser
      const before = yield* traces
      for (const more of ["Content-Length: 10000000", "Transfer-Encoding: chunked"]) {
        const client = yield* posted(key, more)
        const text = file("a", "a") + file("b", "x".repeat(500_000))
        const sent = more.startsWith("T") ? `${text.length.toString(16)}\r\n${text}\r\n` : text
        yield* Effect.promise(() => client.send(sent))
        yield* Effect.sleep(50)
        client.destroy()
      }
      yield* unchanged(before)
    }).pipe(Effect.scoped)
  )

  it.effect("whose key is revoked amid it is 401 and stores nothing", () =>
    Effect.gen(function* () {
      const { ask, makeKey } = yield* TestServer
      const person = yield* aUser
      const before = yield* traces
      const lines = [
        ["POST /api/upload", `Content-Type: ${contentType}`, file("a", "a")],
        ["PUT /api/upload/docs/a", "Content-Type: text/plain", "the beginning"]
      ] as const
      for (const [line, type, text] of lines) {
        const { id, key } = yield* makeKey({}, person.key)
        const client = yield* begun(key, line, [type, "Content-Length: 5000"])
        yield* Effect.promise(() => client.send(text))
        yield* ask("DELETE", `/api/v1/keys/${id}`, { key: person.key })
        yield* Effect.sleep(1_000)
        yield* Effect.promise(() => client.send("x".repeat(5_000 - text.length)))
        const answer = yield* Effect.promise(() => client.until((heard) => heard.endsWith("}")))
        assert.strictEqual(statusOf(answer), 401)
        assert.include(answer, JSON.stringify({ error: "Invalid or missing API key" }))
      }
      yield* unchanged(before)
    }).pipe(Effect.scoped)
  )
})

let isFull = false

/** A disk that is full from now and then on. */
const fillingDisk: typeof openNew = async (path, flags) => {
  const opened = await openNew(path, flags)
  return {
    writeFile: async (chunk) => {
      if (isFull) throw Object.assign(new Error("no space left on device"), { code: "ENOSPC" })
      await opened.writeFile(chunk)
    },
    truncate: (bytes) => opened.truncate(bytes),
    datasync: () => opened.datasync(),
    close: () => opened.close()
  }
}

layer(TestServer.own({}, { open: fillingDisk }), live)("shared files on a disk that fills", (it) => {
  it.effect("are 507 and leave nothing, and are well with room again", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const { key } = yield* aUser
      const files = [
        ["a", "a"],
        ["b", "b".repeat(100_000)]
      ] as const
      const before = yield* traces
      isFull = true
      const full = [507, "The disk is full; nothing was stored"] as const
      assert.deepStrictEqual(told(yield* upload(files, {}, { key })), full)
      const put = yield* ask("PUT", "/api/upload/docs/c", { key, body: "c".repeat(100_000) })
      assert.deepStrictEqual(told(put), full)
      yield* unchanged(before)
      isFull = false
      assert.strictEqual((yield* upload(files, {}, { key })).status, 200)
    })
  )
})
