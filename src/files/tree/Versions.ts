import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { type BadRequest, Conflict, NotFound } from "#schemas/core/Problem.ts"
import { searchName } from "#schemas/files/Names.ts"
import { AppConfig } from "#src/Config.ts"
import type { Blob, NewBlob } from "#src/infra/blobs/BlobIndex.ts"
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
  /** the name of the file when the version came */
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
  readonly directory: Directory
  /** was checked by `entryName` */
  readonly name: string
}

export interface NewVersion {
  /** as it was published, or that of a `StoredFile` */
  readonly blob: Blob | NewBlob
  readonly mimeType: string
  readonly modifiedAt: Date
  readonly isEncrypted: boolean
  readonly encryptionKeyId: string | null
  /** the version that has to be current, or `none`: there must be no such file; absent: whatever is there */
  readonly ifVersion?: string | undefined
}

/** Versions of files: written once, never changed. */
export class Versions extends Context.Service<
  Versions,
  {
    /**
     * In the caller's transaction: for each of them the next version of the file of this name, without a gap or a twin,
     * becomes current, and refers to the blob. Answers them in the same order. Nothing but blobs may be locked behind it,
     * so that a transaction calls it once.
     */
    readonly writeAll: (
      userId: string,
      source: string,
      files: ReadonlyArray<Place & NewVersion>
    ) => Effect.Effect<ReadonlyArray<StoredFile>, BadRequest | Conflict | SqlError>
    /** The same for one. */
    readonly write: (
      userId: string,
      source: string,
      file: Place & NewVersion
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
      const { limits } = yield* AppConfig
      const writeAll = writingOf(sql, yield* BlobStore, limits.versionsPerUser)
      return Versions.of({
        writeAll,
        write: (userId, source, file) =>
          Effect.flatMap(writeAll(userId, source, [file]), ([version]) =>
            version === undefined ? Effect.fail(directoryGone) : Effect.succeed(version)
          ),
        ...findingOf(sql)
      })
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
  readonly place: number
  readonly outcome: "written" | "other" | "gone"
  readonly group: string
  readonly number: number
  readonly current: string | null
  readonly bucket: string
  readonly path: string
  readonly madeAt: Date
}

export const otherVersion = (current: string | null): Conflict =>
  Conflict.of(
    current === null
      ? "ifVersion: there is no file of this name"
      : `ifVersion: the current version is ${current}`,
    { code: "other_version", param: "ifVersion" }
  )

/** A version that is to be written, and its place in the caller's list. */
interface Placed extends Place, NewVersion {
  readonly id: string
  readonly at: number
}

/** In the order in which all transactions lock files. */
const inOrder = (files: ReadonlyArray<Place & NewVersion>): ReadonlyArray<Placed> =>
  files
    .map((file, at) => ({ ...file, id: newId("fv"), at }))
    .toSorted(
      (one, other) =>
        Buffer.compare(Buffer.from(pathOf(one)), Buffer.from(pathOf(other))) || one.at - other.at
    )

const pathOf = ({ directory, name }: Place): string => `${directory.bucketId}/${directory.path}${name}`

/**
 * A user has so many more versions, in the caller's transaction; answers how many in all. The number is locked behind the user's
 * sum of bytes.
 */
export const countMore = (sql: SqlClient, userId: string, more: number): Effect.Effect<number, SqlError> =>
  Effect.map(
    sql<{ versions: number }>`INSERT INTO file_counts AS c (user_id, versions) VALUES (${userId}, ${more})
      ON CONFLICT (user_id) DO UPDATE SET versions = c.versions + excluded.versions
      RETURNING versions::float8 AS versions`,
    ([row]) => row?.versions ?? 0
  )

const writingOf = (
  sql: SqlClient,
  blobs: BlobStore["Service"],
  most: number
): Versions["Service"]["writeAll"] => {
  /** A row for each, up to the first that fails. The client sends no arrays of nulls. */
  const statement = (userId: string, source: string, files: ReadonlyArray<Placed>) =>
    sql<Written>`SELECT place::int AS place, outcome, of_group AS "group", number, now_current AS current,
        in_bucket AS bucket, at_path AS path, made_at AS "madeAt"
      FROM file_write_all(${userId}, ${blobs.id}, ${source}, ${files.map(({ id }) => id)}::text[],
        ${files.map(() => newId("fg"))}::text[], ${files.map(({ directory }) => directory.id)}::text[],
        ${files.map(({ name }) => name)}::text[], ${files.map(({ name }) => searchName(name))}::text[],
        ${files.map(({ blob }) => blob.sha256)}::text[], ${files.map(({ blob }) => String(blob.sizeBytes))}::text[]::bigint[],
        ${files.map(({ mimeType }) => mimeType)}::text[],
        ${files.map(({ modifiedAt }) => modifiedAt.toISOString())}::text[]::timestamptz[],
        ${files.map(({ isEncrypted }) => isEncrypted)}::boolean[],
        ${files.map(({ encryptionKeyId }) => encryptionKeyId ?? "")}::text[],
        ${files.map(({ ifVersion }) => ifVersion ?? "")}::text[])`
  return Effect.fnUntraced(function* (userId, source, sent) {
    const files = inOrder(sent)
    for (const { directory, name } of files) yield* checkLength(directory.path + name, "name")
    const rows = yield* statement(userId, source, files)
    const stored: Array<StoredFile> = []
    for (const row of rows) {
      const file = files[row.place - 1]
      if (file === undefined || row.outcome === "gone") return yield* directoryGone
      if (row.outcome === "other") return yield* otherVersion(row.current)
      stored[file.at] = storedOf(userId, blobs.id, file, row)
    }
    const owner = { userId, source, expiresAt: null }
    yield* blobs.referAll(
      files.map(({ blob, id }) => ({ ref: refOf(id), blob })),
      owner
    )
    if ((yield* countMore(sql, userId, files.length)) > most)
      return yield* Conflict.of(`A user has at most ${most} versions of files, the trash included`, {
        code: "too_many_versions"
      })
    return stored
  })
}

const storedOf = (
  userId: string,
  store: string,
  { blob, directory, encryptionKeyId, id, isEncrypted, mimeType, modifiedAt, name }: Placed,
  row: Written
): StoredFile => ({
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
})

const findingOf = (sql: SqlClient): Omit<Versions["Service"], "write" | "writeAll"> => {
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
