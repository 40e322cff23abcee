import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { UploadedFile } from "#schemas/files/UploadedFile.ts"
import { type RawClient, statusOf } from "#test/front/RawClient.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { type Asked, TestServer } from "#test/harness/TestServer.ts"
import { begun, get, live, rawAnswer, series, sha256Of, textIn, told } from "./TransferSteps.ts"

const put = (path: string, body: string, asked: Asked = {}) =>
  Effect.flatMap(TestServer, ({ ask }) => ask("PUT", `/api/upload/${path}`, { ...asked, body }))

const item = (json: unknown) => json as UploadedFile

const aUser = Effect.flatMap(TestServer, ({ makeUser }) => makeUser())

layer(TestServer.shared, live)("a file in the body of a PUT", (it) => {
  it.effect("is 201 when it is new, 200 as a new version, with its item, ETag and Location", () =>
    Effect.gen(function* () {
      const { key } = yield* aUser
      const headers = { "content-type": "text/markdown" }
      const first = yield* put("docs/a/b.md", "one", { key, headers })
      assert.strictEqual(first.status, 201)
      const { fileId, mimeType, name, size, version } = item(first.json)
      assert.deepStrictEqual([name, size, version, mimeType], ["b.md", 3, 1, "text/markdown"])
      assert.strictEqual(first.headers.get("etag"), `"${sha256Of("one")}"`)
      assert.strictEqual(first.headers.get("location"), `/api/files/${fileId}`)
      const second = yield* put("docs/a/b.md", "two", { key })
      assert.deepStrictEqual([second.status, item(second.json).version], [200, 2])
      assert.strictEqual(item(second.json).directUrl, null)
      assert.strictEqual(textIn(yield* get(item(second.json).versionGroupId, key)), "two")
      const linked = yield* put("docs/a/b.md?link=1", "three", { key })
      assert.match(item(linked.json).directUrl ?? "", /\/direct\/[0-9A-Za-z]{22}$/)
    })
  )

  it.effect("may be empty, and of a length that nothing tells", () =>
    Effect.gen(function* () {
      const { key } = yield* aUser
      assert.deepStrictEqual(item((yield* put("docs/empty", "", { key })).json).size, 0)
      const client = yield* begun(key, "PUT /api/upload/docs/chunked", ["Transfer-Encoding: chunked"])
      yield* Effect.promise(() => client.send("4\r\nfour\r\n4\r\nmore\r\n0\r\n\r\n"))
      const text = yield* Effect.promise(() => client.until((heard) => heard.endsWith("}")))
      assert.strictEqual(statusOf(text), 201)
      assert.include(text, sha256Of("fourmore"))
    }).pipe(Effect.scoped)
  )

  it.effect("takes names in percent-encoded UTF-8; a slash in one, and what is no name, is 400", () =>
    Effect.gen(function* () {
      const { key } = yield* aUser
      const name = "ü 文件 %25 a?b#c.txt"
      const made = yield* put(`docs/${encodeURIComponent(name)}`, "x", { key })
      assert.strictEqual(item(made.json).name, name)
      const expected = "expected segments of percent-encoded UTF-8 without slashes"
      const paths = [
        ["docs/a%2Fb", `path: ${expected}`],
        ["docs/%ff", `path: ${expected}`],
        ["docs/%", `path: ${expected}`],
        ["a%2fb/c", `bucket: ${expected}`]
      ] as const
      for (const [path, error] of paths) {
        const text = yield* rawAnswer(key, `PUT /api/upload/${path}`, "x")
        assert.deepStrictEqual([statusOf(text), text.includes(JSON.stringify({ error }))], [400, true], path)
      }
      for (const path of [
        "docs/",
        "docs/a/../b",
        "docs/%2e%2e",
        "docs/a%00b",
        "docs/a//b",
        "docs/a%0d%0aX:%20y"
      ]) {
        const text = yield* rawAnswer(key, `PUT /api/upload/${path}`, "x")
        assert.strictEqual(statusOf(text), 400, path)
        assert.match(text, /"path: expected a name/)
      }
      for (const bucket of ["%20", "a%20b", "..%2f", "%C3%A4", "x".repeat(101)]) {
        const text = yield* rawAnswer(key, `PUT /api/upload/${bucket}/a`, "x")
        assert.deepStrictEqual([statusOf(text), text.includes('"bucket: expected')], [400, true], bucket)
      }
    })
  )

  it.effect("is 412 unless If-Match names the ETag of the current version, or If-None-Match none", () =>
    Effect.gen(function* () {
      const { key } = yield* aUser
      const under = (headers: Readonly<Record<string, string>>, body: string) =>
        Effect.map(put("docs/c", body, { key, headers }), ({ status }) => status)
      const etag = (text: string) => `"${sha256Of(text)}"`
      assert.strictEqual(yield* under({ "if-match": "*" }, "one"), 412)
      assert.strictEqual(yield* under({ "if-none-match": "*" }, "one"), 201)
      assert.strictEqual(yield* under({ "if-none-match": "*" }, "two"), 412)
      assert.strictEqual(yield* under({ "if-none-match": etag("one") }, "two"), 412)
      assert.strictEqual(yield* under({ "if-match": `"other", ${etag("one")}` }, "two"), 200)
      assert.strictEqual(yield* under({ "if-match": etag("one") }, "three"), 412)
      assert.strictEqual(yield* under({ "if-match": `W/${etag("two")}` }, "three"), 412)
      assert.strictEqual(yield* under({ "if-match": "*", "if-none-match": etag("one") }, "three"), 200)
      // Both conditions have to be met: the one of the fields is 409.
      const guarded = (version: string, ifMatch: string) =>
        Effect.map(
          put(`docs/c?ifVersion=${version}`, "four", { key, headers: { "if-match": ifMatch } }),
          told
        )
      const last = item((yield* put("docs/c", "three", { key })).json).fileId
      const [otherStatus, other] = yield* guarded("fv_0000000000000000000000", "*")
      assert.deepStrictEqual([otherStatus, other], [409, `ifVersion: the current version is ${last}`])
      assert.strictEqual((yield* guarded(last, '"x"'))[0], 412)
      assert.strictEqual((yield* guarded(last, etag("three")))[0], 200)
      const refused = told(yield* put("docs/c", "x", { key, headers: { "if-match": '"x"' } }))
      assert.strictEqual(refused[1], "If-Match, If-None-Match: the file is another one, or not there")
    })
  )

  it.effect("of which one of many writers with the same condition wins", () =>
    Effect.gen(function* () {
      const { key } = yield* aUser
      const headers = { "if-none-match": "*" }
      const answers = yield* Effect.all(
        Array.from({ length: 8 }, (_, n) => put("docs/race", `writer ${n}`, { key, headers })),
        { concurrency: "unbounded" }
      )
      const statuses = answers.map(({ status }) => status).toSorted((a, b) => a - b)
      assert.deepStrictEqual(statuses, [201, 412, 412, 412, 412, 412, 412, 412])
    })
  )

  it.effect("takes the fields of uploads in the query; another hash is 422, a wrong value 400", () =>
    Effect.gen(function* () {
      const { key } = yield* aUser
      const time = "2020-01-02T03:04:05Z"
      const made = yield* put(`docs/d?sha256=${sha256Of("d")}&modifiedAt=${time}&ifVersion=none`, "d", {
        key
      })
      assert.strictEqual(made.status, 201)
      const read = yield* get(item(made.json).fileId, key)
      assert.strictEqual(read.headers.get("last-modified"), "Thu, 02 Jan 2020 03:04:05 GMT")
      assert.deepStrictEqual(told(yield* put(`docs/e?sha256=${sha256Of("d")}`, "e", { key })), [
        422,
        `sha256: the bytes that came have the SHA-256 ${sha256Of("e")}`
      ])
      assert.strictEqual((yield* put("docs/d?ifVersion=none", "d", { key })).status, 409)
      assert.match(String(told(yield* put("docs/d?modifiedAt=x", "d", { key }))[1]), /^modifiedAt: /)
      const part = yield* put("docs/d", "d", { key, headers: { "content-range": "bytes 0-0/2" } })
      assert.deepStrictEqual(told(part), [
        400,
        "Content-Range: the body is the whole file; use /api/uploads for parts"
      ])
    })
  )

  it.effect("needs write in its bucket: 403 by the name, whether or not there is one", () =>
    Effect.gen(function* () {
      const { makeKey } = yield* TestServer
      const { key } = yield* aUser
      yield* put("there/a", "a", { key })
      const mine = (yield* makeKey({ scopes: ["write:mine", "read"] }, key)).key
      assert.strictEqual((yield* put("mine/a", "a", { key: mine })).status, 201)
      for (const bucket of ["there", "nowhere"])
        assert.deepStrictEqual(told(yield* put(`${bucket}/a`, "a", { key: mine })), [
          403,
          `This takes the scope write:${bucket}`
        ])
    })
  )
})

/** Longer than the quota of the user that is tested. */
const fileBytes = 4_000_000

/**
 * A body that is refused before its rest has come, and the answer, for which the front takes the rest first: a client that
 * still sends could lose it.
 */
const refusedBefore = (
  rest: string,
  headers: ReadonlyArray<string>,
  key: string,
  start: (client: RawClient) => Promise<void> = async () => undefined
) =>
  Effect.gen(function* () {
    const refusals = series("uploads_total", { protocol: "raw", outcome: "refused" })
    const before = yield* refusals
    const client = yield* begun(key, "PUT /api/upload/docs/a", headers)
    yield* Effect.promise(() => start(client))
    yield* eventually(
      "it is refused",
      Effect.map(refusals, (count) => count > before)
    )
    yield* Effect.promise(() => client.send(rest))
    return yield* Effect.promise(() => client.until((heard) => heard.endsWith("}")))
  })

layer(TestServer.own({ limits: { sharedFileBytes: fileBytes } }), live)(
  "limits of the body of a PUT",
  (it) => {
    it.effect("are FILES_MAX_SIZE, before any of it is read where it says its length", () =>
      Effect.gen(function* () {
        const { adminKey: key } = yield* TestServer
        const whole = "x".repeat(fileBytes + 1)
        const text = yield* refusedBefore(whole, [`Content-Length: ${whole.length}`], key)
        assert.strictEqual(statusOf(text), 413)
        assert.include(text, JSON.stringify({ error: `body: at most ${fileBytes} bytes` }))
        const chunked = yield* begun(key, "PUT /api/upload/docs/a", ["Transfer-Encoding: chunked"])
        yield* Effect.promise(() => chunked.send(`${whole.length.toString(16)}\r\n${whole}\r\n0\r\n\r\n`))
        const late = yield* Effect.promise(() => chunked.until((heard) => heard.endsWith("}")))
        assert.strictEqual(statusOf(late), 413)
        assert.strictEqual((yield* put("docs/a", "x".repeat(fileBytes))).status, 201)
      }).pipe(Effect.scoped)
    )

    it.effect("are the user's quota: 507 at once where the length says so, else amid the body", () =>
      Effect.gen(function* () {
        const { ask } = yield* TestServer
        const { id, key } = yield* aUser
        yield* ask("PATCH", `/api/v1/admin/users/${id}`, { json: { storage_quota_bytes: 3_000_000 } })
        const error = JSON.stringify({ error: "Quota of 3000000 bytes reached" })
        const text = yield* refusedBefore("x".repeat(3_000_001), ["Content-Length: 3000001"], key)
        assert.deepStrictEqual([statusOf(text), text.includes(error)], [507, true])
        const piece = `80000\r\n${"x".repeat(0x8_0000)}\r\n`
        const late = yield* refusedBefore(
          "0\r\n\r\n",
          ["Transfer-Encoding: chunked"],
          key,
          async (chunked) => {
            for (let sent = 0; sent < 6; sent++) await chunked.send(piece)
          }
        )
        assert.deepStrictEqual([statusOf(late), late.includes(error)], [507, true])
        const usage = yield* ask("GET", "/api/storage", { key })
        assert.deepStrictEqual(usage.json, { usedBytes: 0, trashBytes: 0, quotaBytes: 3_000_000 })
        // Exactly as much fits, of a length that nothing tells, too.
        const fits = yield* begun(key, "PUT /api/upload/docs/a", ["Transfer-Encoding: chunked"])
        for (let sent = 0; sent < 5; sent++) yield* Effect.promise(() => fits.send(piece))
        const rest = 3_000_000 - 5 * 0x8_0000
        yield* Effect.promise(() => fits.send(`${rest.toString(16)}\r\n${"y".repeat(rest)}\r\n0\r\n\r\n`))
        const made = yield* Effect.promise(() => fits.until((heard) => heard.endsWith("}")))
        assert.strictEqual(statusOf(made), 201)
        assert.strictEqual((yield* put("docs/b", "b", { key })).status, 507)
      }).pipe(Effect.scoped)
    )
  }
)
