import { Effect, Schema } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Fragment } from "effect/sql/Statement"

/** Bytes by their content. */
export interface Blob {
  /** SHA-256, lower-case hexadecimal */
  readonly sha256: string
  readonly sizeBytes: number
}

/** A record, named by `ref`, and the blob that it refers to. */
export interface Reference {
  readonly ref: string
  readonly blob: Blob | NewBlob
}

/** A blob whose bytes were all seen. */
export interface SummedBlob extends Blob {
  /** CRC-32 as of gzip (RFC 1952), unsigned */
  readonly crc32: number
}

/** A blob whose file is there, or whose bytes are, and whose row its first reference writes. */
export interface NewBlob extends SummedBlob {
  readonly isNew: true
  /** of a short blob that lives in its row and has no file */
  readonly bytes?: Buffer | undefined
}

/** A user would have more bytes than they may. */
export class QuotaReached extends Schema.TaggedError<QuotaReached>()("QuotaReached", {
  quotaBytes: Schema.Number
}) {}

/** An upload is not there: it was never begun, is over, or another request appends to it now. */
export class UploadGone extends Schema.TaggedError<UploadGone>()("UploadGone", { id: Schema.String }) {}

/** An upload under way, held by a request. */
export interface UploadRow {
  readonly id: string
  readonly userId: string
  /** bytes that are durable */
  readonly written: number
  /** the most that may come */
  readonly reserved: number
  readonly epoch: number
  /** the number of its file, and of the one that it had before: another one where a request may be writing to that */
  readonly file: number
  readonly fileBefore: number
  /** the upload ends then by itself, if the request leaves it as it was */
  readonly endsAt: Date
}

type Held = Pick<UploadRow, "id" | "epoch">

/** The quotas of a user that bytes can count for: each has a sum of its own. */
export type BlobPool = "files" | "attachments" | "mail"

/** The holder of a reference. */
export interface Owner {
  /** the user whose quota it counts for */
  readonly userId: string
  /** which of the user's quotas; absent: `files` */
  readonly pool?: BlobPool
  /** the part of the server that the bytes came from, such as `upload` */
  readonly source: string
  /** the reference ends by itself then; null: never */
  readonly expiresAt: Date | null
}

/** The counts of a store. */
export interface BlobCounts {
  readonly blobs: number
  readonly bytes: number
  readonly damaged: number
}

/** The part of blobs that is in Postgres, of one store: which there are, what refers to them, how much counts for each user. */
export class BlobIndex {
  private readonly sql: SqlClient
  private readonly store: string

  constructor(sql: SqlClient, store: string) {
    this.sql = sql
    this.store = store
  }

  private at(sha256: string) {
    return this.sql`store = ${this.store} AND sha256 = decode(${sha256}, 'hex')`
  }

  private ago(millis: number) {
    return this.sql`now() - ${millis} * interval '1 millisecond'`
  }

  private ahead(millis: number) {
    return this.sql`now() + ${millis} * interval '1 millisecond'`
  }

  /** Makes the store known; answers since when it is, in milliseconds since 1970. */
  readonly register: Effect.Effect<number, SqlError> = Effect.suspend(() =>
    Effect.map(
      this.sql<{ millis: number }>`INSERT INTO blob_stores AS s (id) VALUES (${this.store})
        ON CONFLICT (id) DO UPDATE SET created_at = s.created_at
        RETURNING (extract(epoch FROM created_at) * 1000)::float8 AS millis`,
      ([row]) => row?.millis ?? Infinity
    )
  )

  /**
   * Locks the blob of a hash until the transaction ends: its file appears and goes under this lock alone. The lock's
   * number is the beginning of the hash; two blobs that share it wait for each other, and no more.
   */
  lock(sha256: string): Effect.Effect<void, SqlError> {
    return Effect.asVoid(
      this.sql`SELECT pg_advisory_xact_lock(('x' || left(${sha256}, 16))::bit(64)::bigint)`
    )
  }

