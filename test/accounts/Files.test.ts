import { assert, layer } from "@effect/vitest"
import { createHash } from "node:crypto"
import { Effect } from "effect"
import { TestServer, type Asked, textOf } from "#test/harness/TestServer.ts"

const limitBytes = 100_000
const letters = Buffer.from("abcdefghijklmnopqrstuvwxyz")

const formOf = (bytes: Uint8Array<ArrayBuffer>, name = "letters.txt", type = "text/plain"): FormData => {
  const form = new FormData()
  form.set("file", new Blob([bytes], { type }), name)
  return form
}

const upload = (form: FormData, asked: Asked = {}) =>
  Effect.flatMap(TestServer, ({ ask }) => ask("POST", "/api/v1/files", { ...asked, body: form }))

const store = (bytes: Uint8Array<ArrayBuffer>, name?: string, type?: string, asked?: Asked) =>
  Effect.map(upload(formOf(bytes, name, type), asked), (answer) => textOf(answer, "url"))

const get = (path: string, headers: Readonly<Record<string, string>> = {}, method = "GET") =>
  Effect.flatMap(TestServer, ({ ask }) => ask(method, path, { headers }))

const live = { excludeTestServices: true } as const

/** Of one user. */
const quotaBytes = 4.5 * limitBytes

layer(TestServer.own({ maxFileSizeBytes: limitBytes, filesQuotaBytes: quotaBytes }), live)(
  "an account file",
  (it) => {
    it.effect("is answered 200 with id, filename and url, and read back byte for byte as it was sent", () =>
      Effect.gen(function* () {
        const bytes = new Uint8Array(70_000).map((_, index) => (index * 31) & 255)
        const made = yield* upload(formOf(bytes, "image.png", "image/png"))
        assert.strictEqual(made.status, 200)
        const id = textOf(made, "id")
        assert.match(id, /^fil_[0-9A-Za-z]{22}$/)
        assert.deepStrictEqual(made.json, { id, filename: "image.png", url: `/api/v1/files/${id}` })
        const read = yield* get(textOf(made, "url"))
        assert.strictEqual(read.status, 200)
        assert.deepStrictEqual(Buffer.from(read.bytes), Buffer.from(bytes))
        assert.strictEqual(read.headers.get("content-type"), "image/png")
        assert.strictEqual(read.headers.get("content-length"), "70000")
        assert.strictEqual(read.headers.get("content-disposition"), 'inline; filename="image.png"')
        assert.strictEqual(read.headers.get("x-content-type-options"), "nosniff")
        assert.strictEqual(read.headers.get("accept-ranges"), "bytes")
        assert.strictEqual(read.headers.get("content-security-policy"), null)
        const sha256 = createHash("sha256").update(bytes).digest("hex")
        assert.strictEqual(read.headers.get("etag"), `"${sha256}"`)
      })
    )

    it.effect("may be empty", () =>
      Effect.gen(function* () {
        const path = yield* store(new Uint8Array())
        const read = yield* get(path)
        assert.deepStrictEqual(
          [read.status, read.bytes.length, read.headers.get("content-length")],
          [200, 0, "0"]
        )
        assert.strictEqual((yield* get(path, { range: "bytes=0-" })).status, 416)
      })
    )

    it.effect("may have exactly MAX_FILE_SIZE bytes; with one more it is 413 and nothing is stored", () =>
      Effect.gen(function* () {
        const { ask } = yield* TestServer
        assert.strictEqual((yield* upload(formOf(new Uint8Array(limitBytes)))).status, 200)
        for (const size of [limitBytes + 1, 3 * limitBytes]) {
          const refused = yield* upload(formOf(new Uint8Array(size)))
          assert.deepStrictEqual(
            [refused.status, refused.json],
            [413, { error: `file: at most ${limitBytes} bytes` }]
          )
        }
        assert.strictEqual((yield* ask("GET", "/api/v1/health")).status, 200)
      })
    )

    it.effect("answers HEAD as GET, without the bytes", () =>
      Effect.gen(function* () {
        const path = yield* store(letters)
        const [got, head] = [yield* get(path), yield* get(path, {}, "HEAD")]
        assert.deepStrictEqual([head.status, head.bytes.length], [200, 0])
        for (const name of [
          "content-length",
          "content-type",
          "etag",
          "content-disposition",
          "accept-ranges"
        ]) {
          assert.strictEqual(head.headers.get(name), got.headers.get(name), name)
        }
        // Ranges are defined for GET alone (RFC 9110, 14.2).
        const ranged = yield* get(path, { range: "bytes=0-0" }, "HEAD")
        assert.deepStrictEqual([ranged.status, ranged.headers.get("content-length")], [200, "26"])
      })
    )

    it.effect("answers one range with 206 and just these bytes", () =>
      Effect.gen(function* () {
        const path = yield* store(letters)
        for (const [range, bytes, from, to] of [
          ["bytes=0-0", "a", 0, 0],
          ["bytes=2-4", "cde", 2, 4],
          ["bytes=24-", "yz", 24, 25],
          ["bytes=25-99", "z", 25, 25],
          ["bytes=-3", "xyz", 23, 25],
          ["bytes=-99", letters.toString(), 0, 25],
          ["BYTES=0-1", "ab", 0, 1]
        ] as const) {
          const part = yield* get(path, { range })
          assert.deepStrictEqual([part.status, Buffer.from(part.bytes).toString()], [206, bytes], range)
          assert.strictEqual(part.headers.get("content-range"), `bytes ${from}-${to}/26`, range)
          assert.strictEqual(part.headers.get("content-length"), String(bytes.length), range)
        }
      })
    )

    it.effect("answers 416 and its size to a range beyond its end", () =>
      Effect.gen(function* () {
        const path = yield* store(letters)
        for (const range of ["bytes=26-", "bytes=99-100", "bytes=-0"]) {
          const refused = yield* get(path, { range })
          assert.strictEqual(refused.status, 416, range)
          assert.strictEqual(refused.headers.get("content-range"), "bytes */26", range)
          assert.deepStrictEqual(refused.json, { error: "Range: the file has 26 bytes" })
        }
      })
    )

    it.effect("answers the whole to several ranges, and to a range that makes no sense", () =>
      Effect.gen(function* () {
        const path = yield* store(letters)
        for (const range of ["bytes=0-1,4-5", "bytes=5-2", "bytes=", "bytes=a-b", "lines=1-2", "bytes=-"]) {
          const whole = yield* get(path, { range })
          assert.deepStrictEqual([whole.status, whole.bytes.length], [200, 26], range)
          assert.strictEqual(whole.headers.get("content-range"), null, range)
        }
      })
    )

    it.effect("answers 304 without bytes to If-None-Match with its tag, and 200 to another", () =>
      Effect.gen(function* () {
        const path = yield* store(letters)
        const etag = (yield* get(path)).headers.get("etag") ?? ""
        for (const tag of [etag, `W/${etag}`, "*", `"x", ${etag}`]) {
          const unchanged = yield* get(path, { "if-none-match": tag, range: "bytes=0-1" })
          assert.deepStrictEqual([unchanged.status, unchanged.bytes.length], [304, 0], tag)
          assert.strictEqual(unchanged.headers.get("etag"), etag)
        }
        assert.strictEqual((yield* get(path, { "if-none-match": '"x"' })).status, 200)
        assert.strictEqual((yield* get(path, { "if-none-match": etag }, "HEAD")).status, 304)
      })
    )

    it.effect("gives a range of If-Range's version only, else the whole", () =>
      Effect.gen(function* () {
        const path = yield* store(letters)
        const etag = (yield* get(path)).headers.get("etag") ?? ""
        assert.strictEqual((yield* get(path, { range: "bytes=0-1", "if-range": etag })).status, 206)
        for (const other of ['"x"', `W/${etag}`, "Sat, 21 Nov 2026 06:00:00 GMT"]) {
          assert.strictEqual((yield* get(path, { range: "bytes=0-1", "if-range": other })).status, 200, other)
        }
      })
    )

    it.effect("that a browser would run as a page is sandboxed", () =>
      Effect.gen(function* () {
        for (const type of [
          "text/html",
          "image/svg+xml",
          "application/xhtml+xml",
          "text/xml",
          "TEXT/HTML; charset=utf-8"
        ]) {
          const read = yield* get(yield* store(letters, "page", type))
          assert.strictEqual(read.headers.get("content-security-policy"), "sandbox; default-src 'none'", type)
          assert.strictEqual(read.headers.get("x-content-type-options"), "nosniff", type)
        }
      })
    )

    it.effect("keeps a name in any script, sent back by RFC 6266 and RFC 8187", () =>
      Effect.gen(function* () {
        for (const [name, disposition] of [
          ["plain.txt", 'inline; filename="plain.txt"'],
          ["Grüße 1.txt", "inline; filename=\"Gr__e 1.txt\"; filename*=UTF-8''Gr%C3%BC%C3%9Fe%201.txt"],
          ["文.txt", "inline; filename=\"_.txt\"; filename*=UTF-8''%E6%96%87.txt"],
          ["100%.txt", "inline; filename=\"100_.txt\"; filename*=UTF-8''100%25.txt"],
          ["it's (1)*.txt", 'inline; filename="it\'s (1)_.txt"']
        ] as const) {
          const made = yield* upload(formOf(letters, name))
          const read = yield* get(textOf(made, "url"))
          assert.strictEqual(read.headers.get("content-disposition"), disposition, name)
        }
      })
    )

    it.effect("keeps the bare name of a path, and never a name that could lead elsewhere", () =>
      Effect.gen(function* () {
        for (const [name, kept] of [
          ["../../etc/passwd", "passwd"],
          ["C:\\Users\\ada\\cv.pdf", "cv.pdf"],
          ["..", "file"],
          ["a/", "file"],
          ["a\u202Etxt.exe", "a_txt.exe"],
          [`${"x".repeat(300)}.png`, `${"x".repeat(251)}.png`]
        ] as const) {
          assert.strictEqual(textOf(yield* upload(formOf(letters, name)), "filename"), kept, name)
        }
      })
    )

    it.effect("takes a media type that is no media type for bytes", () =>
      Effect.gen(function* () {
        for (const type of ["", "nonsense", "a/b/c", "text/plain; charset"]) {
          const read = yield* get(yield* store(letters, "a", type))
          assert.strictEqual(read.headers.get("content-type"), "application/octet-stream", type)
        }
      })
    )

    it.effect("is 404 `File not found` where there is none, whatever the id looks like", () =>
      Effect.gen(function* () {
        for (const id of ["fil_0000000000000000000000", "x", "..%2F..%2Fadmin.json", "%F0%9F%92%A9"]) {
          const answer = yield* get(`/api/v1/files/${id}`)
          assert.deepStrictEqual([answer.status, answer.json], [404, { error: "File not found" }], id)
        }
      })
    )

    it.effect("is not looked for by an id that no id can be: 400 names the field", () =>
      Effect.gen(function* () {
        for (const id of ["fil_%00", "a%0Ab", "x".repeat(65)]) {
          const answer = yield* get(`/api/v1/files/${id}`)
          const error = "id: expected an id of at most 64 characters"
          assert.deepStrictEqual([answer.status, answer.json], [400, { error }], id)
        }
      })
    )

    it.effect("may be read by any account or router key that knows its id, and by nobody without one", () =>
      Effect.gen(function* () {
        const { ask, makeKey, makeUser } = yield* TestServer
        const path = yield* store(letters)
        const stranger = yield* makeUser()
        const router = yield* makeKey({ kind: "router" }, stranger.key)
        for (const key of [stranger.key, router.key]) {
          assert.strictEqual((yield* ask("GET", path, { key })).status, 200)
        }
        assert.strictEqual((yield* ask("GET", path, { key: "" })).status, 401)
      })
    )

    it.effect("is deleted by its owner alone, with any key of theirs; then it is gone", () =>
      Effect.gen(function* () {
        const { ask, makeKey, makeUser } = yield* TestServer
        const owner = yield* makeUser()
        const path = yield* store(letters, "a.txt", "text/plain", { key: owner.key })
        const foreign = yield* ask("DELETE", path)
        assert.deepStrictEqual([foreign.status, foreign.json], [404, { deleted: false }])
        assert.strictEqual((yield* get(path)).status, 200)
        const router = yield* makeKey({ kind: "router" }, owner.key)
        const deleted = yield* ask("DELETE", path, { key: router.key })
        assert.deepStrictEqual([deleted.status, deleted.json], [200, { deleted: true }])
        const again = yield* ask("DELETE", path, { key: owner.key })
        assert.deepStrictEqual([again.status, again.json], [404, { deleted: false }])
        assert.strictEqual((yield* get(path)).status, 404)
      })
    )

    it.effect("counts towards its owner's FILES_QUOTA; beyond it 507, until one is deleted", () =>
      Effect.gen(function* () {
        const { ask, makeUser } = yield* TestServer
        const { key } = yield* makeUser()
        const paths: Array<string> = []
        for (let number = 0; number < 4; number++)
          paths.push(yield* store(new Uint8Array(limitBytes).fill(number), "a.bin", "", { key }))
        const most = formOf(new Uint8Array(limitBytes))
        for (let time = 0; time < 2; time++) {
          const refused = yield* upload(most, { key })
          assert.deepStrictEqual(
            [refused.status, refused.json],
            [507, { error: `Quota of ${quotaBytes} bytes reached` }]
          )
        }
        assert.strictEqual((yield* upload(formOf(letters), { key })).status, 200)
        assert.strictEqual((yield* upload(formOf(letters))).status, 200, "another user")
        assert.strictEqual((yield* ask("DELETE", paths[0] ?? "", { key })).status, 200)
        assert.strictEqual((yield* upload(most, { key })).status, 200)
      })
    )
  }
)
