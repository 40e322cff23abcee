import { Effect } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { rangeEnd } from "../tree/Walk.ts"
import type { Directory } from "../tree/Tree.ts"
import { numberedName } from "#streams/files/NumberedName.ts"

/** A directory, or the current version of a file, as an archive has it. */
export interface EntryRow {
  /** within the bucket; of a directory with a slash at its end */
  readonly path: string
  readonly modifiedSeconds: number
  /** null: a directory */
  readonly sha256: Uint8Array | null
  readonly sizeBytes: number
  /** null: nothing has computed it */
  readonly crc32: number | null
  readonly store: string | null
  readonly damaged: boolean
}

interface FoundRow extends EntryRow {
  readonly isEncrypted: boolean
  /** the name that it would have is another entry's */
  readonly isTaken: boolean
}

/** Names of files whose bytes are encrypted end with it. */
const encryptedSuffix = ".sbx"
const nameBytes = 255

const seconds = (column: string): string =>
  `floor(extract(epoch FROM ${column}))::float8 AS "modifiedSeconds"`

/** A file and a directory may share a name, which no disk can hold: the file has another one then. */
const isTaken = `(EXISTS (SELECT 1 FROM directories t WHERE t.bucket_id = g.bucket_id AND t.trash_id IS NULL
    AND t.path = g.path || CASE WHEN v.is_encrypted THEN '${encryptedSuffix}/' ELSE '/' END)
  OR v.is_encrypted AND EXISTS (SELECT 1 FROM file_groups t WHERE t.bucket_id = g.bucket_id
    AND t.trash_id IS NULL AND t.path = g.path || '${encryptedSuffix}')) AS "isTaken"`

const directoryColumns = `d.path, ${seconds("d.modified_at")}, NULL::bytea AS sha256, 0::float8 AS "sizeBytes",
  NULL::float8 AS crc32, NULL AS store, false AS damaged, false AS "isEncrypted", false AS "isTaken"`

const fileColumns = `g.path, ${seconds("v.modified_at")}, v.sha256, v.size::float8 AS "sizeBytes",
  blob.crc32::float8 AS crc32, v.store, coalesce(blob.damaged, true) AS damaged,
  v.is_encrypted AS "isEncrypted", ${isTaken}`

const hasOwnName = ({ isEncrypted, isTaken }: FoundRow): boolean => !isTaken && !isEncrypted

/** Reads what is below a directory, in the byte order of paths. */
export const makeEntries = (sql: SqlClient, entriesAtOnce: number) => {
  const page = ({ bucketId, path }: Directory, after: string) => {
    const end = rangeEnd(path)
    const range = (table: "d" | "g") => {
      const at = sql.literal(`${table}.path`)
      return sql`${sql.literal(`${table}.trash_id IS NULL AND ${table}.bucket_id`)} = ${bucketId}
        AND ${at} > ${after} ${end === null ? sql.literal("") : sql`AND ${at} < ${end}`}`
    }
    return sql<FoundRow>`SELECT * FROM (
        (SELECT ${sql.literal(directoryColumns)} FROM directories d
          WHERE ${range("d")} ORDER BY d.path LIMIT ${entriesAtOnce})
        UNION ALL
        (SELECT ${sql.literal(fileColumns)} FROM file_groups g JOIN file_versions v ON v.id = g.current_id
          LEFT JOIN blobs blob ON blob.store = v.store AND blob.sha256 = v.sha256
          WHERE ${range("g")} ORDER BY g.path LIMIT ${entriesAtOnce})) e
      ORDER BY path LIMIT ${entriesAtOnce}`
  }

  /** A path in the bucket that no entry of it has in an archive. */
  const isFree = (bucketId: string, path: string): Effect.Effect<boolean, SqlError> =>
    Effect.map(
      sql`SELECT 1 FROM directories WHERE bucket_id = ${bucketId} AND trash_id IS NULL AND path = ${`${path}/`}
        UNION ALL SELECT 1 FROM file_groups g JOIN file_versions v ON v.id = g.current_id
          WHERE g.bucket_id = ${bucketId} AND g.trash_id IS NULL
            AND g.path IN (${path}, ${path.slice(0, -encryptedSuffix.length)})
            AND g.path || CASE WHEN v.is_encrypted THEN ${encryptedSuffix} ELSE '' END = ${path}`,
      (rows) => rows.length === 0
    )

  const named = Effect.fnUntraced(function* (bucketId: string, row: FoundRow, given: Set<string>) {
    const at = row.path.lastIndexOf("/") + 1
    const suffix = row.isEncrypted ? encryptedSuffix : ""
    const name = row.path.slice(at)
    if (!row.isTaken && Buffer.byteLength(name + suffix) <= nameBytes) return row.path + suffix
    for (let number = 1; ; number++) {
      const path = row.path.slice(0, at) + numberedName(name, number, suffix)
      if (given.has(path) || !(yield* isFree(bucketId, path))) continue
      given.add(path)
      return path
    }
  })

  /** All of it where one statement has it, which is a snapshot by itself; undefined: it takes several. */
  const atOnce = (directory: Directory): Effect.Effect<ReadonlyArray<EntryRow> | undefined, SqlError> =>
    Effect.map(page(directory, directory.path), (rows) =>
      rows.length < entriesAtOnce && rows.every(hasOwnName) ? rows : undefined
    )

  /** All of it, page by page, in the caller's snapshot. */
  const paged = Effect.fnUntraced(function* <E, R>(
    directory: Directory,
    use: (rows: ReadonlyArray<EntryRow>) => Effect.Effect<void, E, R>
  ) {
    const given = new Set<string>()
    for (let after = directory.path; ;) {
      const found = yield* page(directory, after)
      const rows: Array<EntryRow> = []
      for (const row of found) {
        rows.push(hasOwnName(row) ? row : { ...row, path: yield* named(directory.bucketId, row, given) })
      }
      yield* use(rows)
      after = found.at(-1)?.path ?? after
      if (found.length < entriesAtOnce) return
    }
  })
  return { atOnce, paged }
}