  /** The same for several, one after the other in the order of their numbers, so that no two transactions wait for each other. */
  lockAll(hashes: ReadonlyArray<string>): Effect.Effect<void, SqlError> {
    return Effect.asVoid(
      this.sql`SELECT pg_advisory_xact_lock(number) FROM (
        SELECT DISTINCT ('x' || left(hash, 16))::bit(64)::bigint AS number FROM unnest(${hashes}::text[]) AS h(hash)
        ORDER BY number) AS ordered`
    )
  }

  /** Notes a blob whose bytes were not compared with the hash: they are checked before all others. */
  noteUnseen({ sha256, sizeBytes }: Blob): Effect.Effect<void, SqlError> {
    return Effect.asVoid(
      this.sql`INSERT INTO blobs (store, sha256, size, checked_at)
        VALUES (${this.store}, decode(${sha256}, 'hex'), ${sizeBytes}, '-infinity')
        ON CONFLICT DO NOTHING`
    )
  }

  has(sha256: string): Effect.Effect<boolean, SqlError> {
    return Effect.map(this.sql`SELECT 1 FROM blobs WHERE ${this.at(sha256)}`, (rows) => rows.length > 0)
  }

  /** The hashes of the blobs in one of the 256 directories, by its name. */
  inFolder(folder: string): Effect.Effect<ReadonlySet<string>, SqlError> {
    return Effect.map(
      this.sql<{ sha256: string }>`SELECT encode(sha256, 'hex') AS sha256 FROM blobs
        WHERE store = ${this.store} AND sha256 >= decode(${folder}, 'hex')
          AND sha256 <= decode(${folder.padEnd(64, "f")}, 'hex')`,
      (rows) => new Set(rows.map(({ sha256 }) => sha256))
    )
  }

  /** A record refers to a blob from now on, in the caller's transaction. The blob's row is locked by it. */
  refer(ref: string, blob: Blob | NewBlob, owner: Owner): Effect.Effect<void, SqlError> {
    return this.referAll([{ ref, blob }], owner)
  }

  /**
   * Records refer to blobs from now on, in the caller's transaction. It locks the rows of blobs in their order, then the
   * sum of the user, as `releaseAll` does: nothing but these may be locked behind it.
   */
  referAll(
    references: ReadonlyArray<Reference>,
    { expiresAt, pool = "files", source, userId }: Owner
  ): Effect.Effect<void, SqlError> {
    const hashes = references.map(({ blob }) => blob.sha256)
    // As texts: the client sends no arrays of numbers that take different types, nor of nulls. -1: it is no new blob.
    const sizes = references.map(({ blob }) => String(blob.sizeBytes))
    const sums = references.map(({ blob }) => String("isNew" in blob ? blob.crc32 : -1))
    const refs = references.map(({ ref }) => ref)
    const { all, places } = together(references.map(({ blob }) => ("isNew" in blob ? blob.bytes : undefined)))
    return Effect.asVoid(
      this.sql`SELECT blob_refer(${this.store}, ${refs}::text[], ${hashes}::text[], ${sizes}::text[]::bigint[],
        ${sums}::text[]::bigint[], ${places}::integer[], ${all}::bytea, ${userId}, ${pool}, ${source},
        ${expiresAt}::timestamptz)`
    )
  }

  /** The record is gone, in the caller's transaction; one that refers to nothing is fine. */
  release(ref: string): Effect.Effect<void, SqlError> {
    return Effect.asVoid(this.sql`SELECT blob_release(${ref})`)
  }

  /** The same for several. */
  releaseAll(refs: ReadonlyArray<string>): Effect.Effect<void, SqlError> {
    return Effect.asVoid(this.sql`SELECT blob_release_all(${refs}::text[])`)
  }

  /** References that have expired, of any store. */
  expired(refsMax: number): Effect.Effect<ReadonlyArray<string>, SqlError> {
    return Effect.map(
      this.sql<{ ref: string }>`SELECT ref FROM blob_refs WHERE expires_at <= now()
        ORDER BY expires_at LIMIT ${refsMax}`,
      (rows) => rows.map(({ ref }) => ref)
    )
  }

