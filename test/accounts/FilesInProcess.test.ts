import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Result } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { newId } from "#src/infra/crypto/Tokens.ts"
import { adoptFiles } from "#src/accounts/FileAdoption.ts"
import { Files } from "#src/accounts/Files.ts"
import { StorageQuotas } from "#src/accounts/StorageQuotas.ts"
import { BlobStore } from "#src/infra/blobs/BlobStore.ts"
import { Notices } from "#src/infra/notices/Notices.ts"
import { sweep } from "#src/infra/postgres/Sweep.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import { assertCollected } from "#test/infra/blobs/StoredBlobs.ts"
import { legacyFile } from "./LegacyFiles.ts"

const limits = { blobKeptMillis: -1, goneMillis: 0 }
const stores = Files.layer.pipe(
  Layer.provideMerge(Layer.merge(Notices.layer, BlobStore.layer)),
  Layer.provide(Layer.succeed(StorageQuotas, { of: () => null })),
  Layer.provideMerge(TestStores.layerWith({ limits }))
)

const newUser = Effect.gen(function* () {
  const sql = yield* SqlClient
  const id = newId("usr")
  yield* sql`INSERT INTO users (id, email, name, role) VALUES (${id}, ${`${id}@example.com`}, 'U', 'user')`
  return id
})

const source = (text: string) => {
  const pieces = [Buffer.from(text)]
  return async () => Result.succeed(pieces.shift())
}

layer(stores, { excludeTestServices: true })("account files in the process", (it) => {
  it.effect("have an owner, a source and an expiry, at which they and their bytes go", () =>
    Effect.gen(function* () {
      const files = yield* Files
      const sql = yield* SqlClient
      const { directory, upkeep } = yield* BlobStore
      const userId = yield* newUser
      const made = (text: string, expiresAt: Date | null) =>
        files.put(source(text), {
          userId,
          source: "mail",
          expiresAt,
          filename: "../a.txt",
          contentType: "text/plain",
          maxBytes: Infinity
        })
      const lasting = yield* made("lasting", null)
      const later = yield* made("later", new Date(Date.now() + 3_600_000))
      const over = yield* made("over", new Date(Date.now() - 1_000))
      assert.strictEqual(lasting.filename, "a.txt")
      for (const [{ id }, text] of [
        [lasting, "lasting"],
        [later, "later"]
      ] as const) {
        const row = yield* files.find(id)
        assert.deepInclude(row, { user_id: userId, contentType: "text/plain", damaged: false })
        assert.strictEqual((yield* files.read(row)).toString(), text)
      }
      assert.strictEqual((yield* Effect.flip(files.find(over.id)))._tag, "NotFound")
      assert.deepStrictEqual(
        yield* sql`SELECT DISTINCT r.source, f.source AS "from" FROM blob_refs r
          JOIN files f ON r.ref = 'file ' || f.id WHERE f.user_id = ${userId}`,
        [{ source: "mail", from: "mail" }]
      )
      yield* upkeep.collect
      yield* sweep("files", "gone_at")
      yield* files.remove(later.id, userId)
      yield* upkeep.collect
      yield* assertCollected(directory, "one file is left")
      assert.deepStrictEqual(yield* sql`SELECT id FROM files WHERE user_id = ${userId} AND gone_at IS NULL`, [
        { id: lasting.id }
      ])
    })
  )

  it.effect(
    "of before are adopted: by one of two starts, after one that died, and only those of an account",
    () =>
      Effect.gen(function* () {
        const { dataDir } = yield* TestStores
        const { directory, id, upkeep } = yield* BlobStore
        const files = yield* Files
        const sql = yield* SqlClient
        const userId = yield* newUser
        const texts = Array.from({ length: 20 }, (_, index) => `of before ${index % 15}`)
        const paths = yield* Effect.forEach(texts, (text) => legacyFile(dataDir, userId, text))
        const [first, second, third] = paths
        if (first === undefined || second === undefined || third === undefined) return assert.fail()
        // The first was adopted by a start that died before the old name went; the second was deleted.
        const foreign = join(dataDir, "files", "00", "fil_00")
        mkdirSync(join(dataDir, "files", "00"), { recursive: true })
        writeFileSync(foreign, "of another database")
        mkdirSync(join(dataDir, "files", "tmp"), { recursive: true })
        writeFileSync(join(dataDir, "files", "tmp", "unfinished"), "unf")
        yield* sql`UPDATE files SET deleted_at = now() WHERE id = ${second.id}`
        const blobs = yield* BlobStore
        const blob = { sha256: first.sha256, sizeBytes: first.size }
        yield* blobs.adopt(first.path, blob, () =>
          Effect.andThen(
            sql`UPDATE files SET store = ${id} WHERE id = ${first.id}`,
            blobs.refer(`file ${first.id}`, blob, { userId, source: "upload", expiresAt: null })
          )
        )
        const before = yield* Effect.flip(Effect.flatMap(files.find(third.id), files.open))
        assert.strictEqual(before._tag, "ServiceUnavailable")

        yield* Effect.all([adoptFiles, adoptFiles], { concurrency: "unbounded" })
        yield* adoptFiles
        assert.deepStrictEqual(readdirSync(join(dataDir, "files"), { recursive: true }).length, 2)
        assert.isTrue(existsSync(foreign))
        for (const [index, { id: file }] of paths.entries()) {
          if (file === second.id) continue
          const read = yield* files.read(yield* files.find(file))
          assert.strictEqual(read.toString(), texts[index])
        }
        const [usage] = yield* sql`SELECT bytes::int FROM blob_usage WHERE user_id = ${userId}`
        const bytes = paths.reduce((sum, { size }) => sum + size, -second.size)
        assert.deepStrictEqual(usage, { bytes })
        // Their hashes are looked at before all others.
        writeFileSync(
          join(directory, third.sha256.slice(0, 2), third.sha256.slice(2, 4), third.sha256),
          texts[0] ?? ""
        )
        yield* upkeep.scrub
        assert.strictEqual(yield* upkeep.damaged, 1)
        assert.strictEqual(readFileSync(foreign, "utf8"), "of another database")
      })
  )
})
