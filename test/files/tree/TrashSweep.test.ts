import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { TestServer } from "#test/harness/TestServer.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { newClient } from "./TreeClient.ts"
import { ensured, treeLayer, written } from "./TreeSteps.ts"

const served = treeLayer.pipe(
  Layer.provideMerge(
    TestServer.own({ trashDays: 0, limits: { fileSweepEveryMillis: 50, sweepEveryMillis: 50 } })
  )
)

layer(served, { excludeTestServices: true, timeout: 600_000 })("a server whose TRASH_DAYS is 0", (it) => {
  it.effect("deletes what is in the trash at its next sweep, which is not that of account files", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const { ok, userId } = yield* newClient
      const docs = yield* ensured(userId, "docs")
      for (const name of ["f", "g", "h"]) {
        const file = yield* written(docs, name, name)
        yield* ok("DELETE", `files/${file.id}`)
        const usedBytes = Effect.map(
          ok("GET", "storage"),
          (usage) => (usage as { usedBytes: number }).usedBytes
        )
        yield* eventually(
          "the trash is empty",
          Effect.map(usedBytes, (bytes) => bytes === 0)
        )
      }
      const queues = yield* sql<{ queue: string }>`SELECT queue FROM job_lanes
        WHERE queue IN ('sweep-files', 'sweep-file-tree') ORDER BY queue`
      assert.deepStrictEqual(
        queues.map(({ queue }) => queue),
        ["sweep-file-tree", "sweep-files"]
      )
    })
  )
})