  /** Blobs that nothing has referred to for so long, the oldest first. */
  unreferenced(forMillis: number, blobsMax: number): Effect.Effect<ReadonlyArray<string>, SqlError> {
    return Effect.map(
      this.sql<{ sha256: string }>`SELECT encode(sha256, 'hex') AS sha256 FROM blobs
        WHERE store = ${this.store} AND unreferenced_at < ${this.ago(forMillis)}
        ORDER BY unreferenced_at LIMIT ${blobsMax}`,
      (rows) => rows.map(({ sha256 }) => sha256)
    )
  }

  /** Forgets a blob that nothing has referred to for so long; false where something does. Under its lock. */
  forget(sha256: string, forMillis: number): Effect.Effect<boolean, SqlError> {
    return Effect.map(
      this.sql`DELETE FROM blobs WHERE ${this.at(sha256)} AND unreferenced_at < ${this.ago(forMillis)}
        AND NOT EXISTS (SELECT 1 FROM blob_refs WHERE ${this.at(sha256)}) RETURNING 1`,
      (rows) => rows.length > 0
    )
  }

  /** The bytes of those of these blobs that live in their rows, by hash. */
  rowsOf(hashes: ReadonlyArray<string>): Effect.Effect<ReadonlyMap<string, Uint8Array>, SqlError> {
    return Effect.map(
      this.sql<{ sha256: string; bytes: Uint8Array }>`SELECT encode(sha256, 'hex') AS sha256, bytes FROM blobs
        WHERE store = ${this.store} AND bytes IS NOT NULL
          AND sha256 IN (SELECT decode(hash, 'hex') FROM unnest(${hashes}::text[]) AS g(hash))`,
      (rows) => new Map(rows.map(({ bytes, sha256 }) => [sha256, bytes]))
    )
  }

  /** Compares the bytes in a blob's row with its hash; undefined: its bytes are in a file. */
  checkRow(sha256: string): Effect.Effect<{ readonly isDamaged: boolean } | undefined, SqlError> {
    return Effect.map(
      this.sql<{ isDamaged: boolean }>`UPDATE blobs SET checked_at = now(), damaged = sha256(bytes) <> sha256
        WHERE ${this.at(sha256)} AND bytes IS NOT NULL RETURNING damaged AS "isDamaged"`,
      ([row]) => row
    )
  }

  /** Blobs whose bytes have not been checked for so long, the longest first. */
  unchecked(forMillis: number, blobsMax: number): Effect.Effect<ReadonlyArray<Blob>, SqlError> {
    return this.sql<Blob>`SELECT encode(sha256, 'hex') AS sha256, size::float8 AS "sizeBytes" FROM blobs
      WHERE store = ${this.store} AND checked_at < ${this.ago(forMillis)} ORDER BY checked_at LIMIT ${blobsMax}`
  }

  /** All bytes of a blob were seen, and are those of its hash. */
  seen({ crc32, sha256 }: SummedBlob): Effect.Effect<void, SqlError> {
    return Effect.asVoid(
      this.sql`UPDATE blobs SET checked_at = now(), damaged = false, crc32 = ${crc32} WHERE ${this.at(sha256)}`
    )
  }

  /** A blob's file was looked at; false: it is not there any more. */
  checked(sha256: string, isDamaged: boolean): Effect.Effect<boolean, SqlError> {
    return Effect.map(
      this.sql`UPDATE blobs SET checked_at = now(), damaged = ${isDamaged} WHERE ${this.at(sha256)} RETURNING 1`,
      (rows) => rows.length > 0
    )
  }

  readonly damaged: Effect.Effect<number, SqlError> = Effect.suspend(() =>
    Effect.map(
      this.sql<{ blobs: number }>`SELECT count(*)::float8 AS blobs FROM blobs
        WHERE store = ${this.store} AND damaged`,
      ([row]) => row?.blobs ?? 0
    )
  )

  readonly counts: Effect.Effect<BlobCounts, SqlError> = Effect.suspend(() =>
    Effect.map(
      this.sql<BlobCounts>`SELECT count(*)::float8 AS blobs, coalesce(sum(size), 0)::float8 AS bytes,
        count(*) FILTER (WHERE damaged)::float8 AS damaged FROM blobs WHERE store = ${this.store}`,
      ([row]) => row ?? { blobs: 0, bytes: 0, damaged: 0 }
    )
  )

