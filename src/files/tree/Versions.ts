import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { type BadRequest, Conflict, NotFound } from "#schemas/core/Problem.ts"
import { searchName } from "#schemas/files/Names.ts"
import type { Blob } from "#src/infra/blobs/BlobIndex.ts"
import { BlobStore } from "#src/infra/blobs/BlobStore.ts"
import { newId } from "#src/infra/crypto/Tokens.ts"
import { checkLength, type Directory, directoryGone } from "./Tree.ts"

/** A version of a file that is not in the trash. */
export interface StoredFile {
  /** of the version (`fv_`) */
  readonly id: string
  /** of the file, whatever its version (`fg_`) */
  readonly groupId: string
  readonly userId: string
  readonly directoryId: string
  readonly bucketId: string
  readonly bucketName: string
  /** the file's, now */
  readonly name: string
  /** within the bucket, with the name at its end */
  readonly path: string
  /** what the file was called when the version came */
  readonly originalName: string
  readonly version: number
  readonly isCurrent: boolean
  /** lower-case hexadecimal, of the stored bytes */
  readonly sha256: string
  readonly sizeBytes: number
  /** the directory of blobs that has the bytes */
  readonly store: string
  /** the bytes were seen to be damaged or missing */
  readonly damaged: boolean
  readonly mimeType: string
  /** the file's own time */
  readonly modifiedAt: Date
  readonly createdAt: Date
  readonly isEncrypted: boolean
  readonly encryptionKeyId: string | null
}

export interface Place {
  readonly userId: string
  readonly directory: Directory
  /** was checked by `entryName` */
  readonly name: string
}

export interface NewVersion {
  readonly blob: Blob
  /** the directory of blobs that has the bytes; the server's own where absent */
  readonly store?: string
  readonly mimeType: string
  readonly modifiedAt: Date
  readonly isEncrypted: boolean
  readonly encryptionKeyId: string | null
  /** the way it came, such as `upload` */
  readonly source: string
  /** the version that has to be current, or `none`: there must be no such file; absent: whatever is there */
  readonly ifVersion?: string | undefined
}

/** Versions of files: written once, never changed. */
export class Versions extends Context.Service<
  Versions,
  {
    /**
     * In the caller's transaction: the next version of the file of this name, without a gap or a twin, becomes current, and
     * refers to the blob. The file's row stays locked until the transaction ends.
     */
    readonly write: (
      place: Place,
      made: NewVersion
    ) => Effect.Effect<StoredFile, BadRequest | Conflict | SqlError>
    /** by the id of a version, or of a file for its current one */
    readonly find: (id: string) => Effect.Effect<StoredFile, NotFound | SqlError>
    readonly currentOf: (groupId: string) => Effect.Effect<StoredFile, NotFound | SqlError>
    /** all versions of the file of a version, or of a file, newest first; at least one */
    readonly history: (id: string) => Effect.Effect<ReadonlyArray<StoredFile>, NotFound | SqlError>
  }
>()("signalbox/files/Versions") {
  static readonly layer = Layer.effect(
    Versions,
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const { id: store } = yield* BlobStore
      return Versions.of({ write: writingOf(sql, store), ...findingOf(sql) })
    })
  )
}

/** The name of a version's reference to its blob. */
export const refOf = (id: string): string => `version ${id}`

/** The columns of a `StoredFile`, of `fileTables`. */
export const fileColumns = `v.id, g.id AS "groupId", g.user_id AS "userId", g.directory_id AS "directoryId",
  g.bucket_id AS "bucketId", b.name AS "bucketName", g.name, g.path, v.original_name AS "originalName", v.version,
  v.id = g.current_id AS "isCurrent", encode(v.sha256, 'hex') AS sha256, v.size::float8 AS "sizeBytes", v.store,
  coalesce(blob.damaged, false) AS damaged, v.mime_type AS "mimeType", v.modified_at AS "modifiedAt",
  v.created_at AS "createdAt", v.is_encrypted AS "isEncrypted", v.encryption_key_id AS "encryptionKeyId"`

