import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Predicate } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { newId } from "#src/infra/crypto/Tokens.ts"
import { BlobStore } from "#src/infra/blobs/BlobStore.ts"
import { isRow } from "#src/infra/blobs/BlobUploads.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import {
  incoming,
  isThere,
  newUser,
  ownerOf,
  pieces,
  put,
  sha256Of,
  temporaryFiles,
  usageOf
} from "./BlobSteps.ts"

const most = 16 * 1024

/** Stores texts together, short ones in their rows. */
const staged = (userId: string, texts: ReadonlyArray<string>, quotaBytes: number | null = null) =>
  Effect.gen(function* () {
    const { referAll, staging } = yield* BlobStore
    const { publish, stage } = yield* staging({ ...incoming(userId, quotaBytes, 60_000), inRows: true })
    const files = yield* Effect.forEach(texts, (text) => stage(pieces([text.slice(0, 5), text.slice(5)])))
    const blobs = yield* publish(files, (made) =>
      Effect.as(
        referAll(
          made.map((blob) => ({ ref: newId("row"), blob })),
          ownerOf(userId)
        ),
        made
      )
    )
    return { blobs, inRows: files.map(isRow) }
  }).pipe(Effect.scoped)

const releaseAll = (userId: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient
    const refs = yield* sql<{ ref: string }>`SELECT ref FROM blob_refs WHERE user_id = ${userId}`
    yield* (yield* BlobStore).releaseAll(refs.map(({ ref }) => ref))
  })

const checkedAtOnce = { blobCheckMillis: -1 }
const stores = BlobStore.layer.pipe(Layer.provideMerge(TestStores.layerWith({ limits: checkedAtOnce })))

layer(stores, { excludeTestServices: true })("short blobs", (it) => {
  it.effect("live in their rows where their readers ask for it, and longer ones in files", () =>
    Effect.gen(function* () {
      const { read } = yield* BlobStore
      const user = yield* newUser
      const texts = ["", "a row", "r".repeat(most), "f".repeat(most + 1)]
      const { blobs, inRows } = yield* staged(user, texts)
      assert.deepStrictEqual(inRows, [true, true, true, false])
      assert.deepStrictEqual(yield* Effect.forEach(blobs, isThere), [false, false, false, true])
      for (const [index, blob] of blobs.entries()) {
        assert.strictEqual((yield* read(blob)).toString(), texts[index])
        assert.strictEqual(blob.sha256, sha256Of(Buffer.from(texts[index] ?? "")))
      }
      assert.strictEqual((yield* usageOf(user))?.bytes, texts.join("").length)
      assert.deepStrictEqual(yield* temporaryFiles, [])
    })
  )

  it.effect("are one with a file of the same bytes, whichever came first", () =>
    Effect.gen(function* () {
      const { open, read } = yield* BlobStore
      const user = yield* newUser
      const [first] = (yield* staged(user, ["row, then file"])).blobs
      const second = yield* put(user, "row, then file", `both ${user} 1`)
      const third = yield* put(user, "file, then row", `both ${user} 2`)
      const [fourth] = (yield* staged(user, ["file, then row"])).blobs
      assert.deepStrictEqual([first?.sha256, fourth?.sha256], [second.sha256, third.sha256])
      for (const blob of [second, third]) {
        assert.isTrue(yield* isThere(blob))
        assert.strictEqual((yield* read(blob)).length, 14)
        assert.isAbove(yield* open(blob), 0)
      }
    })
  )

  it.effect("are read in parts, among blobs in files", () =>
    Effect.gen(function* () {
      const { parts } = yield* BlobStore
      const user = yield* newUser
      const texts = ["first", "x".repeat(most + 5), "third"]
      const { blobs } = yield* staged(user, texts)
      const views = texts.map((text) => Buffer.alloc(Math.min(text.length - 1, 8)))
      const reader = parts()
      const asked = blobs.map((blob, index) => ({
        ...blob,
        from: 1,
        views: [views[index] ?? Buffer.alloc(0)]
      }))
      const trouble = yield* Effect.promise(() => new Promise((resolve) => reader.read(asked, resolve)))
      reader.close()
      assert.isUndefined(trouble)
      assert.deepStrictEqual(
        views.map((view) => view.toString()),
        ["irst", "xxxxxxxx", "hird"]
      )
    })
  )

  it.effect("count for the quota where they are written", () =>
    Effect.gen(function* () {
      const user = yield* newUser
      yield* staged(user, ["1234567890"], 10)
      const fault = yield* Effect.flip(staged(user, ["more"], 10))
      assert.isTrue(Predicate.isTagged(fault, "QuotaReached"))
      assert.strictEqual((yield* usageOf(user))?.bytes, 10)
    })
  )

  it.effect("that were spoilt are found by the scrub and by readers, until they come again", () =>
    Effect.gen(function* () {
      const { read, upkeep } = yield* BlobStore
      const sql = yield* SqlClient
      const user = yield* newUser
      const [blob] = (yield* staged(user, ["to be spoilt"])).blobs
      if (blob === undefined) return assert.fail("no blob")
      const spoil = sql`UPDATE blobs SET bytes = 'to be spoilT' WHERE sha256 = decode(${blob.sha256}, 'hex')`
      yield* spoil
      assert.match((yield* Effect.flip(read(blob))).message, /damaged or missing/)
      const isDamaged = Effect.map(
        sql<{ damaged: boolean }>`SELECT damaged FROM blobs WHERE sha256 = decode(${blob.sha256}, 'hex')`,
        ([row]) => row?.damaged
      )
      assert.isTrue(yield* isDamaged)
      assert.strictEqual(yield* upkeep.damaged, 1)
      yield* staged(user, ["to be spoilt", "1"])
      assert.isFalse(yield* isDamaged)
      assert.strictEqual((yield* read(blob)).toString(), "to be spoilt")
      yield* spoil
      yield* upkeep.scrub
      assert.isTrue(yield* isDamaged)
    })
  )

  it.effect("go with their last record", () =>
    Effect.gen(function* () {
      const { upkeep } = yield* BlobStore
      const sql = yield* SqlClient
      const user = yield* newUser
      const [blob] = (yield* staged(user, [`to go ${user}`])).blobs
      yield* releaseAll(user)
      yield* sql`UPDATE blobs SET unreferenced_at = now() - interval '2 days'
        WHERE sha256 = decode(${blob?.sha256 ?? ""}, 'hex')`
      yield* upkeep.collect
      assert.deepStrictEqual(
        yield* sql`SELECT 1 FROM blobs WHERE sha256 = decode(${blob?.sha256 ?? ""}, 'hex')`,
        []
      )
    })
  )
})