  /**
   * Begins an upload of at most so many bytes, if they fit in what the user may have beside what they have and what is on
   * its way.
   */
  reserve(
    upload: {
      readonly id: string
      readonly userId: string
      readonly pool?: BlobPool | undefined
      readonly bytes: number
      readonly keptMillis: number
    },
    quotaBytes: number | null
  ): Effect.Effect<void, QuotaReached | SqlError> {
    const { bytes, id, keptMillis, pool = "files", userId } = upload
    return Effect.flatMap(
      this.sql<{
        fits: boolean
      }>`SELECT blob_reserve(${id}, ${this.store}, ${userId}, ${pool}, ${bytes}::float8::bigint,
        ${keptMillis}::float8, ${quotaBytes}::float8::bigint) AS fits`,
      ([row]) =>
        row?.fits === true ? Effect.void : Effect.fail(new QuotaReached({ quotaBytes: quotaBytes ?? 0 }))
    )
  }

  /** More bytes of an upload come than were reserved: as many as are needed, and up to `wanted`; answers how many it has now. */
  grow(
    id: string,
    needed: number,
    wanted: number,
    quotaBytes: number | null
  ): Effect.Effect<number, QuotaReached | UploadGone | SqlError> {
    return Effect.flatMap(
      this.sql<{ granted: number | null }>`SELECT blob_grow(${id}, ${needed}::float8::bigint,
        ${wanted}::float8::bigint, ${quotaBytes}::float8::bigint)::float8 AS granted`,
      ([row]): Effect.Effect<number, QuotaReached | UploadGone> => {
        const granted = row?.granted ?? null
        if (granted === null) return Effect.fail(new UploadGone({ id }))
        return granted < needed
          ? Effect.fail(new QuotaReached({ quotaBytes: quotaBytes ?? 0 }))
          : Effect.succeed(granted)
      }
    )
  }

  /** The bytes of a user, with those on their way, are no more than the quota. */
  fits(
    userId: string,
    pool: BlobPool = "files",
    quotaBytes: number | null
  ): Effect.Effect<void, QuotaReached | SqlError> {
    if (quotaBytes === null) return Effect.void
    return Effect.flatMap(
      this.sql`SELECT 1 FROM blob_usage AS u WHERE u.user_id = ${userId} AND u.pool = ${pool}
        AND u.bytes + (SELECT coalesce(sum(reserved), 0) FROM blob_uploads AS b
          WHERE b.user_id = ${userId} AND b.pool = ${pool} AND b.expires_at > now()) > ${quotaBytes}::float8::bigint`,
      (rows) => (rows.length === 0 ? Effect.void : Effect.fail(new QuotaReached({ quotaBytes })))
    )
  }

  /** The upload goes on: its reservation does not end. */
  renew(id: string, keptMillis: number): Effect.Effect<void, SqlError> {
    return Effect.asVoid(
      this.sql`UPDATE blob_uploads SET expires_at = ${this.ahead(keptMillis)} WHERE id = ${id}`
    )
  }

  /** An upload under way: its file, and how many of its bytes are durable. */
  find(id: string): Effect.Effect<Pick<UploadRow, "id" | "file" | "written">, UploadGone | SqlError> {
    return Effect.flatMap(
      this.sql<Pick<UploadRow, "id" | "file" | "written">>`SELECT id, file, written::float8 AS written
        FROM blob_uploads WHERE id = ${id} AND store = ${this.store} AND expires_at > now()`,
      ([row]) => (row === undefined ? Effect.fail(new UploadGone({ id })) : Effect.succeed(row))
    )
  }

