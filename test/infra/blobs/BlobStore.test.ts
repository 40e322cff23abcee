import { assert, describe, layer } from "@effect/vitest"
import { Effect, Exit, Layer, Result } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { createHash } from "node:crypto"
import { closeSync, existsSync, mkdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { TestStores } from "#test/harness/TestStores.ts"
import { AppConfig } from "#src/Config.ts"
import { newId } from "#src/infra/crypto/Tokens.ts"
import { BlobFiles, type BlobSource } from "#src/infra/blobs/BlobFiles.ts"
import { BlobDirectory } from "#src/infra/blobs/BlobDirectory.ts"
import { type Blob, BlobIndex } from "#src/infra/blobs/BlobIndex.ts"
import { BlobStore, openNew } from "#src/infra/blobs/BlobStore.ts"
import { makeUpkeep } from "#src/infra/blobs/BlobUpkeep.ts"
import { blobFiles, uploadFiles } from "./StoredBlobs.ts"

const kept = { blobKeptMillis: -1, blobCheckMillis: -1 }
const stores = BlobStore.layer.pipe(Layer.provideMerge(TestStores.layerWith({ limits: kept })))

const sha256Of = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex")

/** A source of these pieces, which fails at its end where that is said. */
const pieces = (all: ReadonlyArray<string>, fails = false): BlobSource<"cut off"> => {
  const left = [...all]
  return async () => {
    const next = left.shift()
    if (next !== undefined) return Result.succeed(Buffer.from(next))
    return fails ? Result.fail("cut off") : Result.succeed(undefined)
  }
}

const sourceOf =
  (steps: Array<() => Promise<string | undefined>>): BlobSource<never> =>
  async () => {
    const text = await steps.shift()?.()
    return Result.succeed(text === undefined ? undefined : Buffer.from(text))
  }

const newUser = Effect.gen(function* () {
  const sql = yield* SqlClient
  const id = newId("usr")
  yield* sql`INSERT INTO users (id, email, name, role) VALUES (${id}, ${`${id}@example.com`}, 'U', 'user')`
  return id
})

const incoming = (userId: string, quotaBytes: number | null = null, maxBytes = 1_000) => ({
  userId,
  quotaBytes,
  maxBytes
})

const ownerOf = (userId: string, expiresAt: Date | null = null) => ({ userId, source: "test", expiresAt })

const put = (userId: string, text: string, ref: string, expiresAt: Date | null = null) =>
  Effect.flatMap(BlobStore, (blobs) =>
    blobs.put(incoming(userId), pieces([text]), (blob) =>
      Effect.as(blobs.refer(ref, blob, ownerOf(userId, expiresAt)), blob)
    )
  )

const usageOf = (userId: string) =>
  Effect.flatMap(SqlClient, (sql) =>
    Effect.map(
      sql<{ bytes: number; reserved: number }>`SELECT
        coalesce((SELECT bytes FROM blob_usage WHERE user_id = ${userId}), 0)::int AS bytes,
        coalesce((SELECT sum(reserved) FROM blob_uploads WHERE user_id = ${userId}), 0)::int AS reserved`,
      ([row]) => row
    )
  )

const pathOf = ({ sha256 }: Pick<Blob, "sha256">) =>
  Effect.map(BlobStore, ({ directory }) => join(directory, sha256.slice(0, 2), sha256.slice(2, 4), sha256))

const isThere = (blob: Pick<Blob, "sha256">) => Effect.map(pathOf(blob), existsSync)

const tagOf = <A, E extends { readonly _tag: string } | string, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.map(Effect.flip(effect), (error) => (typeof error === "string" ? error : error._tag))

const temporaryFiles = Effect.map(BlobStore, ({ directory }) => uploadFiles(directory))

layer(stores, { excludeTestServices: true })("blobs", (it) => {
  describe("put", () => {
    it.effect("keeps equal bytes once, for as long as a record refers to them", () =>
      Effect.gen(function* () {
        const { release, upkeep } = yield* BlobStore
        const [one, other] = [yield* newUser, yield* newUser]
        const blob = yield* put(one, "same", "test 1")
        assert.deepStrictEqual(blob, { sha256: sha256Of(Buffer.from("same")), sizeBytes: 4 })
        assert.deepStrictEqual(yield* put(other, "same", "test 2"), blob)
        assert.strictEqual(readFileSync(yield* pathOf(blob), "utf8"), "same")
        assert.deepStrictEqual(yield* usageOf(one), { bytes: 4, reserved: 0 })
        assert.deepStrictEqual(yield* usageOf(other), { bytes: 4, reserved: 0 })

        yield* release("test 1")
        yield* release("test 1")
        yield* upkeep.collect
        assert.isTrue(yield* isThere(blob))
        assert.deepStrictEqual(yield* usageOf(one), { bytes: 0, reserved: 0 })
        yield* release("test 2")
        yield* upkeep.collect
        assert.isFalse(yield* isThere(blob))
        assert.deepStrictEqual(yield* temporaryFiles, [])
      })
    )

    it.effect("leaves nothing of what fails: the source, its length, the record", () =>
      Effect.gen(function* () {
        const blobs = yield* BlobStore
        const user = yield* newUser
        const refer = (blob: Blob) => blobs.refer("test 3", blob, ownerOf(user))
        assert.strictEqual(
          yield* tagOf(blobs.put(incoming(user), pieces(["a", "b"], true), refer)),
          "cut off"
        )
        const long = blobs.put(incoming(user), pieces(["c".repeat(999), "dd"]), refer)
        assert.strictEqual(yield* tagOf(long), "BlobTooLarge")
        const refused = blobs.put(incoming(user), pieces(["refused"]), (blob) =>
          Effect.andThen(refer(blob), Effect.fail("refused"))
        )
        assert.strictEqual(yield* tagOf(refused), "refused")
        assert.deepStrictEqual(yield* usageOf(user), { bytes: 0, reserved: 0 })
        assert.deepStrictEqual(yield* temporaryFiles, [])
        // The file came before the record, so it may stay a while without a row.
        yield* blobs.upkeep.collect
        assert.isFalse(yield* isThere({ sha256: sha256Of(Buffer.from("refused")) }))
      })
    )

    it.effect("ends a reference at its expiry", () =>
      Effect.gen(function* () {
        const { upkeep } = yield* BlobStore
        const user = yield* newUser
        const lasting = yield* put(user, "lasts", "test 13", new Date(Date.now() + 3_600_000))
        const brief = yield* put(user, "brief", "test 14", new Date(Date.now() - 1))
        yield* upkeep.collect
        yield* upkeep.collect
        assert.deepStrictEqual([yield* isThere(lasting), yield* isThere(brief)], [true, false])
        assert.deepStrictEqual(yield* usageOf(user), { bytes: 5, reserved: 0 })
      })
    )

    it.effect("counts what is on its way towards the quota, and what is there", () =>
      Effect.gen(function* () {
        const blobs = yield* BlobStore
        const user = yield* newUser
        const ofQuota = incoming(user, 250, 100)
        const first = yield* blobs.begin(ofQuota)
        yield* blobs.begin(ofQuota)
        assert.strictEqual(yield* tagOf(blobs.begin(ofQuota)), "QuotaReached")
        yield* blobs.append(first, 0, pieces(["0123456789"]))
        yield* blobs.finish(first, (blob) => blobs.refer("test 4", blob, ownerOf(user)))
        assert.deepStrictEqual(yield* usageOf(user), { bytes: 10, reserved: 100 })
        yield* blobs.begin(ofQuota)
        assert.deepStrictEqual(yield* usageOf(user), { bytes: 10, reserved: 200 })
        // All that are begun at once are counted one after the other.
        for (let time = 0; time < 5; time++) {
          const together = yield* newUser
          yield* put(together, "of before", `test together ${time}`)
          const begun = yield* Effect.all(
            Array.from({ length: 8 }, () => Effect.exit(blobs.begin(incoming(together, 250, 100)))),
            { concurrency: "unbounded" }
          )
          assert.strictEqual(begun.filter(Exit.isSuccess).length, 2)
        }
      })
    )
  })

  it.effect("a blob is not collected while it is made: its file is there before its row", () =>
    Effect.gen(function* () {
      const blobs = yield* BlobStore
      const user = yield* newUser
      const run = Effect.runPromiseWith(yield* Effect.context<never>())
      let collecting: Promise<unknown> = Promise.resolve()
      const blob = yield* blobs.put(incoming(user), pieces(["being made"]), (made) =>
        Effect.gen(function* () {
          collecting = run(blobs.upkeep.collect)
          yield* Effect.sleep(300)
          yield* blobs.refer("test 18", made, ownerOf(user))
          return made
        })
      )
      yield* Effect.promise(() => collecting)
      assert.isTrue(yield* isThere(blob))
    })
  )

  describe("an upload in several requests", () => {
    it.effect("goes on where it was cut off", () =>
      Effect.gen(function* () {
        const blobs = yield* BlobStore
        const user = yield* newUser
        const id = yield* blobs.begin(incoming(user))
        assert.strictEqual(yield* tagOf(blobs.append(id, 0, pieces(["ab", "cd"], true))), "cut off")
        assert.deepStrictEqual(yield* blobs.append(id, 3, pieces(["x"])), { _tag: "WrongOffset", written: 4 })
        assert.strictEqual(yield* blobs.append(id, 4, pieces(["ef"])), 6)
        const blob = yield* blobs.finish(id, (made) =>
          Effect.as(blobs.refer("test 5", made, ownerOf(user)), made)
        )
        assert.deepStrictEqual(blob, { sha256: sha256Of(Buffer.from("abcdef")), sizeBytes: 6 })
        assert.strictEqual(yield* tagOf(blobs.abort(id)), "UploadGone")
      })
    )

    it.effect("takes no more than was said, and may be empty", () =>
      Effect.gen(function* () {
        const blobs = yield* BlobStore
        const user = yield* newUser
        const id = yield* blobs.begin(incoming(user, null, 5))
        yield* blobs.append(id, 0, pieces(["abc"]))
        assert.strictEqual(yield* tagOf(blobs.append(id, 3, pieces(["def"]))), "BlobTooLarge")
        assert.strictEqual(yield* blobs.append(id, 3, pieces(["de"])), 5)
        yield* blobs.abort(id)
        const empty = yield* blobs.begin(incoming(user))
        const blob = yield* blobs.finish(empty, (made) =>
          Effect.as(blobs.refer("test 15", made, ownerOf(user)), made)
        )
        assert.strictEqual(blob.sizeBytes, 0)
      })
    )

    it.effect("drops bytes behind the durable offset, which a process wrote before it died", () =>
      Effect.gen(function* () {
        const blobs = yield* BlobStore
        const sql = yield* SqlClient
        const user = yield* newUser
        const id = yield* blobs.begin(incoming(user))
        yield* blobs.append(id, 0, pieces(["abc"]))
        writeFileSync(join(blobs.directory, "tmp", `${id}.0`), "abcXYZ")
        yield* sql`UPDATE blob_uploads SET busy = true WHERE id = ${id}`
        yield* blobs.append(id, 3, pieces(["d"]))
        const blob = yield* blobs.finish(id, (made) =>
          Effect.as(blobs.refer("test 6", made, ownerOf(user)), made)
        )
        assert.strictEqual(readFileSync(yield* pathOf(blob), "utf8"), "abcd")
      })
    )

    it.effect("belongs to the last request: an earlier one that still writes cannot touch its bytes", () =>
      Effect.gen(function* () {
        const blobs = yield* BlobStore
        const user = yield* newUser
        const id = yield* blobs.begin(incoming(user, null, 100_000))
        const run = Effect.runPromiseWith(yield* Effect.context<never>())
        const late = Promise.withResolvers<void>()
        const begun = Promise.withResolvers<void>()
        // The later request waits amid its bytes until the earlier one has written.
        const later: Array<() => Promise<string | undefined>> = [
          async () => "a".repeat(40_000),
          async () => {
            begun.resolve()
            await late.promise
            return "b".repeat(40_000)
          },
          async () => undefined
        ]
        let appending: Promise<unknown> = Promise.resolve()
        const earlier: Array<() => Promise<string | undefined>> = [
          async () => {
            appending = run(blobs.append(id, 0, sourceOf(later)))
            await begun.promise
            return "late".repeat(10_000)
          },
          async () => undefined
        ]
        assert.strictEqual(yield* tagOf(blobs.append(id, 0, sourceOf(earlier))), "UploadGone")
        late.resolve()
        yield* Effect.promise(() => appending)
        const blob = yield* blobs.finish(id, (made) =>
          Effect.as(blobs.refer("test 16", made, ownerOf(user)), made)
        )
        const text = readFileSync(yield* pathOf(blob), "utf8")
        assert.isTrue(text === "a".repeat(40_000) + "b".repeat(40_000))
      })
    )

    it.effect("ends by its owner, when nothing goes on with it, and where its bytes were lost", () =>
      Effect.gen(function* () {
        const blobs = yield* BlobStore
        const sql = yield* SqlClient
        const user = yield* newUser
        const ended = yield* blobs.begin(incoming(user))
        yield* blobs.abort(ended)
        assert.strictEqual(yield* tagOf(blobs.abort(ended)), "UploadGone")
        const left = yield* blobs.begin(incoming(user))
        yield* blobs.append(left, 0, pieces(["left"]))
        yield* sql`UPDATE blob_uploads SET expires_at = now() - interval '1 s' WHERE id = ${left}`
        yield* blobs.upkeep.collect
        const lost = yield* blobs.begin(incoming(user))
        yield* blobs.append(lost, 0, pieces(["lost"]))
        rmSync(join(blobs.directory, "tmp", `${lost}.0`))
        assert.strictEqual(yield* tagOf(blobs.append(lost, 4, pieces(["more"]))), "UploadGone")
        assert.deepStrictEqual(yield* usageOf(user), { bytes: 0, reserved: 0 })
        assert.deepStrictEqual(yield* temporaryFiles, [])
      })
    )
  })

  it.effect("a blob that is cut, changed or missing is noted, and well again once its bytes come again", () =>
    Effect.gen(function* () {
      const { open, upkeep } = yield* BlobStore
      const user = yield* newUser
      const texts = ["to be cut", "to be changed", "to be missed", "well"]
      const made = yield* Effect.forEach(texts, (text) => put(user, text, `test ${text}`))
      const paths = yield* Effect.forEach(made, pathOf)
      const [cut = "", changed = "", missing = ""] = paths
      yield* upkeep.scrub
      assert.strictEqual(yield* upkeep.damaged, 0)
      truncateSync(cut, 3)
      writeFileSync(changed, "to be chanGed")
      rmSync(missing)
      yield* upkeep.scrub
      assert.strictEqual(yield* upkeep.damaged, 3)
      yield* upkeep.scrub
      assert.deepInclude(upkeep.totals, { damaged: 3 })
      for (const text of texts) yield* put(user, text, `test again ${text}`)
      assert.strictEqual(yield* upkeep.damaged, 0)
      assert.deepStrictEqual(
        paths.map((path) => readFileSync(path, "utf8")),
        texts
      )
      for (const blob of made) closeSync(yield* open(blob))
    })
  )

  it.effect("a reader of one that is cut, changed or missing is refused, and it is noted", () =>
    Effect.gen(function* () {
      const { open, read, upkeep } = yield* BlobStore
      const user = yield* newUser
      const made = yield* Effect.forEach(["cut it", "change it", "miss it"], (text) =>
        put(user, text, `test ${text}`)
      )
      const [cut = "", changed = "", missing = ""] = yield* Effect.forEach(made, pathOf)
      truncateSync(cut, 1)
      writeFileSync(changed, "changE it")
      rmSync(missing)
      const before = upkeep.totals.damaged
      for (const blob of made) assert.match((yield* Effect.flip(read(blob))).message, /damaged or missing/)
      assert.strictEqual(yield* upkeep.damaged, 3)
      for (const blob of [made[0], made[2]])
        if (blob !== undefined) assert.match((yield* Effect.flip(open(blob))).message, /damaged or missing/)
      assert.strictEqual(upkeep.totals.damaged - before, 3)
      for (const text of ["cut it", "change it", "miss it"]) yield* put(user, text, `test again ${text}`)
      assert.strictEqual(yield* upkeep.damaged, 0)
    })
  )

  it.effect("a directory that is another one, as of a disk that is not mounted, is left alone", () =>
    Effect.gen(function* () {
      const { directory, upkeep } = yield* BlobStore
      const user = yield* newUser
      yield* put(user, "mounted", "test 17")
      const identity = join(directory, "store")
      const id = readFileSync(identity, "utf8")
      writeFileSync(identity, "0".repeat(32))
      assert.strictEqual(yield* tagOf(upkeep.scrub), "BlobsUnusable")
      assert.strictEqual(yield* tagOf(upkeep.collect), "BlobsUnusable")
      writeFileSync(identity, id)
      assert.strictEqual(yield* upkeep.damaged, 0)
      assert.sameMembers(
        [...blobFiles(directory)].filter((sha256) => sha256 === sha256Of(Buffer.from("mounted"))),
        [sha256Of(Buffer.from("mounted"))]
      )
    })
  )

  it.effect("files without a row go, but those from before this database knew the directory", () =>
    Effect.gen(function* () {
      const { directory, id, upkeep } = yield* BlobStore
      const sql = yield* SqlClient
      const stray = (sha256: string): string => {
        mkdirSync(join(directory, sha256.slice(0, 2), sha256.slice(2, 4)), { recursive: true })
        const path = join(directory, sha256.slice(0, 2), sha256.slice(2, 4), sha256)
        writeFileSync(path, "stray")
        return path
      }
      const path = stray("a".repeat(64))
      yield* upkeep.collect
      assert.isFalse(existsSync(path))
      yield* sql`UPDATE blob_stores SET created_at = now() + interval '1 hour' WHERE id = ${id}`
      const foreign = stray("b".repeat(64))
      const again = yield* Layer.build(Layer.fresh(BlobStore.layer))
      yield* Effect.provide(
        Effect.flatMap(BlobStore, (blobs) => blobs.upkeep.collect),
        again
      )
      assert.isTrue(existsSync(foreign))
      rmSync(foreign)
      yield* sql`UPDATE blob_stores SET created_at = now() - interval '1 hour' WHERE id = ${id}`
    }).pipe(Effect.scoped)
  )

  it.effect("a collection that has lost its lock, as its connection is gone, puts the file back", () =>
    Effect.gen(function* () {
      const { directory, id } = yield* BlobStore
      const sql = yield* SqlClient
      const { limits } = yield* AppConfig
      let asked = 0
      class DyingIndex extends BlobIndex {
        override has(sha256: string) {
          return ++asked === 2
            ? Effect.andThen(sql`SELECT pg_terminate_backend(pg_backend_pid())`, super.has(sha256))
            : super.has(sha256)
        }
      }
      const place = new BlobDirectory(directory)
      const upkeep = makeUpkeep({
        files: new BlobFiles(place, openNew),
        index: new DyingIndex(sql, id),
        sql,
        limits,
        recognise: place.recognise(id),
        haveRoom: Effect.void,
        knownSince: 0
      })
      const stray = { sha256: "c".repeat(64) }
      mkdirSync(join(directory, "cc", "cc"), { recursive: true })
      writeFileSync(yield* pathOf(stray), "of another process by now")
      assert.isTrue(Exit.isFailure(yield* Effect.exit(upkeep.collect)))
      assert.strictEqual(asked, 2)
      assert.isTrue(yield* isThere(stray))
      assert.deepStrictEqual(yield* temporaryFiles, [])
      yield* upkeep.collect
      assert.isFalse(yield* isThere(stray))
    })
  )

  it.effect("a whole file is adopted and left, also after a try that died", () =>
    Effect.gen(function* () {
      const blobs = yield* BlobStore
      const { dataDir } = yield* TestStores
      const user = yield* newUser
      const path = join(dataDir, "adopted")
      writeFileSync(path, "adopted")
      const blob = { sha256: sha256Of(Buffer.from("adopted")), sizeBytes: 7 }
      const died = blobs.adopt(path, blob, () => Effect.fail("died"))
      assert.strictEqual(yield* tagOf(died), "died")
      yield* blobs.upkeep.collect
      assert.strictEqual(readFileSync(path, "utf8"), "adopted")
      yield* blobs.adopt(path, blob, (made) => blobs.refer("test 11", made, ownerOf(user)))
      rmSync(path)
      yield* blobs.upkeep.collect
      assert.isTrue(yield* isThere(blob))
      const none = { sha256: "0".repeat(64), sizeBytes: 1 }
      assert.isUndefined(yield* blobs.adopt(path, none, () => Effect.succeed("made")))
    })
  )
})
