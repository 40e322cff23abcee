import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { AppConfig } from "#src/Config.ts"
import { BlobStore } from "#src/infra/blobs/BlobStore.ts"
import { countMore, refOf } from "./Versions.ts"

/** Deletes versions for good: entries of the trash that have ended, and old versions. */
export class Purge extends Context.Service<
  Purge,
  {
    /** In a transaction: these versions, and their references. */
    readonly versions: (ids: ReadonlyArray<string>) => Effect.Effect<void, SqlError>
    /** Some of what has ended in the user's trash; the sweep does the rest. */
    readonly begin: (userId: string) => Effect.Effect<void, SqlError>
    /** All entries of the trash that have ended. */
    readonly all: Effect.Effect<void, SqlError>
    /** Versions that are not current and older than their bucket keeps them, but for the newest ones of each file. */
    readonly prune: Effect.Effect<void, SqlError>
  }
>()("signalbox/files/Purge") {
  static readonly layer = Layer.effect(
    Purge,
    Effect.gen(function* () {
      const { limits } = yield* AppConfig
      return make(yield* SqlClient, yield* BlobStore, limits)
    })
  )
}

interface Bounds {
  readonly versionsPurgedAtOnce: number
  readonly versionsPurgedByRequest: number
  readonly versionsKept: number
  readonly versionsPerFile: number
}

const make = (sql: SqlClient, blobs: BlobStore["Service"], limits: Bounds): Purge["Service"] => {
  const deleted = Effect.fnUntraced(function* (ids: ReadonlyArray<string>) {
    const rows = yield* sql<{ userId: string }>`DELETE FROM file_versions WHERE id IN
      (SELECT id FROM file_versions WHERE id = ANY(${ids}::text[]) ORDER BY id FOR UPDATE)
      RETURNING user_id AS "userId"`
    yield* blobs.releaseAll(ids.map(refOf))
    const counts = Map.groupBy(rows, ({ userId }) => userId)
    for (const userId of [...counts.keys()].sort())
      yield* countMore(sql, userId, -(counts.get(userId)?.length ?? 0))
  }, sql.withTransaction)
  const versions: Purge["Service"]["versions"] = (ids) => (ids.length === 0 ? Effect.void : deleted(ids))
  const entry = endingOf(sql, versions, limits.versionsPurgedAtOnce)
  const { versionsPurgedAtOnce: atOnce, versionsPurgedByRequest } = limits
  return {
    versions,
    begin: Effect.fnUntraced(function* (userId) {
      let left = versionsPurgedByRequest
      const entries = yield* sql<{
        id: string
      }>`SELECT id FROM file_trash WHERE user_id = ${userId} AND is_ended
        LIMIT ${versionsPurgedByRequest}`
      for (const { id } of entries) {
        if (left <= 0) return
        left -= 1 + (yield* entry(id, left))
      }
    }),
    all: Effect.gen(function* () {
      for (;;) {
        const entries = yield* sql<{ id: string }>`SELECT id FROM file_trash WHERE is_ended LIMIT ${atOnce}`
        for (const { id } of entries) yield* entry(id, Infinity)
        if (entries.length < atOnce) return
      }
    }),
    prune: pruningOf(sql, versions, limits)
  }
}

const idsOf = (rows: ReadonlyArray<{ readonly id: string }>) => rows.map(({ id }) => id)

/**
 * Deletes an entry that has ended, so that nothing restores it, or `most` versions of it if there are more; answers how many
 * versions went.
 */
const endingOf = (sql: SqlClient, versions: Purge["Service"]["versions"], atOnce: number) => {
  const rest = (trashId: string) =>
    sql.withTransaction(
      Effect.gen(function* () {
        yield* sql`DELETE FROM file_groups WHERE trash_id = ${trashId}`
        yield* sql`DELETE FROM directories WHERE trash_id = ${trashId}`
        yield* sql`DELETE FROM file_trash WHERE id = ${trashId}`
      })
    )
  // Files go with their last versions: those that have none would be passed over by all that follow.
  const some = (rows: ReadonlyArray<{ readonly id: string; readonly groupId: string }>) =>
    sql.withTransaction(
      Effect.andThen(
        versions(idsOf(rows)),
        sql`DELETE FROM file_groups g WHERE g.id = ANY(${rows.map(({ groupId }) => groupId)}::text[])
          AND NOT EXISTS (SELECT FROM file_versions v WHERE v.group_id = g.id)`
      )
    )
  return Effect.fnUntraced(function* (trashId: string, most: number) {
    for (let purged = 0; ;) {
      const rows = yield* sql<{
        id: string
        groupId: string
      }>`SELECT v.id, g.id AS "groupId" FROM file_groups g
        JOIN file_versions v ON v.group_id = g.id WHERE g.trash_id = ${trashId} LIMIT ${atOnce}`
      yield* some(rows)
      purged += rows.length
      if (rows.length === atOnce && purged >= most) return purged
      if (rows.length < atOnce) {
        yield* rest(trashId)
        return purged
      }
    }
  })
}

const pruningOf = (
  sql: SqlClient,
  versions: Purge["Service"]["versions"],
  { versionsKept, versionsPerFile, versionsPurgedAtOnce: atOnce }: Bounds
): Purge["Service"]["prune"] => {
  const tooOld = sql<{ id: string }>`SELECT v.id FROM file_versions v JOIN file_groups g ON g.id = v.group_id
    JOIN directories b ON b.id = g.bucket_id
    WHERE g.trash_id IS NULL AND v.superseded_at < now() - b.version_days * interval '1 day' AND v.id <> g.current_id
      AND v.version < (SELECT n.version FROM file_versions n WHERE n.group_id = g.id
        ORDER BY n.version DESC OFFSET ${versionsKept - 1} LIMIT 1)
    LIMIT ${atOnce}`
  const tooMany = sql<{ id: string }>`SELECT v.id FROM file_groups g JOIN file_versions v ON v.group_id = g.id
    WHERE g.trash_id IS NULL AND g.last_version > ${versionsPerFile} AND v.id <> g.current_id
      AND v.version <= g.last_version - ${versionsPerFile} LIMIT ${atOnce}`
  return Effect.gen(function* () {
    for (const found of [tooOld, tooMany])
      for (let isMore = true; isMore;) {
        const rows = yield* found
        yield* versions(idsOf(rows))
        isMore = rows.length === atOnce
      }
  })
}
