import { createHash } from "node:crypto"
import { rmSync, writeFileSync } from "node:fs"
import { get as httpGet, type IncomingMessage } from "node:http"
import { crc32 } from "node:zlib"
import { assert, describe, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { Directory } from "#src/files/tree/Tree.ts"
import { incoming, pathOf, pieces } from "#test/infra/blobs/BlobSteps.ts"
import { BlobStore } from "#src/infra/blobs/BlobStore.ts"
import { Versions } from "#src/files/tree/Versions.ts"
import { type Answer, type Person, TestServer } from "#test/harness/TestServer.ts"
import { ensured, plain, treeLayer, written } from "../tree/TreeSteps.ts"
import { membersOf, pathsOf } from "./TarContents.ts"

const limits = { archiveEntries: 100, walkEntriesAtOnce: 7 }
const served = treeLayer.pipe(Layer.provideMerge(TestServer.own({ limits })))

const newPerson = Effect.flatMap(TestServer, ({ makeUser }) => makeUser())

const download = (
  { key }: Pick<Person, "key">,
  id: string,
  headers: Readonly<Record<string, string>> = {},
  method = "GET"
) => Effect.flatMap(TestServer, ({ ask }) => ask(method, `/api/download/${id}`, { key, headers }))

const assertBodiless = ({ bytes, status }: Answer, expected: number): void => {
  assert.deepStrictEqual([status, bytes.length], [expected, 0])
}

/** A bucket `docs` with directories and files in it. */
const docsOf = (userId: string) =>
  Effect.gen(function* () {
    const docs = yield* ensured(userId, "docs")
    const inner = yield* ensured(userId, "docs/a/inner")
    yield* ensured(userId, "docs/empty")
    yield* written(docs, "b.txt", "old")
    yield* written(docs, "b.txt", "b")
    yield* written(docs, "a.b", "before a/, in bytes")
    yield* written(inner, "日本語 שלום.txt", "names", { modifiedAt: new Date("2021-02-03T04:05:06.900Z") })
    yield* written(inner, "nothing", "")
    yield* written(docs, "n".repeat(255), "long")
    return docs
  })

const docsPaths = [
  "docs/",
  "docs/a.b",
  "docs/a/",
  "docs/a/inner/",
  "docs/a/inner/nothing",
  "docs/a/inner/日本語 שלום.txt",
  "docs/b.txt",
  "docs/empty/",
  `docs/${"n".repeat(255)}`
]

/** An answer of which the client takes nothing until `resume`. */
const paused = ({ key }: Pick<Person, "key">, id: string) =>
  Effect.flatMap(TestServer, ({ url }) =>
    Effect.promise(
      () =>
        new Promise<IncomingMessage>((resolve, reject) => {
          const headers = { authorization: `Bearer ${key}` }
          httpGet(`${url}/api/download/${id}`, { headers }, (response) => resolve(response.pause())).on(
            "error",
            reject
          )
        })
    )
  )

/** The bytes that came, and whether it was all that was said. */
const resumed = (response: IncomingMessage) =>
  Effect.promise(async () => {
    const pieces: Array<Buffer> = []
    const ended = new Promise<void>((resolve) => {
      response.on("data", (piece: Buffer) => pieces.push(piece))
      response.on("error", () => resolve())
      response.on("close", () => resolve())
    })
    response.resume()
    await ended
    return { bytes: Buffer.concat(pieces), isWhole: response.complete }
  })

/** Files of 8 MiB, whose bytes no buffers on the way hold. */
const large = (directory: Directory, count: number) =>
  Effect.forEach(
    Array.from({ length: count }, (_, n) => n),
    (n) =>
      Effect.gen(function* () {
        const blobs = yield* BlobStore
        const { write } = yield* Versions
        const { userId } = directory
        const bytes = pieces(Array.from({ length: 8 }, () => `${n}`.repeat(1024 * 1024)))
        yield* blobs.put(incoming(userId, null, 2 ** 24), bytes, (blob) =>
          write(userId, "test", { ...plain, directory, name: `large ${n}`, blob })
        )
      }),
    { discard: true }
  )

const untilNoted = ({ sha256 }: { readonly sha256: string }) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient
    const isNoted = Effect.map(
      sql<{ damaged: boolean }>`SELECT damaged FROM blobs WHERE sha256 = decode(${sha256}, 'hex')`,
      ([row]) => row?.damaged === true
    )
    while (!(yield* isNoted)) yield* Effect.sleep(10)
  })

