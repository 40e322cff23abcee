import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { BlobStore } from "#src/infra/blobs/BlobStore.ts"
import { sumsOf } from "#src/infra/blobs/RunningSums.ts"
import { Versions } from "#src/files/tree/Versions.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import { newUser } from "#test/infra/blobs/BlobSteps.ts"
import { ensured, plain, treeLayer } from "./TreeSteps.ts"

/** Its tables have no statistics, as those of a server that was just set up. */
const fresh = treeLayer.pipe(Layer.provideMerge(TestStores.layer))

/** A hundred short blobs. */
const some = (from: number) =>
  Array.from({ length: 100 }, (_, index) => {
    const bytes = Buffer.from(`the bytes of ${from + index}`)
    return { blob: sumsOf(bytes), bytes }
  })

layer(fresh, { excludeTestServices: true })("the first files of a server", (it) => {
  it.effect("take no longer the more of them there are", () =>
    Effect.gen(function* () {
      const [blobs, versions, sql] = [yield* BlobStore, yield* Versions, yield* SqlClient]
      const user = yield* newUser
      const directory = yield* ensured(user, "docs")
      const rowsRead = Effect.map(
        sql<{
          rows: number
        }>`SELECT sum(idx_tup_fetch + seq_tup_read)::int AS rows FROM pg_stat_xact_user_tables
          WHERE relname IN ('blobs', 'blob_refs', 'file_groups', 'file_versions')`,
        ([row]) => row?.rows ?? Infinity
      )
      /** Rows that Postgres looks at to write a hundred files. */
      const readFor = (from: number) =>
        blobs.publishRows({ userId: user, quotaBytes: null }, some(from), (made) =>
          Effect.gen(function* () {
            // Reads of earlier transactions are counted here, too, until the connection has reported them.
            const before = yield* rowsRead
            const files = made.map((blob, index) => ({ ...plain, directory, name: `${from + index}`, blob }))
            yield* versions.writeAll(user, "test", files)
            return (yield* rowsRead) - before
          })
        )
      for (let from = 0; from < 1_000; from += 100) assert.isAtMost(yield* readFor(from), 500)
    })
  )
})
