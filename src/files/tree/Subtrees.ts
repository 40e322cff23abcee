import { Effect } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Fragment } from "effect/sql/Statement"
import { type BadRequest, invalidField } from "#schemas/core/Problem.ts"
import { pathBytes, utf8Bytes } from "#schemas/files/Names.ts"
import type { Limits } from "#src/Limits.ts"
import type { Directory } from "./Tree.ts"
import { rangeEnd } from "./Walk.ts"

/** The rows of a directory and of all below it: those that are not in the trash, or those that went there together. */
export type Subtree = Pick<Directory, "bucketId" | "path"> & { readonly trashId: string | null }

/** The place that the directory of a subtree gets. */
export interface NewPlace {
  readonly bucketId: string
  readonly parentId: string | null
  readonly name: string
  readonly path: string
}

export const rowsOf = (sql: SqlClient, { bucketId, path, trashId }: Subtree): Fragment => {
  if (trashId !== null) return sql`trash_id = ${trashId}`
  const end = rangeEnd(path)
  const all = sql`trash_id IS NULL AND bucket_id = ${bucketId} AND path >= ${path}`
  return end === null ? all : sql`${all} AND path < ${end}`
}

/** Bytes of all versions of all files in it. */
export const sizeOf = (sql: SqlClient, subtree: Subtree): Effect.Effect<number, SqlError> =>
  Effect.map(
    sql<{ size: number }>`SELECT coalesce(sum(v.size), 0)::float8 AS size FROM file_versions v
      WHERE v.group_id IN (SELECT id FROM file_groups WHERE ${rowsOf(sql, subtree)})`,
    ([row]) => row?.size ?? 0
  )

const slashesOf = (path: string): number => path.split("/").length - 1

/** Fails where a path below the new place would be too long, or a directory too deep. */
export const checkFits = (
  sql: SqlClient,
  subtree: Subtree,
  to: NewPlace,
  { directoryLevels }: Limits
): Effect.Effect<void, BadRequest | SqlError> =>
  Effect.gen(function* () {
    const [row] = yield* sql<{ slashes: number; bytes: number }>`SELECT
      max(length(path) - length(replace(path, '/', ''))) FILTER (WHERE is_directory)::int AS slashes,
      max(octet_length(path))::int AS bytes FROM (
        SELECT path, true AS is_directory FROM directories WHERE ${rowsOf(sql, subtree)}
        UNION ALL SELECT path, false FROM file_groups WHERE ${rowsOf(sql, subtree)}) AS below`
    const { bytes = 0, slashes = 0 } = row ?? {}
    if (slashes - slashesOf(subtree.path) + slashesOf(to.path) + 1 > directoryLevels)
      return yield* invalidField("parentId", `at most ${directoryLevels} directories below each other`)
    if (bytes - utf8Bytes(subtree.path) + utf8Bytes(to.path) > pathBytes)
      return yield* invalidField("parentId", `a path within a bucket has at most ${pathBytes} bytes`)
  })

/** Gives a directory its new place, and all below it their new paths; none of them is in the trash then. */
export const moveSubtree = (
  sql: SqlClient,
  id: string,
  subtree: Subtree,
  to: NewPlace
): Effect.Effect<void, SqlError> => {
  const set = sql`bucket_id = ${to.bucketId}, trash_id = NULL,
    path = ${to.path} || substr(path, ${[...subtree.path].length + 1}::int)`
  return Effect.gen(function* () {
    // The name first: while it is in the trash, another directory may have the one that it had.
    yield* sql`UPDATE directories SET parent_id = ${to.parentId}, name = ${to.name}, modified_at = now()
      WHERE id = ${id}`
    yield* sql`UPDATE file_groups SET ${set} WHERE ${rowsOf(sql, subtree)}`
    yield* sql`UPDATE directories SET ${set} WHERE ${rowsOf(sql, subtree)}`
  })
}