  /**
   * A request takes hold of an upload; an earlier one that still has it has lost it, and this one gets another file for it.
   * Undefined: it is gone, or ends at another offset than this one.
   */
  hold(id: string, offset: number, keptMillis: number): Effect.Effect<UploadRow | undefined, SqlError> {
    return Effect.map(
      this.sql<UploadRow>`WITH before AS (SELECT id, file, busy, expires_at FROM blob_uploads
          WHERE id = ${id} AND store = ${this.store} AND written = ${offset}::float8::bigint AND expires_at > now()
          FOR UPDATE)
        UPDATE blob_uploads AS u SET epoch = u.epoch + 1, busy = true, expires_at = ${this.ahead(keptMillis)}
        FROM before WHERE u.id = before.id
        RETURNING u.id, u.user_id AS "userId", u.written::float8 AS written, u.reserved::float8 AS reserved, u.epoch,
          CASE WHEN before.busy THEN u.epoch ELSE u.file END AS file, before.file AS "fileBefore",
          before.expires_at AS "endsAt"`,
      ([row]) => row
    )
  }

  /** Changes the row of an upload, as long as the request has it. */
  private change({ epoch, id }: Held, changes: Fragment): Effect.Effect<void, UploadGone | SqlError> {
    return Effect.flatMap(
      this.sql`UPDATE blob_uploads SET ${changes} WHERE id = ${id} AND epoch = ${epoch} RETURNING 1`,
      (rows) => (rows.length > 0 ? Effect.void : Effect.fail(new UploadGone({ id })))
    )
  }

  /** From now on the bytes of an upload are in the file that the request got for it. */
  moved(upload: UploadRow): Effect.Effect<void, UploadGone | SqlError> {
    return this.change(upload, this.sql`file = ${upload.file}`)
  }

  /** So many bytes are durable, and the request goes on. */
  reached(upload: Held, written: number, keptMillis: number): Effect.Effect<void, UploadGone | SqlError> {
    return this.change(
      upload,
      this.sql`written = ${written}::float8::bigint, expires_at = ${this.ahead(keptMillis)}`
    )
  }

  /**
   * So many bytes are durable, and the request lets go of the upload.
   *
   * @param isTrimmed whether the reservation becomes as long as the bytes
   */
  wrote(
    upload: Held,
    written: number,
    keptMillis: number,
    isTrimmed: boolean
  ): Effect.Effect<void, UploadGone | SqlError> {
    return this.change(
      upload,
      this.sql`written = ${written}::float8::bigint, busy = false, expires_at = ${this.ahead(keptMillis)},
        reserved = CASE WHEN ${isTrimmed} THEN ${written}::float8::bigint ELSE reserved END`
    )
  }

  /** The request lets go of an upload, which is as it was before, and ends when it would have ended. */
  letGo(upload: UploadRow): Effect.Effect<void, UploadGone | SqlError> {
    return this.change(upload, this.sql`busy = false, expires_at = ${upload.endsAt}`)
  }

  /** The upload is over: its reservation ends, in the caller's transaction. */
  end({ epoch, id }: Held): Effect.Effect<void, UploadGone | SqlError> {
    return Effect.flatMap(
      this.sql`DELETE FROM blob_uploads WHERE id = ${id} AND epoch = ${epoch} RETURNING 1`,
      (rows) => (rows.length > 0 ? Effect.void : Effect.fail(new UploadGone({ id })))
    )
  }

  /** Ends uploads that nothing was appended to for too long; answers the numbers of their files. */
  readonly endExpired = Effect.suspend(
    () => this.sql<Pick<UploadRow, "id" | "file">>`DELETE FROM blob_uploads
      WHERE store = ${this.store} AND expires_at < now() RETURNING id, file`
  )

  /** Those of these uploads that are under way. */
  underWay(ids: ReadonlyArray<string>): Effect.Effect<ReadonlySet<string>, SqlError> {
    return Effect.map(
      this.sql<{ id: string }>`SELECT id FROM blob_uploads WHERE ${this.sql.in("id", ids)}`,
      (rows) => new Set(rows.map(({ id }) => id))
    )
  }
}

/** Bytes one behind the other, and where each begins; -1: there are none. */
const together = (
  pieces: ReadonlyArray<Buffer | undefined>
): { readonly all: Buffer; readonly places: ReadonlyArray<number> } => {
  let at = 0
  const places = pieces.map((bytes) => {
    if (bytes === undefined) return -1
    at += bytes.length
    return at - bytes.length
  })
  return { all: Buffer.concat(pieces.filter((bytes) => bytes !== undefined)), places }
}
