import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { StorageQuotas } from "#src/accounts/StorageQuotas.ts"
import { reachOf } from "#src/files/access/Reach.ts"
import { Purge } from "#src/files/tree/Purge.ts"
import { Restoring } from "#src/files/tree/Restoring.ts"
import { Trash } from "#src/files/tree/Trash.ts"
import { treeServices } from "#src/files/tree/TreeServices.ts"
import { BlobStore } from "#src/infra/blobs/BlobStore.ts"
import { Notices } from "#src/infra/notices/Notices.ts"
import { limits as defaults } from "#src/Limits.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import { newUser, tagOf, usageOf } from "#test/infra/blobs/BlobSteps.ts"
import { ensured, faultsOfTree, messageOf, written } from "./TreeSteps.ts"

const limits = {
  versionsPurgedAtOnce: 2,
  versionsPurgedByRequest: 3,
  versionsPerFile: 12,
  versionsPerUser: 16
}

const services = treeServices.pipe(
  Layer.provideMerge(BlobStore.layer),
  Layer.provideMerge(Notices.layer),
  Layer.provide(Layer.succeed(StorageQuotas, { of: () => null })),
  Layer.provideMerge(TestStores.layerWith({ limits }))
)

layer(services, { excludeTestServices: true, timeout: 600_000 })("what is deleted for good", (it) => {
  it.effect("goes in parts, out of everyone's sight from the first on, and the sweep does the rest", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const trash = yield* Trash
      const purge = yield* Purge
      const restoring = yield* Restoring
      const userId = yield* newUser
      const by = { userId, reach: reachOf({ scopes: ["full"] }) }
      const a = yield* ensured(userId, "docs/a")
      for (let number = 0; number < 11; number++) yield* written(a, `f${number}`, "1")
      yield* trash.trashDirectory(by, a.id, undefined)
      yield* trash.empty(userId)
      assert.deepStrictEqual(yield* usageOf(userId), { bytes: 7, reserved: 0 })
      // Files go with their versions, so that no later part has to pass over them.
      assert.lengthOf(yield* sql`SELECT id FROM file_groups WHERE user_id = ${userId}`, 7)
      assert.deepStrictEqual((yield* trash.list(userId, "all", { limit: 10 })).rows, [])
      assert.strictEqual(yield* tagOf(restoring.directory(by, a.id, "fail")), "NotFound")
      yield* purge.all
      assert.deepStrictEqual(yield* usageOf(userId), { bytes: 0, reserved: 0 })
      const left = yield* sql`SELECT id FROM file_trash WHERE user_id = ${userId}
        UNION ALL SELECT id FROM file_groups WHERE user_id = ${userId}
        UNION ALL SELECT id FROM file_versions WHERE user_id = ${userId}`
      assert.deepStrictEqual(left, [])
      assert.deepStrictEqual(yield* faultsOfTree(userId), [])
    })
  )

  it.effect(
    "makes room for other versions, of which a user has so many, empty ones and the trash included",
    () =>
      Effect.gen(function* () {
        assert.strictEqual(defaults.versionsPerUser, 10_000_000)
        const trash = yield* Trash
        const userId = yield* newUser
        const by = { userId, reach: reachOf({ scopes: ["full"] }) }
        const docs = yield* ensured(userId, "docs")
        const refusal = messageOf(written(docs, "one more", ""))
        const refused = "A user has at most 16 versions of files, the trash included"
        for (let number = 0; number < 15; number++) yield* written(docs, `f${number}`, "")
        const last = yield* written(docs, "f0", "")
        assert.strictEqual(yield* refusal, refused)
        yield* trash.trashFile(by, last.id, undefined)
        assert.strictEqual(yield* refusal, refused)
        yield* trash.empty(userId)
        yield* written(docs, "one more", "")
        yield* written(docs, "two more", "")
        assert.strictEqual(yield* messageOf(written(docs, "three more", "")), refused)
        assert.deepStrictEqual(yield* faultsOfTree(userId), [])
      })
  )

  it.effect("are the oldest versions of a file that has more than it may have", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const purge = yield* Purge
      const userId = yield* newUser
      const docs = yield* ensured(userId, "docs")
      for (let number = 0; number < 15; number++) yield* written(docs, "f", "1")
      yield* purge.prune
      const versions = yield* sql<{
        version: number
      }>`SELECT version FROM file_versions WHERE user_id = ${userId}
        ORDER BY version`
      assert.deepStrictEqual(
        versions.map(({ version }) => version),
        Array.from({ length: 12 }, (_, index) => index + 4)
      )
      assert.deepStrictEqual(yield* faultsOfTree(userId), [])
    })
  )
})
