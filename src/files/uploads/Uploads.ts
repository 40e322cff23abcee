import { Context, Effect, Layer, Option } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Fragment } from "effect/sql/Statement"
import type { UploadedFile } from "#schemas/files/UploadedFile.ts"
import { Conflict, NotFound } from "#schemas/core/Problem.ts"
import type { UploadProgress } from "#streams/files/uploads/UploadProgress.ts"
import { AppConfig } from "#src/Config.ts"
import { BlobStore } from "#src/infra/blobs/BlobStore.ts"
import type { DiskFull } from "#src/infra/blobs/Disk.ts"
import type { QuotaReached } from "#src/infra/blobs/BlobIndex.ts"
import type { Reach } from "../access/Reach.ts"

/** The file that an upload is to become, as it was read from its metadata. Kept as JSON. */
export interface UploadTarget {
  readonly filename: string
  /** as it was sent; "" where none was */
  readonly filetype: string
  /** names of directories below the target, and of the file */
  readonly names: readonly [string, ...Array<string>]
  /** as it was given */
  readonly path: string | null
  /** the name of a bucket, where there is no `directoryId` */
  readonly dir: string | null
  readonly directoryId: string | null
  /** ISO-8601 */
  readonly modifiedAt: string | null
  readonly sha256: string | null
  readonly ifVersion: string | null
  readonly isEncrypted: boolean
  readonly encryptionKeyId: string | null
  readonly link: boolean
}

/** The bucket of files of which nothing else is said. */
export const usualBucket = "uploads"

/** A resumable upload, open or complete. */
export interface UploadRow extends UploadProgress {
  readonly id: string
  readonly userId: string
  /** of `joined`: the uploads that it is made of */
  readonly parts: ReadonlyArray<string> | null
  /** the header as it was sent */
  readonly metadata: string
  /** null: of a part */
  readonly fields: UploadTarget | null
  /** that it goes to, by its name now; null: of a part */
  readonly bucket: string | null
  /** the directory of blobs that has the bytes; null: it is done */
  readonly store: string | null
  /** a request holds it, or did when its process died */
  readonly isBusy: boolean
  /** since a request has last shown that it goes on */
  readonly idleMillis: number
  readonly turn: number
  readonly createdAt: Date
  readonly expiresAt: Date
  /** the file that it has become, without its link */
  readonly file: UploadedFile | null
}

export interface NewUpload extends Pick<
  UploadRow,
  "kind" | "length" | "metadata" | "fields" | "bucket" | "parts"
> {
  readonly userId: string
  /** all that the user may have; null: no limit */
  readonly quotaBytes: number | null
}

export const uploadNotFound = NotFound.of("Upload not found", { code: "upload_not_found", param: "id" })

/** Resumable uploads: what they are to become, beside the bytes that the blobs have. */
export class Uploads extends Context.Service<
  Uploads,
  {
    readonly create: (
      upload: NewUpload
    ) => Effect.Effect<string, Conflict | DiskFull | QuotaReached | SqlError>
    /** one of a user that their credential reaches */
    readonly find: (userId: string, reach: Reach, id: string) => Effect.Effect<UploadRow, NotFound | SqlError>
    /** those that are not done, the oldest first */
    readonly open: (userId: string, reach: Reach) => Effect.Effect<ReadonlyArray<UploadRow>, SqlError>
    /** parts of a user, in the order of their ids here; those that are not there are left out */
    readonly parts: (
      userId: string,
      ids: ReadonlyArray<string>
    ) => Effect.Effect<ReadonlyArray<UploadRow>, SqlError>
    /** The length is known from now on. */
    readonly setLength: (id: string, length: number) => Effect.Effect<void, SqlError>
    /** Asks an earlier request to end. */
    readonly wantTurn: (id: string) => Effect.Effect<void, SqlError>
    readonly turnOf: (id: string) => Effect.Effect<number | undefined, SqlError>
    /** the file that it has become */
    readonly fileOf: (id: string) => Effect.Effect<UploadedFile | undefined, SqlError>
    /** It has become a file, in the caller's transaction. */
    readonly done: (id: string, file: UploadedFile) => Effect.Effect<void, SqlError>
    readonly forget: (ids: ReadonlyArray<string>) => Effect.Effect<void, SqlError>
    /**
     * Complete ones that no request goes on with, of this directory of blobs: after so long, and once more each time that as
     * long has gone by as at the last try. The one whose time came first is the first.
     */
    readonly left: (idleMillis: number) => Effect.Effect<ReadonlyArray<UploadRow>, SqlError>
    /** A complete one that no request goes on with is tried now. */
    readonly tried: (id: string) => Effect.Effect<void, SqlError>
    /** Removes rows of uploads that are over, or were done long ago. */
    readonly sweep: Effect.Effect<void, SqlError>
  }