layer(served, { excludeTestServices: true, timeout: "120 seconds" })("archives", (it) => {
  describe("GET /api/download/{dirId}", () => {
    it.effect(
      "is a .tgz of the directory with all below it: current versions, in the order of path bytes",
      () =>
        Effect.gen(function* () {
          const person = yield* newPerson
          const docs = yield* docsOf(person.id)
          const answer = yield* download(person, docs.id)
          assert.strictEqual(answer.status, 200)
          assert.strictEqual(answer.headers.get("content-type"), "application/x-gzip")
          assert.strictEqual(answer.headers.get("content-disposition"), `attachment; filename="docs.tgz"`)
          assert.strictEqual(answer.headers.get("content-length"), String(answer.bytes.length))
          assert.strictEqual(answer.headers.get("accept-ranges"), "bytes")
          assert.strictEqual(answer.headers.get("cache-control"), "private, no-cache")
          assert.strictEqual(answer.headers.get("x-content-type-options"), "nosniff")
          const members = membersOf(answer.bytes)
          assert.deepStrictEqual(
            members.map(({ path }) => path),
            docsPaths
          )
          assert.deepStrictEqual(
            members.map(({ text }) => text),
            ["", "before a/, in bytes", "", "", "", "names", "b", "", "long"]
          )
          // The file's own time, in seconds.
          assert.strictEqual(members[5]?.modifiedSeconds, Date.parse("2021-02-03T04:05:06Z") / 1000)
        })
    )

    it.effect("begins with the directory asked for, and is named after it, in any script", () =>
      Effect.gen(function* () {
        const person = yield* newPerson
        const directory = yield* ensured(person.id, 'box/über "x"')
        yield* written(directory, "f", "1")
        const answer = yield* download(person, directory.id)
        assert.deepStrictEqual(pathsOf(answer.bytes), ['über "x"/', 'über "x"/f'])
        assert.strictEqual(
          answer.headers.get("content-disposition"),
          `attachment; filename="_ber _x_.tgz"; filename*=UTF-8''%C3%BCber%20%22x%22.tgz`
        )
      })
    )

    it.effect("of root has all buckets but those of machines, and is files.tgz", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        const person = yield* newPerson
        assert.deepStrictEqual(pathsOf((yield* download(person, "root")).bytes), [])
        yield* docsOf(person.id)
        yield* written(yield* ensured(person.id, "alpha"), "z", "1")
        const machine = yield* ensured(person.id, "machine")
        yield* written(machine, "hidden", "1")
        yield* sql`UPDATE directories SET kind = 'device' WHERE id = ${machine.id}`
        yield* written(yield* ensured((yield* newPerson).id, "others"), "f", "1")
        const answer = yield* download(person, "root")
        assert.strictEqual(answer.headers.get("content-disposition"), `attachment; filename="files.tgz"`)
        assert.deepStrictEqual(pathsOf(answer.bytes), ["alpha/", "alpha/z", ...docsPaths])
      })
    )

    it.effect("has nothing that is in the trash", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        const person = yield* newPerson
        const docs = yield* docsOf(person.id)
        yield* sql`UPDATE file_groups SET trash_id = 'tr' WHERE user_id = ${person.id} AND name = 'b.txt'`
        yield* sql`UPDATE directories SET trash_id = 'tr' WHERE user_id = ${person.id} AND name = 'empty'`
        const gone = ["docs/b.txt", "docs/empty/"]
        assert.deepStrictEqual(
          pathsOf((yield* download(person, docs.id)).bytes),
          docsPaths.filter((path) => !gone.includes(path))
        )
      })
    )

    it.effect("gives a file that shares its name with a directory a name that no other has", () =>
      Effect.gen(function* () {
        const person = yield* newPerson
        const docs = yield* ensured(person.id, "docs")
        yield* written(yield* ensured(person.id, "docs/n.txt"), "inside", "1")
        yield* written(docs, "n.txt", "the file")
        yield* written(docs, "n (1).txt", "another")
        const members = membersOf((yield* download(person, docs.id)).bytes)
        assert.deepStrictEqual(
          members.map(({ path, text }) => [path, text]),
          [
            ["docs/", ""],
            ["docs/n (1).txt", "another"],
            ["docs/n (2).txt", "the file"],
            ["docs/n.txt/", ""],
            ["docs/n.txt/inside", "1"]
          ]
        )
      })
    )

    it.effect("names encrypted files NAME.sbx, with their bytes as they are stored", () =>
      Effect.gen(function* () {
        const person = yield* newPerson
        const docs = yield* ensured(person.id, "docs")
        const sealed = { isEncrypted: true, encryptionKeyId: "ek_1" }
        yield* written(docs, "a", "sealed", sealed)
        yield* written(docs, "b", "sealed too", sealed)
        yield* written(docs, "b.sbx", "plain")
        yield* written(docs, "c".repeat(255), "long", sealed)
        const members = membersOf((yield* download(person, docs.id)).bytes)
        assert.deepStrictEqual(
          members.slice(1).map(({ path, text }) => [path, text]),
          [
            ["docs/a.sbx", "sealed"],
            ["docs/b (1).sbx", "sealed too"],
            ["docs/b.sbx", "plain"],
            [`docs/${"c".repeat(247)} (1).sbx`, "long"]
          ]
        )
      })
    )
  })

  describe("HEAD, ranges and conditions", () => {
    it.effect("HEAD says what GET would, without a body", () =>
      Effect.gen(function* () {
        const person = yield* newPerson
        const docs = yield* docsOf(person.id)
        const got = yield* download(person, docs.id)
        const head = yield* download(person, docs.id, {}, "HEAD")
        assertBodiless(head, 200)
        for (const name of ["content-length", "etag", "content-type", "content-disposition", "accept-ranges"])
          assert.strictEqual(head.headers.get(name), got.headers.get(name), name)
      })
    )

    it.effect("any two ranges join to the whole, by If-Range too", () =>
      Effect.gen(function* () {
        const person = yield* newPerson
        const docs = yield* docsOf(person.id)
        yield* written(docs, "large", "x".repeat(99_000))
        const { bytes, headers } = yield* download(person, docs.id)
        const etag = headers.get("etag") ?? ""
        for (const cut of [1, 10, 512, 65_545, 70_000, bytes.length - 9, bytes.length - 1]) {
          const first = yield* download(person, docs.id, { range: `bytes=0-${cut - 1}` })
          const rest = yield* download(person, docs.id, { range: `bytes=${cut}-`, "if-range": etag })
          assert.deepStrictEqual([first.status, rest.status], [206, 206])
          assert.strictEqual(
            rest.headers.get("content-range"),
            `bytes ${cut}-${bytes.length - 1}/${bytes.length}`
          )
          assert.isTrue(Buffer.concat([first.bytes, rest.bytes]).equals(bytes), `cut at ${cut}`)
        }
        const last = yield* download(person, docs.id, { range: "bytes=-8" })
        assert.isTrue(Buffer.from(last.bytes).equals(bytes.subarray(-8)))
        const beyond = yield* download(person, docs.id, { range: `bytes=${bytes.length}-` })
        assertBodiless(beyond, 416)
        assert.strictEqual(beyond.headers.get("content-range"), `bytes */${bytes.length}`)
      })
    )

    it.effect(
      "the ETag is that of the entries: it changes with any of them, and a range of before is the whole",
      () =>
        Effect.gen(function* () {
          const person = yield* newPerson
          const docs = yield* docsOf(person.id)
          const etag = (yield* download(person, docs.id)).headers.get("etag") ?? ""
          assert.match(etag, /^"[0-9a-f]{64}"$/)
          assertBodiless(yield* download(person, docs.id, { "if-none-match": etag }), 304)
          assertBodiless(yield* download(person, docs.id, { "if-match": '"other"' }), 412)
          assert.strictEqual((yield* download(person, docs.id, { "if-match": etag })).status, 200)
          yield* written(docs, "b.txt", "newer")
          const changed = yield* download(person, docs.id, { range: "bytes=5-", "if-range": etag })
          assert.strictEqual(changed.status, 200)
          assert.notStrictEqual(changed.headers.get("etag"), etag)
          assert.strictEqual((yield* download(person, docs.id, { "if-none-match": etag })).status, 200)
        })
    )
  })

  describe("access", () => {
    it.effect("takes the scope read, or read of the bucket; all errors are without a body", () =>
      Effect.gen(function* () {
        const { makeKey } = yield* TestServer
        const person = yield* newPerson
        const docs = yield* docsOf(person.id)
        const inner = yield* ensured(person.id, "docs/a/inner")
        yield* written(yield* ensured(person.id, "other"), "f", "1")
        const keyOf = (...scopes: ReadonlyArray<string>) => makeKey({ scopes, user_id: person.id })
        assert.strictEqual((yield* download(yield* keyOf("read"), docs.id)).status, 200)
        assertBodiless(yield* download(yield* keyOf("write"), docs.id), 403)
        assertBodiless(yield* download(yield* keyOf("write:docs"), "root"), 403)
        assertBodiless(yield* download(yield* keyOf("replicate"), "root"), 403)
        const ofDocs = yield* keyOf("read:docs")
        assert.strictEqual((yield* download(ofDocs, inner.id)).status, 200)
        assert.deepStrictEqual(pathsOf((yield* download(ofDocs, "root")).bytes), docsPaths)
        assertBodiless(yield* download(yield* keyOf("read:other"), docs.id), 404)
        assertBodiless(yield* download({ key: "" }, docs.id), 401)
        assertBodiless(yield* download({ key: "sk_nonsense" }, "root"), 401)
      })
    )

    it.effect("takes the cookie of a session", () =>
      Effect.gen(function* () {
        const { ask } = yield* TestServer
        const person = yield* newPerson
        const docs = yield* docsOf(person.id)
        const session = yield* ask("POST", "/api/session", { key: person.key })
        const cookie = session.headers.get("set-cookie")?.split(";")[0] ?? ""
        const answer = yield* download({ key: "" }, docs.id, { cookie })
        assert.deepStrictEqual(pathsOf(answer.bytes), docsPaths)
      })
    )

    it.effect("404 for what is not there, not the caller's, in the trash, or no id at all", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        const [person, other] = [yield* newPerson, yield* newPerson]
        const docs = yield* docsOf(other.id)
        for (const id of [
          docs.id,
          "dir_0000000000000000000000",
          "x".repeat(999),
          "%00",
          "%ff",
          "a%2Fb",
          "Root"
        ])
          assertBodiless(yield* download(person, id), 404)
        yield* sql`UPDATE directories SET trash_id = 'tr' WHERE id = ${docs.id}`
        assertBodiless(yield* download(other, docs.id), 404)
      })
    )

    it.effect("is cut where its key ends", () =>
      Effect.gen(function* () {
        const { ask, makeKey } = yield* TestServer
        const person = yield* newPerson
        const docs = yield* ensured(person.id, "docs")
        yield* large(docs, 4)
        const revoked = yield* makeKey({ user_id: person.id })
        const kept = yield* paused(person, "root")
        const response = yield* paused(revoked, "root")
        yield* ask("DELETE", `/api/v1/keys/${revoked.id}`)
        while ((yield* download(revoked, docs.id, {}, "HEAD")).status !== 401) yield* Effect.sleep(20)
        // A second from the revocation, and more on a busy machine.
        yield* Effect.sleep(3_000)
        assert.isFalse((yield* resumed(response)).isWhole)
        assert.isTrue((yield* resumed(kept)).isWhole)
      })
    )
  })

  describe("what it is made of", () => {
    it.effect("is one snapshot: what changes while it is sent does not change it", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        const person = yield* newPerson
        const docs = yield* ensured(person.id, "docs")
        yield* large(docs, 4)
        const before = yield* download(person, docs.id)
        const response = yield* paused(person, docs.id)
        for (const n of [0, 2]) yield* written(docs, `large ${n}`, "changed")
        yield* sql`UPDATE file_groups SET trash_id = 'tr' WHERE user_id = ${person.id} AND name = 'large 3'`
        const { bytes, isWhole } = yield* resumed(response)
        assert.isTrue(isWhole)
        assert.isTrue(bytes.equals(before.bytes))
        assert.isBelow((yield* download(person, docs.id)).bytes.length, bytes.length)
      })
    )

    it.effect("computes a CRC-32 that nothing has computed, and keeps it", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        const person = yield* newPerson
        const docs = yield* docsOf(person.id)
        const before = yield* download(person, docs.id)
        const { sha256 } = yield* written(docs, "unsummed", `only ${person.id}`)
        const sums = sql<{ crc32: number | null }>`SELECT crc32::float8 FROM blobs
          WHERE sha256 = decode(${sha256}, 'hex')`
        yield* sql`UPDATE blobs SET crc32 = NULL WHERE sha256 = decode(${sha256}, 'hex')`
        const answer = yield* download(person, docs.id)
        assert.strictEqual(pathsOf(answer.bytes).length, pathsOf(before.bytes).length + 1)
        assert.deepStrictEqual(yield* sums, [{ crc32: crc32(`only ${person.id}`) }])
      })
    )

    it.effect("503 where bytes are known to be damaged; nothing of it is sent", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        const person = yield* newPerson
        const docs = yield* docsOf(person.id)
        const { sha256 } = yield* written(docs, "hurt", `hurt ${person.id}`)
        yield* sql`UPDATE blobs SET damaged = true WHERE sha256 = decode(${sha256}, 'hex')`
        assertBodiless(yield* download(person, docs.id), 503)
        assertBodiless(yield* download(person, docs.id, {}, "HEAD"), 503)
      })
    )

    it.effect("is cut where bytes turn out to be missing or too few, and that is noted", () =>
      Effect.gen(function* () {
        for (const damage of ["missing", "short"]) {
          const person = yield* newPerson
          const docs = yield* ensured(person.id, "docs")
          yield* large(docs, 1)
          const file = yield* written(docs, "lost", `lost ${damage} ${person.id}`)
          if (damage === "missing") rmSync(yield* pathOf(file))
          else writeFileSync(yield* pathOf(file), "lost")
          const { bytes, isWhole } = yield* resumed(yield* paused(person, docs.id))
          assert.isFalse(isWhole)
          assert.isBelow(bytes.length, 9 * 1024 * 1024)
          yield* untilNoted(file)
          assert.strictEqual((yield* download(person, docs.id)).status, 503)
        }
      })
    )

    it.effect("503 where the first bytes turn out to be missing", () =>
      Effect.gen(function* () {
        const person = yield* newPerson
        const docs = yield* docsOf(person.id)
        const file = yield* written(docs, "lost", `lost at once ${person.id}`)
        rmSync(yield* pathOf(file))
        assertBodiless(yield* download(person, docs.id), 503)
        yield* untilNoted(file)
      })
    )

    it.effect("has a limit of entries: 422", () =>
      Effect.gen(function* () {
        const person = yield* newPerson
        const docs = yield* ensured(person.id, "docs")
        for (let n = 0; n < 99; n++) yield* written(docs, `f${n}`, "")
        assert.strictEqual((yield* download(person, docs.id)).status, 200)
        yield* written(docs, "one more", "")
        assertBodiless(yield* download(person, docs.id), 422)
      })
    )

    it.effect("has files as they were uploaded, short ones that live in their rows too", () =>
      Effect.gen(function* () {
        const { ask } = yield* TestServer
        const { id, key } = yield* newPerson
        const texts = ["", "short", "x".repeat(70_000), "y".repeat(20_000), "short too"]
        for (const [n, body] of texts.entries())
          assert.strictEqual((yield* ask("PUT", `/api/upload/rows/${n}`, { key, body })).status, 201)
        const sql = yield* SqlClient
        const [rows] = yield* sql<{ count: number }>`SELECT count(*)::int AS count FROM file_versions v
          JOIN blobs b USING (store, sha256) WHERE b.bytes IS NOT NULL AND v.user_id = ${id}`
        assert.isAbove(rows?.count ?? 0, 0)
        const { bytes } = yield* download({ key }, "root")
        assert.deepStrictEqual(
          membersOf(bytes).map(({ text }) => text),
          ["", ...texts]
        )
      })
    )

    it.effect("holds the bytes of each file under its hash", () =>
      Effect.gen(function* () {
        const person = yield* newPerson
        const docs = yield* docsOf(person.id)
        const file = yield* written(docs, "hashed", "x".repeat(70_000))
        const member = membersOf((yield* download(person, docs.id)).bytes).find(
          ({ path }) => path === "docs/hashed"
        )
        assert.strictEqual(
          createHash("sha256")
            .update(member?.text ?? "")
            .digest("hex"),
          file.sha256
        )
      })
    )
  })
})
