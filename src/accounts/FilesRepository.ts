import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"

/** A row of `files`. */
export interface FileRow {
  readonly id: string
  readonly userId: string
  readonly filename: string
  readonly contentType: string
  readonly sizeBytes: number
  /** lower-case hexadecimal */
  readonly sha256: string
}

const decodeColumns = Schema.decodeUnknownSync(
  Schema.Struct({
    id: Schema.String,
    user_id: Schema.String,
    filename: Schema.String,
    content_type: Schema.String,
    size: Schema.Number,
    sha256: Schema.Uint8Array
  })
)

/** `files` in Postgres: owners and names of blobs. */
export class FilesRepository extends Context.Service<
  FilesRepository,
  {
    readonly insert: (
      row: Omit<FileRow, "sha256"> & { readonly sha256: Uint8Array }
    ) => Effect.Effect<void, SqlError>
    readonly find: (id: string) => Effect.Effect<FileRow | undefined, SqlError>
    /** false: there is none, or another user has it */
    readonly markDeleted: (id: string, userId: string) => Effect.Effect<boolean, SqlError>
  }
>()("signalbox/accounts/FilesRepository") {
  static readonly layer = Layer.effect(
    FilesRepository,
    Effect.map(SqlClient, (sql) => ({
      insert: (row) =>
        Effect.asVoid(
          sql`INSERT INTO files ${sql.insert({
            id: row.id,
            user_id: row.userId,
            filename: row.filename,
            content_type: row.contentType,
            size: row.sizeBytes,
            sha256: row.sha256
          })}`
        ),
      find: (id) =>
        Effect.map(
          sql<
            Record<string, unknown>
          >`SELECT id, user_id, filename, content_type, size::float8 AS size, sha256
            FROM files WHERE id = ${id} AND deleted_at IS NULL`,
          ([row]) => (row === undefined ? undefined : fileOfRow(row))
        ),
      markDeleted: (id, userId) =>
        Effect.map(
          sql`UPDATE files SET deleted_at = now()
            WHERE id = ${id} AND user_id = ${userId} AND deleted_at IS NULL RETURNING id`,
          (rows) => rows.length > 0
        )
    }))
  )
}

const fileOfRow = (row: Readonly<Record<string, unknown>>): FileRow => {
  const columns = decodeColumns(row)
  return {
    id: columns.id,
    userId: columns.user_id,
    filename: columns.filename,
    contentType: columns.content_type,
    sizeBytes: columns.size,
    sha256: Buffer.from(columns.sha256).toString("hex")
  }
}