>()("signalbox/files/Uploads") {
  static readonly layer = Layer.effect(
    Uploads,
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const blobs = yield* BlobStore
      const { limits } = yield* AppConfig
      const kept = sql`${limits.uploadKeptMillis} * interval '1 millisecond'`
      const read = sql`SELECT u.id, u.user_id AS "userId", u.kind, u.length::float8 AS length, u.parts, u.metadata,
          u.fields, coalesce(k.name, u.bucket) AS bucket, u.turn, u.created_at AS "createdAt", u.file,
          u.done_at IS NOT NULL AS "isDone", b.store, coalesce(b.busy, false) AS "isBusy",
          coalesce(b.written, u.length)::float8 AS "offset", coalesce(b.expires_at, u.done_at + ${kept}) AS "expiresAt",
          coalesce(extract(epoch FROM now() - b.expires_at + ${kept}) * 1000, 0)::float8 AS "idleMillis"
        FROM uploads u LEFT JOIN blob_uploads b ON b.id = u.id AND b.expires_at > now() AND u.done_at IS NULL
          LEFT JOIN directories d ON d.id = u.fields->>'directoryId' AND d.user_id = u.user_id
          LEFT JOIN directories k ON k.id = d.bucket_id
        WHERE (b.id IS NOT NULL OR u.done_at > now() - ${kept})`
      return Uploads.of({
        create: creatingOf(sql, blobs, limits.uploadsPerUser),
        find: (userId, reach, id) =>
          Effect.flatMap(sql<UploadRow>`${read} AND u.id = ${id} AND u.user_id = ${userId}`, ([found]) =>
            found !== undefined && isReached(reach, found)
              ? Effect.succeed(found)
              : Effect.fail(uploadNotFound)
          ),
        open: (userId, reach) =>
          Effect.map(
            sql<UploadRow>`${read} AND u.user_id = ${userId} AND u.done_at IS NULL ORDER BY u.created_at, u.id`,
            (rows) => rows.filter((row) => isReached(reach, row))
          ),
        parts: (userId, ids) =>
          Effect.map(sql<UploadRow>`${read} AND u.user_id = ${userId} AND ${sql.in("u.id", ids)}`, (rows) => {
            const byId = new Map(rows.map((row) => [row.id, row]))
            return ids.flatMap((id) => byId.get(id) ?? [])
          }),
        setLength: (id, length) =>
          Effect.asVoid(
            sql`UPDATE uploads SET length = ${length}::float8::bigint WHERE id = ${id} AND length IS NULL`
          ),
        wantTurn: (id) => Effect.asVoid(sql`UPDATE uploads SET turn = turn + 1 WHERE id = ${id}`),
        turnOf: (id) =>
          Effect.map(
            sql<{ turn: number }>`SELECT turn FROM uploads WHERE id = ${id} AND done_at IS NULL`,
            ([row]) => row?.turn
          ),
        fileOf: (id) =>
          Effect.map(
            sql<Pick<UploadRow, "file">>`SELECT file FROM uploads WHERE id = ${id}`,
            ([row]) => row?.file ?? undefined
          ),
        done: (id, file) =>
          Effect.asVoid(
            sql`UPDATE uploads SET done_at = now(), length = ${file.size}::float8::bigint,
              file = ${JSON.stringify(file)}::jsonb WHERE id = ${id}`
          ),
        forget: (ids) =>
          ids.length === 0 ? Effect.void : Effect.asVoid(sql`DELETE FROM uploads WHERE ${sql.in("id", ids)}`),
        ...leavingOf(sql, blobs.id, read, kept)
      })
    })
  )
}

/** Uploads that nobody asks about. */
const leavingOf = (
  sql: SqlClient,
  store: string,
  read: Fragment,
  kept: Fragment
): Pick<Uploads["Service"], "left" | "tried" | "sweep"> => ({
  left: (idleMillis) =>
    sql<UploadRow>`SELECT * FROM (${read} AND u.done_at IS NULL AND u.kind <> 'part' AND b.store = ${store}) l
      CROSS JOIN LATERAL (SELECT greatest(t.since + ${idleMillis} * interval '1 millisecond',
        t.tried_at + (t.tried_at - t.since)) AS due
        FROM (SELECT "expiresAt" - ${kept} AS since, tried_at FROM uploads WHERE id = l.id) t) w
      WHERE due < now() AND (length = "offset" OR kind = 'joined') ORDER BY due LIMIT 100`,
  tried: (id) => Effect.asVoid(sql`UPDATE uploads SET tried_at = now() WHERE id = ${id}`),
  sweep: Effect.asVoid(sql`DELETE FROM uploads u WHERE u.done_at < now() - ${kept} OR (u.done_at IS NULL
    AND NOT EXISTS (SELECT 1 FROM blob_uploads b WHERE b.id = u.id AND b.expires_at > now()))`)
})

/** A part goes to no bucket yet. */
const isReached = ({ mayWrite }: Reach, { bucket }: Pick<UploadRow, "bucket">): boolean =>
  Option.match(Option.fromNullishOr(bucket), { onNone: () => true, onSome: mayWrite })

const creatingOf = (sql: SqlClient, blobs: BlobStore["Service"], limit: number) =>
  Effect.fnUntraced(function* ({
    bucket,
    fields,
    kind,
    length,
    metadata,
    parts,
    quotaBytes,
    userId
  }: NewUpload) {
    // Another one that is begun for the same user waits here, and counts this one.
    yield* sql`SELECT id FROM users WHERE id = ${userId} FOR NO KEY UPDATE`
    const [open] = yield* sql<{ count: number }>`SELECT count(*)::int AS count FROM uploads u
      JOIN blob_uploads b ON b.id = u.id AND b.expires_at > now() WHERE u.user_id = ${userId} AND u.done_at IS NULL`
    if ((open?.count ?? 0) >= limit)
      return yield* Conflict.of(`A user has at most ${limit} open uploads`, { code: "too_many_uploads" })
    // Bytes of parts count already.
    const quota = kind === "joined" ? null : quotaBytes
    const id = yield* blobs.begin({ userId, maxBytes: length ?? 0, quotaBytes: quota })
    yield* sql`INSERT INTO uploads ${sql.insert({
      id,
      user_id: userId,
      kind,
      length,
      parts,
      metadata,
      fields: fields === null ? null : JSON.stringify(fields),
      bucket
    })}`
    return id
  }, sql.withTransaction)
