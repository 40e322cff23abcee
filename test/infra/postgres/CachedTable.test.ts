import { assert, describe, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { Model } from "effect/schema"
import { SqlClient } from "effect/sql/SqlClient"
import { hidden } from "#schemas/core/Noun.ts"
import * as CachedTable from "#src/infra/postgres/CachedTable.ts"
import { sweep } from "#src/infra/postgres/Sweep.ts"
import { TestStores } from "#test/harness/TestStores.ts"

class Key extends Model.Class<Key>("Key")({ id: hidden, hash: hidden, name: hidden }) {}

const options = {
  name: "keys",
  title: "Key",
  model: Key,
  ids: "key",
  computed: { hash: "encode(hash, 'hex')" },
  indexes: { hash: (key: Key) => key.hash },
  gone: "revoked_at"
} as const

const user = Effect.gen(function* () {
  const sql = yield* SqlClient
  yield* sql`INSERT INTO users ${sql.insert({ id: "usr_1", email: "a@b.example", name: "A", role: "user" })}
    ON CONFLICT DO NOTHING`
})

const insertKey = (id: string, name = id) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient
    const hash = Buffer.alloc(32, id)
    const row = { id, user_id: "usr_1", name, kind: "account", prefix: id, hash }
    yield* sql`INSERT INTO keys ${sql.insert(row)}`
    return hash.toString("hex")
  })

/** Every test has its own copy, and asks for each poll itself: nothing depends on time. */
const quiet = TestStores.layerWith({ limits: { cachePollMillis: 3_600_000 } })

