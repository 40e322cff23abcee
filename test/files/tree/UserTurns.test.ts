import { assert, layer } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { eventually } from "#test/harness/Eventually.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { newClient } from "./TreeClient.ts"
import { ensured, treeLayer } from "./TreeSteps.ts"

const served = treeLayer.pipe(Layer.provideMerge(TestServer.own()))
const asMany = 15

/** Connections of the server that wait for a bucket. */
const waiting = Effect.flatMap(SqlClient, (sql) =>
  Effect.map(
    sql<{
      waiting: number
    }>`SELECT count(*)::int AS waiting FROM pg_locks l JOIN pg_database d ON d.oid = l.database
      WHERE d.datname = current_database() AND l.locktype = 'advisory' AND NOT l.granted`,
    ([row]) => row?.waiting ?? 0
  )
)

layer(served, { excludeTestServices: true })("changes that wait for a large move", (it) => {
  for (const [what, method, path, body] of [
    ["uploads", "PUT", (n: number) => `/api/upload/docs/${n}`, { body: "x".repeat(20_000) }],
    ["moves", "PATCH", undefined, { json: { name: "renamed" } }]
  ] as const)
    it.effect(`have some connections of a user's, so that others are served: ${what}`, () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        const { ask } = yield* TestServer
        const { key, userId } = yield* newClient
        const other = yield* newClient
        const docs = yield* ensured(userId, "docs")
        const asked = yield* sql.withTransaction(
          Effect.gen(function* () {
            yield* sql`SELECT file_lock(${docs.bucketId}, true)`
            const changes = yield* Effect.forEach(
              Array.from({ length: asMany }, (_, n) => n),
              (n) =>
                ask(method, path?.(n) ?? `/api/directories/${docs.id}`, { key, ...body }).pipe(
                  Effect.forkChild
                )
            )
            yield* eventually(
              "some wait",
              Effect.map(waiting, (count) => count >= 4)
            )
            for (let n = 0; n < 3; n++) {
              yield* other.ok("GET", "directories")
              yield* other.ok("POST", "directories", { name: `other${n}` })
              yield* Effect.sleep(20)
              assert.strictEqual(yield* waiting, 4)
            }
            return changes
          })
        )
        for (const fiber of asked) assert.isBelow((yield* Fiber.join(fiber)).status, 300)
      })
    )
})
