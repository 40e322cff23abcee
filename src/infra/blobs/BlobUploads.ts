import { Effect, Result, type Scope } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { ServiceUnavailable } from "#schemas/core/Problem.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import { newId } from "#src/infra/crypto/Tokens.ts"
<<<<<<< HEAD
import { type BlobFiles, type BlobSource, BlobTooLarge } from "./BlobFiles.ts"
import {
  type BlobIndex,
  type BlobPool,
  type NewBlob,
  type QuotaReached,
  type SummedBlob,
  UploadGone
=======
import type { BlobFiles, BlobSource, BlobTooLarge } from "./BlobFiles.ts"
import type {
  Blob,
  BlobIndex,
  BlobPool,
  QuotaReached,
  SummedBlob,
  UploadGone,
  UploadRow
>>>>>>> feb8e94aa1bb176eb8302d7b21dc8fc35a58e140
} from "./BlobIndex.ts"
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
}

/** Writes the record that refers to a blob, in the transaction that makes the blob. */
export type Commit<A, E, R> = (blob: NewBlob) => Effect.Effect<A, E, R>

/** Bytes in a temporary file, and durable there. */
export interface StagedBlob {
  readonly blob: SummedBlob
  /** the number of the file */
  readonly file: number
}

type Refusal = BlobTooLarge | DiskFull | QuotaReached | ServiceUnavailable

/** The files of one request, which count for the quota together and become blobs together. */
export interface Staging {
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
<<<<<<< HEAD
  ) => Effect.Effect<A, E | Exclude<E2, SqlError> | Refusal, R>
  /** Takes the files of a request, which end with the scope unless they are published. */
  readonly staging: (
    incoming: Incoming
  ) => Effect.Effect<Staging, DiskFull | QuotaReached | ServiceUnavailable, Scope.Scope>
  /** Begins an upload that comes in several requests; answers its id. */
  readonly begin: (incoming: Incoming) => Effect.Effect<string, QuotaReached | SqlError>
  /**
   * Appends to an upload. What came before a failure of the source is kept; answers the bytes that are durable. A request
   * that comes later ends this one.
   */
  readonly append: <E>(
    id: string,
    offset: number,
    source: BlobSource<E>
  ) => Effect.Effect<number | WrongOffset, E | BlobTooLarge | DiskFull | UploadGone | SqlError>
  /** Makes the bytes of an upload a blob. */
  readonly finish: <A, E, R>(
    id: string,
    commit: Commit<A, E, R>
  ) => Effect.Effect<A, E | DiskFull | UploadGone | SqlError, R>
  readonly abort: (id: string) => Effect.Effect<void, DiskFull | UploadGone | SqlError>
=======
  ) => Effect.Effect<
    A,
    E | Exclude<E2, SqlError> | BlobTooLarge | DiskFull | QuotaReached | ServiceUnavailable,
    R
  >
>>>>>>> feb8e94aa1bb176eb8302d7b21dc8fc35a58e140
}

export interface Parts {
  readonly files: BlobFiles
  readonly index: BlobIndex
  readonly sql: SqlClient
  readonly putKeptMillis: number
  readonly minFreeBytes: number
  readonly onPublished: (sha256: string) => void
}

/** The upload was taken for one that nothing goes on with: its reservation could not be renewed. */
const tooLate = ServiceUnavailable.of(
  "The upload outlasted its reservation while the database was away; nothing was stored"
)

/**
 * The transaction that makes blobs of files of an upload, under the locks of their hashes. The upload ends first, so that
 * its files stay. The rows of the blobs are written with the references to them (`BlobIndex.refer`), behind whatever
 * else the records lock.
 */
const publish = <A, E, R, E2>(
  { files, index, onPublished, sql }: Parts,
  id: string,
  staged: ReadonlyArray<StagedBlob>,
  ended: Effect.Effect<void, E2>,
  commit: (blobs: ReadonlyArray<NewBlob>) => Effect.Effect<A, E, R>
) =>
  Effect.gen(function* () {
    yield* index.lockAll(staged.map(({ blob }) => blob.sha256))
    yield* ended
    yield* Effect.forEach(staged, ({ blob, file }) => files.publish({ id, file }, blob), {
      concurrency: renamedAtOnce,
      discard: true
    })
    return yield* commit(staged.map(({ blob }) => ({ ...blob, isNew: true as const })))
  }).pipe(
    sql.withTransaction,
    Effect.tap(() => Effect.sync(() => staged.forEach(({ blob }) => onPublished(blob.sha256))))
  )

/** Files that are renamed at once, which a disk syncs together. */
const renamedAtOnce = 4

