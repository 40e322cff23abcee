import { get as httpGet, type IncomingMessage } from "node:http"
import { assert, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { limits } from "#src/Limits.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { makeTree } from "./SyncedTree.ts"

const live = { excludeTestServices: true } as const
const path = "/api/sync/manifest"
const busy = { error: "Too many large manifests are being read; try again later" }

/** A user's tree with a flagged directory of so many files, whose names are long. */
const makeLargeTree = Effect.fnUntraced(function* (files: number) {
  const tree = yield* makeTree
  const { directory, flagged, sql, userId } = tree
  const bucket = yield* directory(undefined, "Large")
  yield* flagged("directory", bucket.id)
  const name = sql`lpad(n::text, 6, '0') || repeat('n', 249)`
  yield* sql`INSERT INTO file_groups (id, user_id, bucket_id, directory_id, name, path, search_name, current_id, last_version)
    SELECT 'fg_' || lpad(n::text, 6, '0') || left(md5(${userId}), 16), ${userId}, ${bucket.id}, ${bucket.id},
      ${name}, ${name}, 'n', 'fv_' || lpad(n::text, 6, '0') || left(md5(${userId}), 16), 1
    FROM generate_series(1, ${files}::int) n`
  yield* sql`INSERT INTO file_versions (id, group_id, user_id, version, original_name, mime_type, size, store, sha256, source,
      modified_at)
    SELECT current_id, id, user_id, 1, name, 'text/plain', 1, (SELECT id FROM blob_stores LIMIT 1), sha256(id::bytea),
      'upload', now() FROM file_groups WHERE bucket_id = ${bucket.id}`
  return tree
})

/** An answer of which the client takes nothing. */
const stalled = (key: string) =>
  Effect.flatMap(TestServer, ({ url }) =>
    Effect.promise(
      () =>
        new Promise<IncomingMessage>((resolve, reject) => {
          const headers = { authorization: `Bearer ${key}` }
          httpGet(`${url}${path}`, { headers }, (response) => resolve(response.pause())).on("error", reject)
        })
    )
  )

/** A single user has half of it: one manifest of 24,000 files, which no buffers on the way hold. */
const manifestsBytes = 40 * 1024 * 1024

layer(TestServer.own({ limits: { manifestsBytes } }), live)("manifests that are read at once", (it) => {
  it.effect("have a bounded memory until they are sent, in shares of users: above it 503", () =>
    Effect.gen(function* () {
      const { ask, key } = yield* makeLargeTree(24_000)
      const { names } = yield* makeTree
      const read = (by: string) => ask("GET", path, { key: by })
      const first = yield* stalled(key)
      assert.strictEqual(first.statusCode, 200)
      const refused = yield* read(key)
      assert.deepStrictEqual([refused.status, refused.json], [503, busy])
      assert.deepStrictEqual(yield* names(), [], "another user reads")
      first.destroy()
      yield* eventually(
        "the next one has room",
        Effect.map(read(key), ({ status }) => status === 200)
      )
    })
  )

  it.effect("are 64, those that wait for their turn included; further ones are 503", () =>
    Effect.gen(function* () {
      const { manifestMillis, manifestsAtOnce, manifestsUnderWay } = limits
      assert.deepStrictEqual([manifestsAtOnce, manifestsUnderWay, manifestMillis], [2, 64, 60_000])
      const { ask, key, sql } = yield* makeTree
      const statuses: Array<number> = []
      const reads = yield* sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`LOCK TABLE sync_flags IN ACCESS EXCLUSIVE MODE`
          const asked = yield* Effect.forEach(Array.from({ length: 66 }), () =>
            Effect.map(ask("GET", path, { key }), ({ status }) => statuses.push(status)).pipe(
              Effect.forkChild
            )
          )
          yield* eventually(
            "two are refused",
            Effect.sync(() => statuses.length === 2)
          )
          assert.deepStrictEqual(statuses, [503, 503])
          return asked
        })
      )
      yield* Effect.forEach(reads, Fiber.join)
      assert.strictEqual(statuses.filter((status) => status === 200).length, 64)
    })
  )
})
