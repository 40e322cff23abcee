import { assert, describe, layer } from "@effect/vitest"
import { Effect, Exit, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { crc32 } from "node:zlib"
import { TestStores } from "#test/harness/TestStores.ts"
import type { Blob } from "#src/infra/blobs/BlobIndex.ts"
import { BlobStore } from "#src/infra/blobs/BlobStore.ts"
import {
  sha256Of,
  pieces,
  sourceOf,
  newUser,
  incoming,
  ownerOf,
  put,
  usageOf,
  pathOf,
  isThere,
  tagOf,
  temporaryFiles
} from "./BlobSteps.ts"

const kept = { blobKeptMillis: -1, blobCheckMillis: -1 }
const stores = BlobStore.layer.pipe(Layer.provideMerge(TestStores.layerWith({ limits: kept })))

layer(stores, { excludeTestServices: true })("blobs", (it) => {
  describe("put", () => {
    it.effect("keeps equal bytes once, for as long as a record refers to them", () =>
      Effect.gen(function* () {
        const { release, upkeep } = yield* BlobStore
        const [one, other] = [yield* newUser, yield* newUser]
        const blob = yield* put(one, "same", "test 1")
        const sums = { sha256: sha256Of(Buffer.from("same")), crc32: crc32("same") }
        assert.deepStrictEqual(blob, { ...sums, sizeBytes: 4, isNew: true })
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
        const sums = { sha256: sha256Of(Buffer.from("abcdef")), crc32: crc32("abcdef") }
        assert.deepStrictEqual(blob, { ...sums, sizeBytes: 6, isNew: true })
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
})
