import { assert, layer } from "@effect/vitest"
import { Effect, Exit, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { closeSync, existsSync, mkdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { TestStores } from "#test/harness/TestStores.ts"
import { AppConfig } from "#src/Config.ts"
import { BlobDirectory } from "#src/infra/blobs/BlobDirectory.ts"
import { BlobFiles } from "#src/infra/blobs/BlobFiles.ts"
import { BlobIndex } from "#src/infra/blobs/BlobIndex.ts"
import { BlobStore, openNew } from "#src/infra/blobs/BlobStore.ts"
import { makeUpkeep } from "#src/infra/blobs/BlobUpkeep.ts"
import { sha256Of, newUser, ownerOf, put, pathOf, isThere, tagOf, temporaryFiles } from "./BlobSteps.ts"
import { blobFiles } from "./StoredBlobs.ts"

const kept = { blobKeptMillis: -1, blobCheckMillis: -1 }
const stores = BlobStore.layer.pipe(Layer.provideMerge(TestStores.layerWith({ limits: kept })))

layer(stores, { excludeTestServices: true })("blobs", (it) => {
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
