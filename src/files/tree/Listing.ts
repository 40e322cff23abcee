import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { BadRequest, NotFound } from "#schemas/core/Problem.ts"
import { searchName } from "#schemas/files/Names.ts"
import type { Buckets } from "../access/Reach.ts"
import { cursorOf, pageOf, partsOf } from "./Cursors.ts"
import { type Directory, directoryColumns, directoryNotFound } from "./Tree.ts"
import { fileColumns, fileTables, type StoredFile } from "./Versions.ts"

interface Page {
  readonly limit: number
  readonly cursor?: string
}

/** Lists of what is in a tree, page by page. What was sent to machines is in none of them. */
export class Listing extends Context.Service<
  Listing,
  {
    /** in the byte order of bucket and path */
    readonly directories: (
      userId: string,
      readable: Buckets
    ) => Effect.Effect<ReadonlyArray<Directory>, SqlError>
    /** the directories of a path, the bucket first */
    readonly chain: (
      userId: string,
      names: ReadonlyArray<string>
    ) => Effect.Effect<ReadonlyArray<Directory>, NotFound | SqlError>
    /** the file of a path, the bucket first */
    readonly fileAt: (
      userId: string,
      names: ReadonlyArray<string>
    ) => Effect.Effect<StoredFile | undefined, SqlError>
    /** directories, then files, each by name; undefined: the root */
    readonly inside: (
      userId: string,
      directory: Directory | undefined,
      readable: Buckets,
      page: Page
    ) => Effect.Effect<
      {
        readonly directories: ReadonlyArray<Directory>
        readonly files: ReadonlyArray<StoredFile>
        readonly cursor: string | null
      },
      BadRequest | SqlError
    >
    /** files whose name has this text in it, by bucket and path */
    readonly search: (
      userId: string,
      readable: Buckets,
      text: string,
      page: Page
    ) => Effect.Effect<
      { readonly rows: ReadonlyArray<StoredFile>; readonly cursor: string | null },
      BadRequest | SqlError
    >
  }
>()("signalbox/files/Listing") {
  static readonly layer = Layer.effect(
    Listing,
    Effect.map(SqlClient, (sql) =>
      Listing.of({ ...wholeOf(sql), inside: insideOf(sql), search: searchingOf(sql) })
    )
  )
}

const directoriesOf = (sql: SqlClient) =>
  sql.literal(`SELECT ${directoryColumns} FROM directories d JOIN directories b ON b.id = d.bucket_id
    WHERE d.trash_id IS NULL AND b.kind <> 'device'`)

/** Whether the bucket `b` is one of these. */
const isIn = (sql: SqlClient, buckets: Buckets) =>
  buckets === "all" ? sql.literal("true") : sql`b.name = ANY(${[...buckets]}::text[])`

const wholeOf = (sql: SqlClient): Pick<Listing["Service"], "directories" | "chain" | "fileAt"> => ({
  fileAt: (userId, [bucket = "", ...names]) =>
    Effect.map(
      sql<StoredFile>`SELECT ${sql.literal(fileColumns)} FROM ${sql.literal(fileTables)}
        WHERE b.user_id = ${userId} AND coalesce(b.parent_id, '') = '' AND b.name = ${bucket} AND b.trash_id IS NULL
          AND g.path = ${names.join("/")} AND g.trash_id IS NULL AND v.id = g.current_id AND b.kind <> 'device'`,
      ([found]) => found
    ),
  directories: (userId, readable) =>
    sql<Directory>`${directoriesOf(sql)} AND d.user_id = ${userId} AND ${isIn(sql, readable)}
      ORDER BY b.name || '/', d.path`,
  chain: Effect.fnUntraced(function* (userId, names) {
    const [bucket = "", ...below] = names
    const paths = below.map((_, index) =>
      below
        .slice(0, index + 1)
        .map((name) => `${name}/`)
        .join("")
    )
    const found = yield* sql<Directory>`${directoriesOf(sql)} AND d.user_id = ${userId} AND b.name = ${bucket}
      AND d.path = ANY(${["", ...paths]}::text[]) ORDER BY d.path`
    return found.length === names.length ? found : yield* directoryNotFound
  })
})

const insideOf = (sql: SqlClient): Listing["Service"]["inside"] => {
  const filesOf = sql.literal(`SELECT ${fileColumns} FROM ${fileTables}
    WHERE g.trash_id IS NULL AND v.id = g.current_id`)
  const nothing = Effect.succeed<ReadonlyArray<never>>([])
  return Effect.fnUntraced(function* (userId, directory, readable, { cursor, limit }) {
    const [kind = "d", name = ""] = (yield* partsOf(cursor, 2)) ?? []
    const directories =
      kind === "f"
        ? yield* nothing
        : yield* sql<Directory>`${directoriesOf(sql)} AND d.user_id = ${userId} AND ${isIn(sql, readable)}
            AND coalesce(d.parent_id, '') = ${directory?.id ?? ""} AND d.name > ${name}
            ORDER BY d.name LIMIT ${limit + 1}`
    const shown = pageOf(directories, limit, (last) => cursorOf("d", last.name))
    const left = limit - shown.rows.length
    if (shown.cursor !== null || directory === undefined)
      return { directories: shown.rows, files: [], cursor: shown.cursor }
    const after = kind === "f" ? name : ""
    const files = yield* sql<StoredFile>`${filesOf} AND g.directory_id = ${directory.id} AND g.name > ${after}
      ORDER BY g.name LIMIT ${left + 1}`
    // A page that directories have filled goes on with the files, if there are any.
    const rest = pageOf(files, left, (last) => cursorOf("f", last.name))
    const next = left === 0 && files.length > 0 ? cursorOf("f", "") : rest.cursor
    return { directories: shown.rows, files: rest.rows, cursor: next }
  })
}

const searchingOf = (sql: SqlClient): Listing["Service"]["search"] =>
  Effect.fnUntraced(function* (userId, readable, text, { cursor, limit }) {
    const [bucket = "", path = ""] = (yield* partsOf(cursor, 2)) ?? []
    // The matches of each bucket are read along the index of its paths, no more than are shown.
    const rows = yield* sql<StoredFile>`
      WITH buckets AS (SELECT b.id, b.name FROM directories b WHERE b.user_id = ${userId} AND b.parent_id IS NULL
          AND b.trash_id IS NULL AND b.kind <> 'device' AND b.name >= ${bucket} AND ${isIn(sql, readable)}),
        found AS (SELECT b.name, f.path, f.id FROM buckets b CROSS JOIN LATERAL (
          SELECT g.id, g.path FROM file_groups g WHERE g.bucket_id = b.id AND g.trash_id IS NULL
            AND strpos(g.search_name, ${searchName(text)}) > 0
            AND (b.name > ${bucket} OR g.path > ${path})
          ORDER BY g.path LIMIT ${limit + 1}) f
          ORDER BY b.name, f.path LIMIT ${limit + 1})
      SELECT ${sql.literal(fileColumns)} FROM ${sql.literal(fileTables)}
      WHERE g.id IN (SELECT id FROM found) AND v.id = g.current_id ORDER BY b.name, g.path`
    return pageOf(rows, limit, (last) => cursorOf(last.bucketName, last.path))
  })
