import { Effect, type Scope } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { ServiceUnavailable } from "#schemas/core/Problem.ts"
import { inUserTurn } from "#src/infra/postgres/UserTurns.ts"
import type { BlobFiles, BlobSource, BlobTooLarge } from "./BlobFiles.ts"
import type { BlobIndex, BlobPool, NewBlob, QuotaReached, SummedBlob, UploadGone } from "./BlobIndex.ts"
import type { DiskFull } from "./Disk.ts"

export interface Incoming {
  readonly userId: string
  /** the quota of the user that it counts for; absent: `files` */
  readonly pool?: BlobPool
  /** more is refused */
  readonly maxBytes: number
  /** as many count as the user's from the beginning, more as they come; absent: as many as may come */
  readonly expectedBytes?: number
  /** all that the user may have; null: no limit */
  readonly quotaBytes: number | null
  /** short blobs have no file, but live in their rows: for readers that ask `BlobStore.read` for these */
  readonly inRows?: boolean
}

/** Writes the record that refers to a blob, in the transaction that makes the blob. */
export type Commit<A, E, R> = (blob: NewBlob) => Effect.Effect<A, E, R>

/** Bytes in a temporary file, and durable there; or in memory, where they are few. */
export type StagedBlob = StagedFile | StagedRow

export interface StagedFile {
  readonly blob: SummedBlob
  /** the number of the file */
  readonly file: number
}

/** Bytes that will live in the blob's row. */
export interface StagedRow {
  readonly blob: SummedBlob
  readonly bytes: Buffer
}

export const isRow = (staged: StagedBlob): staged is StagedRow => "bytes" in staged

/** Why bytes are not taken. */
export type Refusal = BlobTooLarge | DiskFull | QuotaReached | ServiceUnavailable

/** The files of one request, which count for the quota together and become blobs together. */
export interface Staging {
  /** its bytes count already while they come, so that it has to publish them itself */
  readonly isReserved: boolean
  /** Takes all bytes of a source; those that are not published go with the staging. */
  readonly stage: <E>(source: BlobSource<E>, maxBytes?: number) => Effect.Effect<StagedBlob, E | Refusal>
  /** Makes blobs of what was staged, together with records that refer to them, in one transaction: once. */
  readonly publish: <A, E, R>(
    staged: ReadonlyArray<StagedBlob>,
    commit: (blobs: ReadonlyArray<NewBlob>) => Effect.Effect<A, E, R>
  ) => Effect.Effect<A, Exclude<E, SqlError> | DiskFull | QuotaReached | ServiceUnavailable, R>
}

/** The ways in which bytes come. */
export interface BlobUploads {
  /** Takes all bytes of a source, and makes them a blob together with a record that refers to it. */
  readonly put: <A, E, E2, R>(
    incoming: Incoming,
    source: BlobSource<E>,
    commit: Commit<A, E2, R>
  ) => Effect.Effect<A, E | Exclude<E2, SqlError> | Refusal, R>
  /**
   * As a staging's `publish`, for files of several requests of one user, all of which live in their rows.
   */
  readonly publishRows: <A, E, R>(
    incoming: Pick<Incoming, "userId" | "pool" | "quotaBytes">,
    staged: ReadonlyArray<StagedRow>,
    commit: (blobs: ReadonlyArray<NewBlob>) => Effect.Effect<A, E, R>
  ) => Effect.Effect<A, Exclude<E, SqlError> | DiskFull | QuotaReached | ServiceUnavailable, R>
  /** Takes the files of a request, which end with the scope unless they are published. */
  readonly staging: (
    incoming: Incoming
  ) => Effect.Effect<Staging, DiskFull | QuotaReached | ServiceUnavailable, Scope.Scope>
}

export interface Parts {
  readonly files: BlobFiles
  readonly index: BlobIndex
  readonly sql: SqlClient
  readonly putKeptMillis: number
  readonly minFreeBytes: number
  /** blobs of no more bytes may live in their rows */
  readonly rowBytes: number
  readonly onPublished: (sha256: string) => void
}

/**
 * The transaction that makes blobs of files of an upload, under the locks of their hashes. The upload ends first, so that
 * its files stay. The rows of the blobs are written with the references to them (`BlobIndex.refer`), behind whatever
 * else the records lock.
 */
export const publish = <A, E, R, E2>(
  { files, index, onPublished, sql }: Parts,
  { id, userId }: { readonly id: string; readonly userId: string },
  staged: ReadonlyArray<StagedBlob>,
  ended: Effect.Effect<void, E2>,
  commit: (blobs: ReadonlyArray<NewBlob>) => Effect.Effect<A, E, R>
) =>
  Effect.gen(function* () {
    const inFiles = staged.filter((one): one is StagedFile => !isRow(one))
    if (inFiles.length > 0) yield* index.lockAll(inFiles.map(({ blob }) => blob.sha256))
    yield* ended
    yield* Effect.forEach(inFiles, ({ blob, file }) => files.publish({ id, file }, blob), {
      concurrency: renamedAtOnce,
      discard: true
    })
    return yield* commit(
      staged.map((one) => ({ ...one.blob, isNew: true as const, ...(isRow(one) && { bytes: one.bytes }) }))
    )
  }).pipe(
    sql.withTransaction,
    inUserTurn(sql, userId),
    Effect.tap(() => Effect.sync(() => staged.forEach(({ blob }) => onPublished(blob.sha256))))
  )

/** A reservation that bytes have reached grows by as much as it is, by no less and no more than these. */
const leastStep = 1024 * 1024
const mostStep = 64 * 1024 * 1024

/** How many bytes a reservation of so many has room for behind those that have come. */
export const stepBehind = (reservedBytes: number): number =>
  Math.min(Math.max(reservedBytes, leastStep), mostStep)

/** Files that are renamed at once, which a disk syncs together. */
const renamedAtOnce = 4

/** Undoes a part of an upload; where that fails it ends by itself, when the reservation does. */
export const undone = (effect: Effect.Effect<void, UploadGone | SqlError>, id: string): Effect.Effect<void> =>
  Effect.catch(effect, (error) =>
    error._tag === "UploadGone" ? Effect.void : Effect.logDebug(`The upload ${id} ends later`, error)
  )
