import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { TestServer } from "#test/harness/TestServer.ts"
import { get, items, live, sha256Of, textIn, told, upload } from "./TransferSteps.ts"

const numbers = Array.from({ length: 60 }, (_, index) => index)

layer(TestServer.shared, live)("small uploads that come at once", (it) => {
  it.effect("are each a file of its own", () =>
    Effect.gen(function* () {
      const { makeUser } = yield* TestServer
      const { key } = yield* makeUser()
      const answers = yield* Effect.forEach(
        numbers,
        (n) => upload([[`${n}.txt`, `text ${n}`]], n % 2 === 0 ? { link: "1" } : {}, { key }),
        { concurrency: "unbounded" }
      )
      for (const [n, answer] of answers.entries()) {
        const [item] = items(answer)
        assert.deepInclude(item, { name: `${n}.txt`, version: 1, fileHash: sha256Of(`text ${n}`) })
        assert.strictEqual(item?.directUrl === null, n % 2 === 1)
        assert.strictEqual(textIn(yield* get(item?.fileId ?? "", key)), `text ${n}`)
      }
    })
  )

  it.effect("count the versions of one name without a gap or a twin", () =>
    Effect.gen(function* () {
      const { makeUser } = yield* TestServer
      const { key } = yield* makeUser()
      const answers = yield* Effect.forEach(numbers, (n) => upload([["a.txt", `text ${n}`]], {}, { key }), {
        concurrency: "unbounded"
      })
      const versions = answers.map((answer) => items(answer)[0]?.version ?? 0)
      assert.deepStrictEqual(
        versions.toSorted((one, other) => one - other),
        numbers.map((n) => n + 1)
      )
    })
  )

  it.effect("fail alone: those beside one that the quota has no room for are stored", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      const { id, key } = yield* makeUser()
      yield* ask("PATCH", `/api/v1/admin/users/${id}`, { json: { storage_quota_bytes: 1_000 } })
      const sizes = [10, 2_000, 20, 30, 3_000, 40]
      const answers = yield* Effect.forEach(
        sizes,
        (size) => upload([[`${size}.txt`, "x".repeat(size)]], {}, { key }),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(
        answers.map((answer) => (answer.status === 200 ? "stored" : told(answer).join(" "))),
        sizes.map((size) => (size < 1_000 ? "stored" : "507 Quota of 1000 bytes reached"))
      )
    })
  )

  it.effect("count once for the quota, also where their length is not told or many come together", () =>
    Effect.gen(function* () {
      const { ask, makeUser, url } = yield* TestServer
      const { id, key } = yield* makeUser()
      yield* ask("PATCH", `/api/v1/admin/users/${id}`, { json: { storage_quota_bytes: 100_000 } })
      const chunked = new ReadableStream({
        start: (controller) => {
          controller.enqueue(new TextEncoder().encode("0123456789"))
          controller.close()
        }
      })
      const put = yield* Effect.promise(() =>
        fetch(`${url}/api/upload/docs/a`, {
          method: "PUT",
          headers: { authorization: `Bearer ${key}` },
          body: chunked,
          duplex: "half"
        })
      )
      assert.strictEqual(put.status, 201)
      const files = [1, 2, 3, 4, 5].map((n) => [`${n}.txt`, String(n).repeat(14_000)] as const)
      assert.strictEqual((yield* upload(files, {}, { key })).status, 200)
    })
  )

  it.effect("make the directories of forms at once, whatever their order", () =>
    Effect.gen(function* () {
      const { makeUser } = yield* TestServer
      const { key } = yield* makeUser()
      // "a-b" is before "a/b" by its bytes, but "a" is made for both.
      const trees = [
        ["a-b/f.txt", "a/b/f.txt"],
        ["a/f.txt", "a-b/g.txt"],
        ["a/b/g.txt", "a-b/c/f.txt"]
      ]
      const answers = yield* Effect.forEach(
        numbers.slice(0, 24),
        (n) => {
          const paths = (trees[n % trees.length] ?? []).map((path) => `${Math.floor(n / 3)}${path}`)
          return upload(
            paths.map((_, index) => [`${index}.txt`, "x".repeat(17_000)]),
            { path: paths },
            { key }
          )
        },
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(
        answers.map(({ status }) => status),
        answers.map(() => 200)
      )
    })
  )

  it.effect("are in their rows, without a file", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const { makeUser } = yield* TestServer
      const { id, key } = yield* makeUser()
      const text = `in a row ${id}`
      yield* upload([["a.txt", text]], {}, { key })
      const found = yield* sql<{ inRow: boolean }>`SELECT bytes IS NOT NULL AS "inRow" FROM blobs
        WHERE sha256 = decode(${sha256Of(text)}, 'hex')`
      assert.deepStrictEqual(found, [{ inRow: true }])
    })
  )
})