/** Undoes a part of an upload; where that fails it ends by itself, when the reservation does. */
export const undone = (effect: Effect.Effect<void, UploadGone | SqlError>, id: string): Effect.Effect<void> =>
  Effect.catch(effect, (error) =>
    error._tag === "UploadGone" ? Effect.void : Effect.logDebug(`The upload ${id} ends later`, error)
  )

/** The part of a quota that a request's bytes take while they come. */
class Reservation {
  takenBytes = 0
  readonly id: string
  readonly #parts: Parts
  readonly #incoming: Incoming
  #reservedBytes: number

  constructor(parts: Parts, incoming: Incoming, id: string) {
    this.#parts = parts
    this.#incoming = incoming
    this.id = id
    const { expectedBytes = incoming.maxBytes, maxBytes } = incoming
    this.#reservedBytes = this.isLate ? maxBytes : Math.min(expectedBytes, maxBytes)
  }

  /** Few bytes are counted when all are there, without a reservation. */
  get isLate(): boolean {
    return this.#incoming.maxBytes <= lateBytes
  }

  get begin(): Effect.Effect<void, DiskFull | QuotaReached | SqlError> {
    const { files, index, minFreeBytes, putKeptMillis: keptMillis } = this.#parts
    const { pool, quotaBytes, userId } = this.#incoming
    const upload = { id: this.id, userId, pool, bytes: this.#reservedBytes, keptMillis }
    const room = files.haveRoom(this.#reservedBytes, minFreeBytes)
    return this.isLate ? room : Effect.andThen(room, index.reserve(upload, quotaBytes))
  }

  /** So many bytes more have come. */
  take(bytes: number): Effect.Effect<void, Refusal> | undefined {
    this.takenBytes += bytes
    return this.takenBytes <= this.#reservedBytes ? undefined : this.#grow(bytes)
  }

  #grow(bytes: number): Effect.Effect<void, Refusal> {
    const { files, index, minFreeBytes } = this.#parts
    const { maxBytes, quotaBytes } = this.#incoming
    if (this.takenBytes > maxBytes) return Effect.fail(new BlobTooLarge({ maxBytes }))
    const step = Math.min(Math.max(this.#reservedBytes, leastStep), mostStep)
    const wanted = Math.min(maxBytes, this.takenBytes + step)
    return Effect.gen({ self: this }, function* () {
      yield* files.haveRoom(wanted - this.takenBytes + bytes, minFreeBytes)
      const granted = yield* storeAway(index.grow(this.id, this.takenBytes, wanted, quotaBytes)).pipe(
        Effect.mapError((error) => (error._tag === "UploadGone" ? tooLate : error))
      )
      this.#reservedBytes = granted
    })
  }

<<<<<<< HEAD
  /** Ends it, in the transaction that makes the bytes the user's. */
  get end(): Effect.Effect<void, UploadGone | SqlError> {
    return this.isLate ? Effect.void : this.#parts.index.end({ id: this.id, epoch: 0 })
  }

  /** What ends too late has to fit, at the end of that transaction. */
  get fits(): Effect.Effect<void, QuotaReached | SqlError> {
    const { pool, quotaBytes, userId } = this.#incoming
    return this.isLate ? this.#parts.index.fits(userId, pool, quotaBytes) : Effect.void
  }

  /** Goes on as long as bytes come. */
  get renewing(): Effect.Effect<void> {
    const { index, putKeptMillis: keptMillis } = this.#parts
    const renewed = undone(index.renew(this.id, keptMillis), this.id)
    return this.isLate ? Effect.void : Effect.forever(Effect.delay(renewed, keptMillis / 3))
  }
}

/** No more than this is counted late. */
const lateBytes = 64 * 1024
/** A reservation grows by as much as it is, by no less and no more than these. */
const leastStep = 1024 * 1024
const mostStep = 64 * 1024 * 1024

const staging = (parts: Parts): BlobUploads["staging"] =>
  Effect.fnUntraced(function* (incoming) {
    const { files } = parts
    const run = Effect.runPromiseWith(yield* Effect.context<never>())
    const reservation = new Reservation(parts, incoming, newId("upl"))
    const { id } = reservation
    /** numbers of temporary files that are not published */
    const left = new Set<number>()
    let isOver = false
    yield* storeAway(reservation.begin)
    yield* Effect.addFinalizer(() => {
      const discarded = Effect.forEach(left, (file) => files.discard({ id, file }), { discard: true })
      return isOver ? discarded : Effect.andThen(discarded, undone(reservation.end, id))
    })
    yield* Effect.forkScoped(reservation.renewing)
    const ended = Effect.mapError(reservation.end, (error) => (error._tag === "UploadGone" ? tooLate : error))

    return {
      stage: (source, maxBytes = incoming.maxBytes) => {
        const file = left.size
        left.add(file)
        return Effect.map(
          files.receive({ id, file }, counted(source, reservation, run), maxBytes),
          (blob) => ({
            blob,
            file
          })
        )
      },
      publish: (staged, commit) => {
        const made = publish(parts, id, staged, ended, (blobs) =>
          Effect.tap(commit(blobs), () => reservation.fits)
        )
        // Its own time limit: the bytes before it may take as long as they need.
        return Effect.tap(storeAway(made), () =>
          Effect.sync(() => {
            isOver = true
            for (const { file } of staged) left.delete(file)
          })
        )
      }
    }
  })

/** A source whose bytes are counted as they come. */
const counted =
  <E>(
    source: BlobSource<E>,
    reservation: Reservation,
    run: <A>(effect: Effect.Effect<A>) => Promise<A>
  ): BlobSource<E | Refusal> =>
  async () => {
    const next = await source()
    if (Result.isFailure(next) || next.success === undefined) return next
    const growing = reservation.take(next.success.length)
    if (growing === undefined) return next
    const grown = await run(Effect.result(growing))
    return Result.isFailure(grown) ? Result.fail(grown.failure) : next
  }

const putting =
  (staged: BlobUploads["staging"]): BlobUploads["put"] =>
  (incoming, source, commit) =>
    Effect.scoped(
      Effect.flatMap(staged(incoming), ({ publish, stage }) =>
        Effect.flatMap(stage(source), (one) =>
          publish([one], ([blob]) => commit(blob ?? { ...one.blob, isNew: true }))
        )
      )
    )

/** An upload that comes in several requests, each of which takes hold of it. */
const appending = (parts: Parts): Omit<BlobUploads, "put" | "staging"> => {
  const { files, index, minFreeBytes, uploadKeptMillis: keptMillis } = parts
  const hold = Effect.fnUntraced(function* (id: string, offset?: number) {
    const at = offset ?? (yield* index.written(id))
    const upload = yield* index.hold(id, at, keptMillis)
    if (upload === undefined) return { _tag: "WrongOffset", written: yield* index.written(id) } as const
    if (yield* files.own(upload, { id, file: upload.fileBefore }, at)) return upload
    // Its bytes were lost.
    yield* index.end(upload)
    return yield* new UploadGone({ id })
  })
  /** The end of an upload, with which another request must not go on meanwhile. */
  const holdLast = (id: string) =>
    Effect.flatMap(hold(id), (upload) =>
      "_tag" in upload ? Effect.fail(new UploadGone({ id })) : Effect.succeed(upload)
    )
  return {
    begin: Effect.fn("BlobStore.begin")(function* ({ maxBytes: bytes, pool, quotaBytes, userId }: Incoming) {
      const id = newId("upl")
      yield* index.reserve({ id, userId, pool, bytes, keptMillis }, quotaBytes)
      return id
    }),
    append: (id, offset, source) =>
      Effect.gen(function* () {
        const upload = yield* hold(id, offset)
        if ("_tag" in upload) return upload
        const maxBytes = upload.reserved - offset
        yield* files.haveRoom(maxBytes, minFreeBytes)
        let durable = offset
        const onDurable = (bytes: number): void => void (durable = bytes)
        const noted = Effect.suspend(() => index.wrote(upload, durable, keptMillis))
        const appended = files.append(upload, source, { offset, maxBytes, onDurable })
        yield* Effect.onError(appended, () => undone(noted, id))
        yield* noted
        return durable
      }),
    finish: (id, commit) =>
      Effect.gen(function* () {
        const upload = yield* holdLast(id)
        const blob = yield* files.hashOf(upload, upload.written)
        const staged = { blob, file: upload.file }
        return yield* publish(parts, id, [staged], index.end(upload), ([made = { ...blob, isNew: true }]) =>
          commit(made)
        )
      }),
    abort: (id) =>
      Effect.gen(function* () {
        const upload = yield* holdLast(id)
        yield* index.end(upload)
        yield* files.discard(upload)
      })
  }
}

export const makeUploads = (parts: Parts): BlobUploads => {
  const staged = staging(parts)
  return { put: putting(staged), staging: staged, ...appending(parts) }
}
=======
export const makeUploads = (parts: Parts): BlobUploads => ({ put: putting(parts) })
>>>>>>> feb8e94aa1bb176eb8302d7b21dc8fc35a58e140
