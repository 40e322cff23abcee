import { rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, layer } from "@effect/vitest"
import { Effect } from "effect"
import { AppConfig } from "#src/Config.ts"
import { statusOf } from "#test/front/RawClient.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { get, live, rawAnswer, sha256Of, textIn, uploaded } from "./TransferSteps.ts"

const aUser = Effect.flatMap(TestServer, ({ makeUser }) => makeUser())

const letters = "abcdefghijklmnopqrstuvwxyz"
/** Longer than what is kept in memory. */
const long = letters.repeat(2_000)
/** no longer, and still in a file of its own */
const shorter = letters.repeat(1_000)

layer(TestServer.shared, live)("a download of a shared file", (it) => {
  it.effect("is 404 once its version was deleted, also where memory had it", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const { key } = yield* aUser
      const first = yield* uploaded(["a.txt", "one"], {}, { key })
      yield* uploaded(["a.txt", "two"], {}, { key })
      for (let time = 0; time < 3; time++) assert.strictEqual((yield* get(first.fileId, key)).status, 200)
      const path = `/api/files/${first.versionGroupId}/versions/${first.fileId}`
      assert.strictEqual((yield* ask("DELETE", path, { key })).status, 200)
      assert.strictEqual((yield* get(first.fileId, key)).status, 404)
    })
  )

  it.effect("has the headers of its bytes, its name and its copies", () =>
    Effect.gen(function* () {
      const { key } = yield* aUser
      const fields = { modifiedAt: "2024-05-06T07:08:09.999Z" }
      const { fileId } = yield* uploaded(['Отчёт "1".txt', letters, "text/plain"], fields, { key })
      const { headers, status } = yield* get(fileId, key)
      assert.strictEqual(status, 200)
      const expected = {
        "content-type": "text/plain",
        "content-length": "26",
        etag: `"${sha256Of(letters)}"`,
        "last-modified": "Mon, 06 May 2024 07:08:09 GMT",
        "accept-ranges": "bytes",
        "cache-control": "private, no-cache",
        "x-content-type-options": "nosniff",
        "cross-origin-resource-policy": "same-origin",
        "content-security-policy": null,
        "x-replica-count": "0",
        "x-required-replicas": "0",
        "x-replica-satisfied": "true",
        "x-encryption-key-id": null
      }
      for (const [name, value] of Object.entries(expected)) assert.strictEqual(headers.get(name), value, name)
      assert.match(
        headers.get("content-disposition") ?? "",
        /^inline; filename="[^"]*"; filename\*=UTF-8''%D0%9E/
      )
    })
  )

  it.effect("is an attachment with download=1 alone", () =>
    Effect.gen(function* () {
      const { key } = yield* aUser
      const { fileId } = yield* uploaded(["a.txt", "a"], {}, { key })
      const kind = (query: string) =>
        Effect.map(get(fileId, key, {}, query), ({ headers }) => headers.get("content-disposition"))
      for (let time = 0; time < 3; time++) {
        assert.strictEqual(yield* kind("?download=1"), 'attachment; filename="a.txt"')
        for (const query of ["?download=0", "?download=", "?other=1", ""])
          assert.strictEqual(yield* kind(query), 'inline; filename="a.txt"')
      }
    })
  )

  it.effect("is sandboxed unless its type is an image, audio, video, PDF, plain text or JSON", () =>
    Effect.gen(function* () {
      const { key } = yield* aUser
      const shown = [
        "image/png",
        "image/avif",
        "audio/mpeg",
        "video/mp4",
        "application/pdf",
        "text/plain",
        "text/plain; charset=utf-8",
        "application/json"
      ]
      const sandboxed = [
        "text/html",
        "image/svg+xml",
        "IMAGE/SVG+XML",
        "application/xhtml+xml",
        "text/xml",
        "text/css",
        "text/javascript",
        "application/zip",
        "text/plainer",
        "application/json-seq",
        "x/image/png"
      ]
      for (const type of [...shown, ...sandboxed]) {
        const { fileId } = yield* uploaded(["a", '"<svg onload=alert(1)>"', type], {}, { key })
        const policy = (yield* get(fileId, key)).headers.get("content-security-policy")
        assert.strictEqual(policy, shown.includes(type) ? null : "sandbox; default-src 'none'", type)
      }
    })
  )

  for (const [kind, text] of [
    ["from memory", letters],
    ["from the disk", long]
  ] as const)
    describe(kind, () => {
      it.effect("is one range with 206, or the whole, or 416", () =>
        Effect.gen(function* () {
          const { key } = yield* aUser
          const { fileId } = yield* uploaded(["a.txt", text], {}, { key })
          const end = text.length
          const parts = [
            ["bytes=0-0", 0, 1],
            ["bytes=3-5", 3, 6],
            ["bytes=-4", end - 4, end],
            [`bytes=${end - 2}-`, end - 2, end],
            ["bytes=5-999999999999", 5, end]
          ] as const
          for (const [range, from, to] of parts) {
            // Twice: from memory where it is short.
            for (let time = 0; time < 2; time++) {
              const read = yield* get(fileId, key, { range })
              assert.strictEqual(read.status, 206, range)
              assert.strictEqual(textIn(read), text.slice(from, to))
              assert.strictEqual(read.headers.get("content-range"), `bytes ${from}-${to - 1}/${end}`)
            }
          }
          for (const range of ["bytes=0-1,4-5", "lines=1-2", "bytes=5-2"])
            assert.strictEqual(textIn(yield* get(fileId, key, { range })), text)
          const beyond = yield* get(fileId, key, { range: `bytes=${end}-` })
          assert.deepStrictEqual([beyond.status, beyond.bytes.length], [416, 0])
          assert.strictEqual(beyond.headers.get("content-range"), `bytes */${end}`)
        })
      )

      it.effect("heeds its conditions, by the ETag and by the second", () =>
        Effect.gen(function* () {
          const { key } = yield* aUser
          const fields = { modifiedAt: "2024-05-06T07:08:09.500Z" }
          const { fileId } = yield* uploaded(["a.txt", text], fields, { key })
          const etag = `"${sha256Of(text)}"`
          const at = "Mon, 06 May 2024 07:08:09 GMT"
          const before = "Mon, 06 May 2024 07:08:08 GMT"
          const range = { range: "bytes=0-1" }
          const cases = [
            [{ "if-none-match": etag }, 304],
            [{ "if-none-match": `"x", W/${etag}` }, 304],
            [{ "if-none-match": "*" }, 304],
            [{ "if-none-match": '"x"', "if-modified-since": at }, 200],
            [{ "if-modified-since": at }, 304],
            [{ "if-modified-since": before }, 200],
            [{ "if-modified-since": "2024" }, 200],
            [{ "if-match": etag }, 200],
            [{ "if-match": "*" }, 200],
            [{ "if-match": '"x"' }, 412],
            [{ "if-match": `W/${etag}` }, 412],
            [{ "if-unmodified-since": at }, 200],
            [{ "if-unmodified-since": before }, 412],
            [{ "if-match": etag, "if-unmodified-since": before }, 200],
            [{ ...range, "if-range": etag }, 206],
            [{ ...range, "if-range": at }, 206],
            [{ ...range, "if-range": before }, 200],
            [{ ...range, "if-range": '"x"' }, 200],
            [{ ...range, "if-match": '"x"' }, 412]
          ] as const
          for (const [headers, status] of cases) {
            const read = yield* get(fileId, key, headers)
            assert.strictEqual(read.status, status, JSON.stringify(headers))
            if (status > 206) assert.strictEqual(read.bytes.length, 0)
            assert.strictEqual(read.headers.get("etag"), etag)
          }
        })
      )

      it.effect("has a HEAD, which is the same without the bytes", () =>
        Effect.gen(function* () {
          const { ask } = yield* TestServer
          const { key } = yield* aUser
          const { fileId } = yield* uploaded(["a.txt", text], {}, { key })
          const headers = { range: "bytes=0-1" }
          for (let time = 0; time < 2; time++) {
            const head = yield* ask("HEAD", `/api/files/${fileId}`, { key, headers })
            assert.deepStrictEqual([head.status, head.bytes.length], [200, 0])
            assert.strictEqual(head.headers.get("content-length"), String(text.length))
          }
        })
      )
    })

  it.effect("is refused without a body: no key, no right, no such file", () =>
    Effect.gen(function* () {
      const { ask, makeKey } = yield* TestServer
      const { key } = yield* aUser
      const stranger = yield* aUser
      const { fileId } = yield* uploaded(["a.txt", "a"], {}, { key })
      yield* get(fileId, key)
      const writer = (yield* makeKey({ scopes: ["write"] }, key)).key
      const router = (yield* makeKey({ kind: "router" }, key)).key
      const refused = [
        [fileId, "", 401],
        [fileId, "sk_wrong", 401],
        [fileId, writer, 403],
        [fileId, router, 403],
        [fileId, stranger.key, 404],
        ["fv_0000000000000000000000", key, 404],
        ["fg_0000000000000000000000", key, 404],
        ["fil_0000000000000000000000", key, 404],
        ["x".repeat(200), key, 404],
        ["a%00b", key, 404],
        ["%ff", key, 404],
        ["..%2f", key, 404]
      ] as const
      for (const [id, by, status] of refused) {
        for (const method of ["GET", "HEAD"]) {
          const headers = { accept: "text/html,application/json" }
          const answer = yield* ask(method, `/api/files/${id}`, { key: by, headers })
          assert.deepStrictEqual([answer.status, answer.bytes.length], [status, 0], `${method} ${id}`)
          assert.isNotNull(answer.headers.get("x-request-id"))
        }
      }
      const unauthorized = yield* get(fileId, "")
      assert.strictEqual(unauthorized.headers.get("www-authenticate"), "Bearer")
      const text = yield* rawAnswer(key, "GET /api/files/%", "")
      assert.strictEqual(statusOf(text), 404)
    })
  )

  it.effect("follows its file: a new name counts at once, and what is in the trash is gone", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const { key } = yield* aUser
      const { fileId } = yield* uploaded(["a.txt", "a"], {}, { key })
      for (let time = 0; time < 2; time++) assert.strictEqual((yield* get(fileId, key)).status, 200)
      yield* ask("PATCH", `/api/files/${fileId}`, { key, json: { name: "b.txt" } })
      const renamed = (yield* get(fileId, key)).headers.get("content-disposition")
      assert.strictEqual(renamed, 'inline; filename="b.txt"')
      yield* ask("DELETE", `/api/files/${fileId}`, { key })
      assert.strictEqual((yield* get(fileId, key)).status, 404)
    })
  )
})

layer(TestServer.own(), live)("a download of a file whose bytes are", (it) => {
  it.effect("damaged or missing is 503 without a body, until they are uploaded again", () =>
    Effect.gen(function* () {
      const { key } = yield* aUser
      const { dataDir } = yield* AppConfig
      for (const [text, spoil] of [
        [shorter, (path: string) => writeFileSync(path, shorter.slice(1))],
        [long, (path: string) => rmSync(path)]
      ] as const) {
        const { fileId } = yield* uploaded(["a.txt", text], {}, { key })
        const hash = sha256Of(text)
        spoil(join(dataDir, "blobs", hash.slice(0, 2), hash.slice(2, 4), hash))
        for (let time = 0; time < 2; time++) {
          const read = yield* get(fileId, key)
          assert.deepStrictEqual([read.status, read.bytes.length], [503, 0])
          assert.isNotNull(read.headers.get("retry-after"))
        }
        yield* uploaded(["b.txt", text], {}, { key })
        assert.strictEqual(textIn(yield* get(fileId, key)), text)
      }
    })
  )
})