/** Files, their versions, buckets and blobs; a condition says which. */
export const fileTables = `file_groups g JOIN file_versions v ON v.group_id = g.id
  JOIN directories b ON b.id = g.bucket_id
  LEFT JOIN blobs blob ON blob.store = v.store AND blob.sha256 = v.sha256`

export const fileNotFound = NotFound.of("File not found", { code: "file_not_found", param: "fileId" })

interface Written {
  readonly outcome: "written" | "other" | "gone"
  readonly group: string
  readonly number: number
  readonly current: string | null
  readonly bucket: string
  readonly path: string
  readonly madeAt: Date
}

const otherVersion = (current: string | null): Conflict =>
  Conflict.of(
    current === null
      ? "ifVersion: there is no file of this name"
      : `ifVersion: the current version is ${current}`,
    { code: "other_version", param: "ifVersion" }
  )

const writingOf = (sql: SqlClient, ownStore: string): Versions["Service"]["write"] =>
  Effect.fnUntraced(function* ({ directory, name, userId }, made) {
    yield* checkLength(directory.path + name, "name")
    const id = newId("fv")
    const { blob, encryptionKeyId, isEncrypted, mimeType, modifiedAt, source, store = ownStore } = made
    const [row] = yield* sql<Written>`SELECT outcome, of_group AS "group", number, now_current AS current,
        in_bucket AS bucket, at_path AS path, made_at AS "madeAt"
      FROM file_write(${id}, ${newId("fg")}, ${userId}, ${directory.id}, ${name}, ${searchName(name)}, ${store},
        decode(${blob.sha256}, 'hex'), ${blob.sizeBytes}::float8::bigint, ${mimeType}, ${modifiedAt}, ${isEncrypted},
        ${encryptionKeyId}, ${source}, ${made.ifVersion ?? null})`
    if (row === undefined || row.outcome === "gone") return yield* directoryGone
    if (row.outcome === "other") return yield* otherVersion(row.current)
    return {
      id,
      groupId: row.group,
      userId,
      directoryId: directory.id,
      bucketId: row.bucket,
      bucketName: directory.bucketName,
      name,
      path: row.path,
      originalName: name,
      version: row.number,
      isCurrent: true,
      sha256: blob.sha256,
      sizeBytes: blob.sizeBytes,
      store,
      damaged: false,
      mimeType,
      modifiedAt,
      createdAt: row.madeAt,
      isEncrypted,
      encryptionKeyId
    }
  })

const findingOf = (sql: SqlClient): Omit<Versions["Service"], "write"> => {
  const columns = sql.literal(fileColumns)
  const tables = sql.literal(fileTables)
  const first = (files: ReadonlyArray<StoredFile>) => {
    const [file] = files
    return file === undefined ? Effect.fail(fileNotFound) : Effect.succeed(file)
  }
  const currentOf = (groupId: string) =>
    Effect.flatMap(
      sql<StoredFile>`SELECT ${columns} FROM ${tables}
        WHERE g.id = ${groupId} AND v.id = g.current_id AND g.trash_id IS NULL`,
      first
    )
  const ofFile = (id: string) =>
    id.startsWith("fg_") ? sql`${id}` : sql`(SELECT group_id FROM file_versions WHERE id = ${id})`
  return {
    currentOf,
    find: (id) =>
      id.startsWith("fg_")
        ? currentOf(id)
        : Effect.flatMap(
            sql<StoredFile>`SELECT ${columns} FROM ${tables} WHERE v.id = ${id} AND g.trash_id IS NULL`,
            first
          ),
    history: (id) =>
      Effect.tap(
        sql<StoredFile>`SELECT ${columns} FROM ${tables} WHERE g.id = ${ofFile(id)} AND g.trash_id IS NULL
          ORDER BY v.version DESC`,
        first
      )
  }
}
