import { Effect } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { ServiceUnavailable } from "#schemas/core/Problem.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import { newId } from "#src/infra/crypto/Tokens.ts"
import type { BlobFiles, BlobSource, BlobTooLarge } from "./BlobFiles.ts"
import type {
  Blob,
  BlobIndex,
  BlobPool,
  QuotaReached,
  SummedBlob,
  UploadGone,
  UploadRow
} from "./BlobIndex.ts"
import type { DiskFull } from "./Disk.ts"

export interface Incoming {
  readonly userId: string
  /** the quota of the user that it counts for; absent: `files` */
  readonly pool?: BlobPool
  /** more is refused; as much counts as the user's while it is on its way */
  readonly maxBytes: number
  /** all that the user may have; null: no limit */
  readonly quotaBytes: number | null
}

/** Writes the record that refers to a blob, in the transaction that makes the blob. */
export type Commit<A, E, R> = (blob: Blob) => Effect.Effect<A, E, R>

/** The ways in which bytes come. */
export interface BlobUploads {
  /** Takes all bytes of a source, and makes them a blob together with a record that refers to it. */
  readonly put: <A, E, E2, R>(
    incoming: Incoming,
    source: BlobSource<E>,
    commit: Commit<A, E2, R>
  ) => Effect.Effect<
    A,
    E | Exclude<E2, SqlError> | BlobTooLarge | DiskFull | QuotaReached | ServiceUnavailable,
    R
  >
}

export interface Parts {
  readonly files: BlobFiles
  readonly index: BlobIndex
  readonly sql: SqlClient
  readonly putKeptMillis: number
  readonly minFreeBytes: number
  readonly onPublished: (sha256: string) => void
}

/** An upload's file, and the request that ends it. */
type Ended = Pick<UploadRow, "id" | "file" | "epoch">

/** The upload was taken for one that nothing goes on with: its reservation could not be renewed. */
const tooLate = ServiceUnavailable.of(
  "The upload outlasted its reservation while the database was away; nothing was stored"
)

/** The transaction that makes a blob of an upload's file, under its lock. The upload ends first, so that its file stays. */
const publish = <A, E, R, E2>(
  { files, index, onPublished, sql }: Parts,
  upload: Ended,
  blob: SummedBlob,
  ended: Effect.Effect<void, E2>,
  commit: Commit<A, E, R>
) =>
  Effect.gen(function* () {
    yield* index.lock(blob.sha256)
    yield* ended
    yield* files.publish(upload, blob)
    yield* index.note(blob)
    return yield* commit(blob)
  }).pipe(
    sql.withTransaction,
    Effect.tap(() => Effect.sync(() => onPublished(blob.sha256)))
  )

/** Undoes a part of an upload; where that fails it ends by itself, when the reservation does. */
export const undone = (effect: Effect.Effect<void, UploadGone | SqlError>, id: string): Effect.Effect<void> =>
  Effect.catch(effect, (error) =>
    error._tag === "UploadGone" ? Effect.void : Effect.logDebug(`The upload ${id} ends later`, error)
  )

const putting =
  (parts: Parts): BlobUploads["put"] =>
  ({ maxBytes, pool, quotaBytes, userId }, source, commit) => {
    const { files, index, minFreeBytes, putKeptMillis: keptMillis } = parts
    const upload = { id: newId("upl"), file: 0, epoch: 0 }
    const { id } = upload
    const renewing = Effect.forever(Effect.delay(undone(index.renew(id, keptMillis), id), keptMillis / 3))
    const received = Effect.scoped(
      Effect.andThen(Effect.forkScoped(renewing), files.receive(upload, source, maxBytes))
    )
    const ended = Effect.mapError(index.end(upload), (error) =>
      error._tag === "UploadGone" ? tooLate : error
    )
    return Effect.gen(function* () {
      yield* files.haveRoom(maxBytes, minFreeBytes)
      yield* storeAway(index.reserve({ id, userId, pool, bytes: maxBytes, keptMillis }, quotaBytes))
      return yield* received.pipe(
        // Its own time limit: the bytes before it may take as long as they need.
        Effect.flatMap((blob) => storeAway(publish(parts, upload, blob, ended, commit))),
        Effect.onError(() => Effect.andThen(files.discard(upload), undone(index.end(upload), id)))
      )
    })
  }

export const makeUploads = (parts: Parts): BlobUploads => ({ put: putting(parts) })
