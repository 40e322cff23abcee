import { existsSync } from "node:fs"
import { dirname } from "node:path"
import { crc32 } from "node:zlib"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { BlobStore } from "#src/infra/blobs/BlobStore.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import {
  incoming,
  isThere,
  newUser,
  ownerOf,
  pathOf,
  pieces,
  sha256Of,
  tagOf,
  temporaryFiles,
  usageOf
} from "./BlobSteps.ts"

const stores = BlobStore.layer.pipe(
  Layer.provideMerge(TestStores.layerWith({ limits: { blobKeptMillis: -1 } }))
)

const mib = 1024 * 1024

layer(stores, { excludeTestServices: true })("the staging of files", (it) => {
  it.effect("makes those blobs that are published, together; the others go", () =>
    Effect.gen(function* () {
      const blobs = yield* BlobStore
      const user = yield* newUser
      const texts = ["a", "b", "left"]
      // The client infers types of numbers in arrays: sums of both halves go out together.
      assert.deepStrictEqual([crc32("a") > 2 ** 31, crc32("b") > 2 ** 31], [true, false])
      yield* Effect.gen(function* () {
        const { publish, stage } = yield* blobs.staging(incoming(user))
        const staged = yield* Effect.forEach(texts, (text) => stage(pieces([text])))
        // Their directories are there before the transaction, which has no time for the syncs of a thousand.
        for (const { blob } of staged) assert.isTrue(existsSync(dirname(yield* pathOf(blob))))
        yield* publish(staged.slice(0, 2), (made) =>
          blobs.referAll(
            made.map((blob, index) => ({ ref: `staged ${index}`, blob })),
            ownerOf(user)
          )
        )
      }).pipe(Effect.scoped)
      const there = yield* Effect.forEach(texts, (text) => isThere({ sha256: sha256Of(Buffer.from(text)) }))
      assert.deepStrictEqual(there, [true, true, false])
      assert.deepStrictEqual(yield* usageOf(user), { bytes: 2, reserved: 0 })
      assert.deepStrictEqual(yield* temporaryFiles, [])
      yield* blobs.releaseAll(["staged 0", "staged 1", "nothing"])
      assert.deepStrictEqual(yield* usageOf(user), { bytes: 0, reserved: 0 })
      yield* blobs.upkeep.collect
      assert.isFalse(yield* isThere({ sha256: sha256Of(Buffer.from("a")) }))
    })
  )

  it.effect("leaves nothing of what is never published, or where a record fails", () =>
    Effect.gen(function* () {
      const blobs = yield* BlobStore
      const user = yield* newUser
      const failing = Effect.gen(function* () {
        const { publish, stage } = yield* blobs.staging(incoming(user, 200_000, 100_000))
        const staged = yield* stage(pieces(["x".repeat(70_000)]))
        return yield* publish([staged], ([blob]) =>
          Effect.andThen(
            blobs.referAll(blob === undefined ? [] : [{ ref: "staged 3", blob }], ownerOf(user)),
            Effect.fail("refused")
          )
        )
      }).pipe(Effect.scoped)
      assert.strictEqual(yield* tagOf(failing), "refused")
      yield* Effect.scoped(Effect.flatMap(blobs.staging(incoming(user)), ({ stage }) => stage(pieces(["y"]))))
      assert.deepStrictEqual(yield* usageOf(user), { bytes: 0, reserved: 0 })
      assert.deepStrictEqual(yield* temporaryFiles, [])
    })
  )

  it.effect("reserves more as bytes come, as far as the quota goes", () =>
    Effect.gen(function* () {
      const blobs = yield* BlobStore
      const user = yield* newUser
      const quotaBytes = 3 * mib
      const one = () => pieces([letters.repeat(mib / 16)])
      yield* Effect.gen(function* () {
        const { stage } = yield* blobs.staging({
          userId: user,
          quotaBytes,
          maxBytes: 1_000 * mib,
          expectedBytes: 0
        })
        assert.deepStrictEqual(yield* usageOf(user), { bytes: 0, reserved: 0 })
        for (let files = 1; files <= 3; files++) {
          yield* stage(one())
          const reserved = (yield* usageOf(user))?.reserved ?? 0
          assert.isTrue(reserved >= files * mib && reserved <= quotaBytes, String(reserved))
        }
        assert.strictEqual(yield* tagOf(stage(pieces(["z"]))), "QuotaReached")
      }).pipe(Effect.scoped)
      assert.deepStrictEqual(yield* usageOf(user), { bytes: 0, reserved: 0 })
    })
  )
})

const letters = "abcdefghijklmnop"
