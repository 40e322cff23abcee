import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { AppConfig } from "#src/Config.ts"
import { type Directory, directoryColumns } from "./Tree.ts"
import { fileColumns, fileTables, type StoredFile } from "./Versions.ts"

/** A directory or a current version of a file. */
export type Entry =
  | { readonly kind: "directory"; readonly path: string; readonly directory: Directory }
  | { readonly kind: "file"; readonly path: string; readonly file: StoredFile }

/** All that is below a directory, in the byte order of the paths within its bucket; a directory's has a slash at its end. */
export class Walk extends Context.Service<
  Walk,
  {
    /** At most `limit` entries whose path is behind `after`, which is a path or, at first, undefined. */
    readonly page: (
      directory: Directory,
      after: string | undefined,
      limit: number
    ) => Effect.Effect<ReadonlyArray<Entry>, SqlError>
    /** The user's buckets, in the byte order of name and slash, as paths from the root are; without those of machines. */
    readonly buckets: (userId: string) => Effect.Effect<ReadonlyArray<Directory>, SqlError>
    /** Runs reads of one snapshot: it opens a transaction, so that the caller has none. */
    readonly snapshot: <A, E, R>(reads: Effect.Effect<A, E, R>) => Effect.Effect<A, E | SqlError, R>
    /** All entries, page by page, in the caller's snapshot. */
    readonly below: <E, R>(
      directory: Directory,
      use: (entries: ReadonlyArray<Entry>) => Effect.Effect<void, E, R>
    ) => Effect.Effect<void, E | SqlError, R>
  }
>()("signalbox/files/Walk") {
  static readonly layer = Layer.effect(
    Walk,
    Effect.gen(function* () {
      const { limits } = yield* AppConfig
      return make(yield* SqlClient, limits.walkEntriesAtOnce)
    })
  )
}

/** The end of the range of paths that begin with this one. */
export const rangeEnd = (path: string): string | null => (path === "" ? null : `${path.slice(0, -1)}0`)

const make = (sql: SqlClient, entriesAtOnce: number): Walk["Service"] => {
  const inRange = (table: "d" | "g", { bucketId, path }: Directory, after: string) => {
    const end = rangeEnd(path)
    const at = sql.literal(`${table}.path`)
    return sql`${sql.literal(`${table}.trash_id IS NULL AND ${table}.bucket_id`)} = ${bucketId}
      AND ${at} > ${after} ${end === null ? sql.literal("") : sql`AND ${at} < ${end}`}`
  }
  const page: Walk["Service"]["page"] = Effect.fnUntraced(function* (directory, after, limit) {
    const from = after ?? directory.path
    const directories = yield* sql<Directory>`SELECT ${sql.literal(directoryColumns)} FROM directories d
      JOIN directories b ON b.id = d.bucket_id
      WHERE ${inRange("d", directory, from)} ORDER BY d.path LIMIT ${limit}`
    const files = yield* sql<StoredFile>`SELECT ${sql.literal(fileColumns)} FROM ${sql.literal(fileTables)}
      WHERE ${inRange("g", directory, from)} AND v.id = g.current_id ORDER BY g.path LIMIT ${limit}`
    return merged(directories, files).slice(0, limit)
  })
  const below: Walk["Service"]["below"] = Effect.fnUntraced(function* (directory, use) {
    for (let after: string | undefined; ;) {
      const entries = yield* page(directory, after, entriesAtOnce)
      if (entries.length > 0) yield* use(entries)
      after = entries.at(-1)?.path
      if (entries.length < entriesAtOnce) return
    }
  })
  return {
    page,
    below,
    buckets: (userId) =>
      sql<Directory>`SELECT ${sql.literal(directoryColumns)} FROM directories d
        JOIN directories b ON b.id = d.bucket_id
        WHERE d.user_id = ${userId} AND d.parent_id IS NULL AND d.trash_id IS NULL AND d.kind <> 'device'
        ORDER BY d.name || '/'`,
    snapshot: (reads) =>
      sql.withTransaction(
        Effect.andThen(sql`SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY`, reads)
      )
  }
}

/** Byte order, which is not that of UTF-16 beyond the basic plane. */
const compareBytes = (one: string, other: string): number =>
  Buffer.compare(Buffer.from(one), Buffer.from(other))

/** Both lists in one; each is in order, and no path is in both. */
const merged = (
  directories: ReadonlyArray<Directory>,
  files: ReadonlyArray<StoredFile>
): ReadonlyArray<Entry> => {
  const entries: Array<Entry> = []
  let at = 0
  for (const directory of directories) {
    for (
      let file = files[at];
      file !== undefined && compareBytes(file.path, directory.path) < 0;
      file = files[at]
    ) {
      entries.push({ kind: "file", path: file.path, file })
      at += 1
    }
    entries.push({ kind: "directory", path: directory.path, directory })
  }
  for (const file of files.slice(at)) entries.push({ kind: "file", path: file.path, file })
  return entries
}