describe("a table in memory", () => {
  layer(quiet)((it) => {
    it.effect("holds what was there before it", () =>
      Effect.gen(function* () {
        yield* user
        const hash = yield* insertKey("key_before")
        const keys = yield* CachedTable.make(options)
        assert.strictEqual(keys.get("key_before")?.name, "key_before")
        assert.strictEqual(keys.by("hash", hash)?.id, "key_before")
        assert.strictEqual(keys.by("hash", "00"), undefined)
      })
    )

    it.effect("sees another connection's insert, change and revocation", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        yield* user
        const keys = yield* CachedTable.make(options)
        const hash = yield* insertKey("key_other")
        assert.strictEqual(keys.get("key_other"), undefined)
        yield* keys.refreshNow
        assert.strictEqual(keys.get("key_other")?.name, "key_other")
        yield* sql`UPDATE keys SET name = 'renamed' WHERE id = 'key_other'`
        yield* keys.refreshNow
        assert.strictEqual(keys.get("key_other")?.name, "renamed")
        yield* sql`UPDATE keys SET revoked_at = now() WHERE id = 'key_other'`
        yield* keys.refreshNow
        assert.strictEqual(keys.get("key_other"), undefined)
        assert.strictEqual(keys.by("hash", hash), undefined)
      })
    )

    it.effect("finds a row by its new key only, once the key has changed", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        yield* user
        const old = yield* insertKey("key_rotated")
        const keys = yield* CachedTable.make(options)
        yield* sql`UPDATE keys SET hash = ${Buffer.alloc(32, "new")} WHERE id = 'key_rotated'`
        yield* keys.refreshNow
        assert.strictEqual(keys.by("hash", old), undefined)
        assert.strictEqual(keys.by("hash", Buffer.alloc(32, "new").toString("hex"))?.id, "key_rotated")
      })
    )

    it.effect("misses nothing that commits late, behind later transactions that were already seen", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        yield* user
        const keys = yield* CachedTable.make(options)
        const written = yield* Deferred.make<void>()
        const mayCommit = yield* Deferred.make<void>()
        const long = yield* Effect.forkChild(
          sql.withTransaction(
            Effect.gen(function* () {
              yield* insertKey("key_long")
              yield* Deferred.succeed(written, undefined)
              yield* Deferred.await(mayCommit)
            })
          )
        )
        yield* Deferred.await(written)
        // Later transactions commit first, and polls go by.
        yield* insertKey("key_short")
        yield* keys.refreshNow
        yield* insertKey("key_short_2")
        yield* keys.refreshNow
        assert.strictEqual(keys.get("key_short")?.id, "key_short")
        assert.strictEqual(keys.get("key_long"), undefined)
        yield* Deferred.succeed(mayCommit, undefined)
        yield* Fiber.join(long)
        yield* keys.refreshNow
        assert.strictEqual(keys.get("key_long")?.id, "key_long")
      })
    )

    it.effect("takes an older transaction's later write to a row that a newer one had written", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        yield* user
        yield* insertKey("key_contested")
        const keys = yield* CachedTable.make(options)
        const hasId = yield* Deferred.make<void>()
        const mayWrite = yield* Deferred.make<void>()
        const older = yield* Effect.forkChild(
          sql.withTransaction(
            Effect.gen(function* () {
              yield* sql`SELECT pg_current_xact_id()`
              yield* Deferred.succeed(hasId, undefined)
              yield* Deferred.await(mayWrite)
              yield* sql`UPDATE keys SET name = 'older transaction, last write' WHERE id = 'key_contested'`
            })
          )
        )
        yield* Deferred.await(hasId)
        yield* sql`UPDATE keys SET name = 'newer transaction' WHERE id = 'key_contested'`
        yield* keys.refreshNow
        assert.strictEqual(keys.get("key_contested")?.name, "newer transaction")
        yield* Deferred.succeed(mayWrite, undefined)
        yield* Fiber.join(older)
        yield* keys.refreshNow
        assert.strictEqual(keys.get("key_contested")?.name, "older transaction, last write")
      })
    )

    it.effect("shows an own write at once, and corrects one that was applied too late", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        yield* user
        yield* insertKey("key_own")
        const keys = yield* CachedTable.make(options)
        const mine = yield* keys.rows(
          sql`UPDATE keys SET name = 'mine' WHERE id = 'key_own' RETURNING ${keys.columns}`
        )
        yield* sql`UPDATE keys SET name = 'theirs' WHERE id = 'key_own'`
        yield* keys.refreshNow
        // The answer to the own write is handled late: it is older than what the poll has read.
        mine.forEach(keys.applyLocal)
        assert.strictEqual(keys.get("key_own")?.name, "mine")
        yield* keys.refreshNow
        assert.strictEqual(keys.get("key_own")?.name, "theirs")
      })
    )

    it.effect("has an own write in memory when it is committed, and never one that is undone", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        yield* user
        yield* insertKey("key_written")
        const keys = yield* CachedTable.make(options)
        const rename = (name: string) =>
          Effect.tap(
            keys.first(
              sql`UPDATE keys SET name = ${name} WHERE id = 'key_written' RETURNING ${keys.columns}`
            ),
            () => Effect.sync(() => assert.notStrictEqual(keys.get("key_written")?.name, name))
          )
        yield* Effect.flip(sql.withTransaction(Effect.andThen(rename("undone"), Effect.fail("no"))))
        assert.strictEqual(keys.get("key_written")?.name, "key_written")
        yield* sql.withTransaction(rename("kept"))
        assert.strictEqual(keys.get("key_written")?.name, "kept")
        yield* sql.withTransaction(keys.remove("key_written", undefined))
        assert.strictEqual(keys.get("key_written"), undefined)
        yield* keys.refreshNow
        assert.strictEqual(keys.get("key_written"), undefined)
      })
    )

    it.effect("does not let a poll that is under way undo an own write", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        yield* user
        yield* insertKey("key_race")
        const keys = yield* CachedTable.make(options)
        yield* sql`UPDATE keys SET name = 'first' WHERE id = 'key_race'`
        const poll = yield* Effect.forkChild(keys.refreshNow, { startImmediately: true })
        keys.applyLocal({ id: "key_race", hash: "00", name: "second" })
        yield* Fiber.join(poll)
        assert.strictEqual(keys.get("key_race")?.name, "second")
        yield* keys.refreshNow
        assert.strictEqual(keys.get("key_race")?.name, "first")
      })
    )

    it.effect("fails a poll whose rows it cannot read, and applies them when it can", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        yield* user
        const keys = yield* CachedTable.make({
          ...options,
          computed: { ...options.computed, name: "nullif(name, 'unreadable')" }
        })
        yield* insertKey("key_unreadable", "unreadable")
        assert.include((yield* Effect.flip(keys.refreshNow)).message, "name")
        yield* sql`UPDATE keys SET name = 'readable' WHERE id = 'key_unreadable'`
        yield* keys.refreshNow
        assert.strictEqual(keys.get("key_unreadable")?.name, "readable")
      })
    )
  })

  layer(TestStores.layerWith({ limits: { cachePollMillis: 3_600_000, goneMillis: 400 } }), {
    excludeTestServices: true
  })((it) => {
    it.effect("reads everything anew when it heard nothing for so long that gone rows may be deleted", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        yield* user
        yield* insertKey("key_swept")
        yield* insertKey("key_kept")
        const keys = yield* CachedTable.make(options)
        yield* sql`UPDATE keys SET revoked_at = now() - interval '1 s' WHERE id = 'key_swept'`
        assert.strictEqual(yield* sweep("keys", "revoked_at"), 1)
        assert.strictEqual(keys.get("key_swept")?.id, "key_swept")
        yield* Effect.sleep(250)
        assert.include((yield* Effect.flip(keys.refreshNow)).message, "anew")
        yield* keys.refreshNow
        assert.deepStrictEqual(
          Array.from(keys.all(), ({ id }) => id),
          ["key_kept"]
        )
      })
    )
  })

  layer(TestStores.layerWith({ limits: { sweepRows: 2 } }))((it) => {
    it.effect("loses to the sweep the rows that have been gone for a day, however many, and no others", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        yield* user
        for (const id of ["key_a", "key_b", "key_c", "key_late", "key_live"]) yield* insertKey(id)
        yield* sql`UPDATE keys SET revoked_at = now() - interval '25 h' WHERE id IN ('key_a', 'key_b', 'key_c')`
        yield* sql`UPDATE keys SET revoked_at = now() - interval '23 h' WHERE id = 'key_late'`
        assert.strictEqual(yield* sweep("keys", "revoked_at"), 3)
        const left = yield* sql<{ id: string }>`SELECT id FROM keys ORDER BY id`
        assert.deepStrictEqual(
          left.map(({ id }) => id),
          ["key_late", "key_live"]
        )
      })
    )
  })

  layer(TestStores.layerWith({ limits: { cachePollMillis: 3_600_000, cacheRows: 2 } }))((it) => {
    it.effect("takes as many rows as its limit and fails on one more", () =>
      Effect.gen(function* () {
        yield* user
        yield* insertKey("key_1")
        yield* insertKey("key_2")
        const keys = yield* CachedTable.make(options)
        assert.strictEqual(keys.status().rows, 2)
        yield* insertKey("key_3")
        assert.include((yield* Effect.flip(keys.refreshNow)).message, "more than 2 rows")
        assert.strictEqual(keys.get("key_2")?.id, "key_2")
      })
    )
  })
})
