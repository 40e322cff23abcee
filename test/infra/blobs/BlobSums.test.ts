import { rmSync, writeFileSync } from "node:fs"
import { crc32 } from "node:zlib"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { Blob } from "#src/infra/blobs/BlobIndex.ts"
import { BlobStore } from "#src/infra/blobs/BlobStore.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import { incoming, newUser, ownerOf, pathOf, pieces, put, tagOf } from "./BlobSteps.ts"

const checkedAtOnce = { blobCheckMillis: -1 }
const stores = BlobStore.layer.pipe(Layer.provideMerge(TestStores.layerWith({ limits: checkedAtOnce })))

const keptSum = ({ sha256 }: Blob) =>
  Effect.flatMap(SqlClient, (sql) =>
    Effect.map(
      sql<{ crc32: number | null }>`SELECT crc32::float8 FROM blobs WHERE sha256 = decode(${sha256}, 'hex')`,
      ([row]) => row?.crc32
    )
  )

/** As of a blob that an earlier version of the server made. */
const forgetSum = ({ sha256 }: Blob) =>
  Effect.flatMap(
    SqlClient,
    (sql) => sql`UPDATE blobs SET crc32 = NULL WHERE sha256 = decode(${sha256}, 'hex')`
  )

layer(stores, { excludeTestServices: true })("the CRC-32 of a blob", (it) => {
  it.effect("is kept with it, whichever way its bytes came", () =>
    Effect.gen(function* () {
      const blobs = yield* BlobStore
      const user = yield* newUser
      const once = yield* put(user, "at once", "sum 1")
      assert.strictEqual(yield* keptSum(once), crc32("at once"))
      assert.strictEqual(yield* keptSum(yield* put(user, "", "sum 2")), 0)
      const id = yield* blobs.begin(incoming(user))
      yield* blobs.append(id, 0, pieces(["in ", "several "]))
      yield* blobs.append(id, 11, pieces(["requests"]))
      const appended = yield* blobs.finish(id, (blob) =>
        Effect.as(blobs.refer("sum 3", blob, ownerOf(user)), blob)
      )
      assert.strictEqual(yield* keptSum(appended), crc32("in several requests"))
    })
  )

  it.effect("comes to a blob that has none with the same bytes, with a scrub, and when it is asked for", () =>
    Effect.gen(function* () {
      const { sum, upkeep } = yield* BlobStore
      const user = yield* newUser
      const blob = yield* put(user, "of before", "sum 4")
      yield* forgetSum(blob)
      yield* put(user, "of before", "sum 5")
      assert.strictEqual(yield* keptSum(blob), crc32("of before"))
      yield* forgetSum(blob)
      yield* upkeep.scrub
      assert.strictEqual(yield* keptSum(blob), crc32("of before"))
      yield* forgetSum(blob)
      assert.strictEqual(yield* sum(blob), crc32("of before"))
      assert.strictEqual(yield* keptSum(blob), crc32("of before"))
    })
  )

  it.effect("is not taken of bytes that are damaged or missing", () =>
    Effect.gen(function* () {
      const { sum, upkeep } = yield* BlobStore
      const user = yield* newUser
      const blob = yield* put(user, "whole", "sum 6")
      yield* forgetSum(blob)
      writeFileSync(yield* pathOf(blob), "whale")
      assert.strictEqual(yield* tagOf(sum(blob)), "ServiceUnavailable")
      rmSync(yield* pathOf(blob))
      assert.strictEqual(yield* tagOf(sum(blob)), "ServiceUnavailable")
      assert.isNull(yield* keptSum(blob))
      assert.strictEqual(yield* upkeep.damaged, 1)
    })
  )
})
