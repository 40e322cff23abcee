import { Effect, Result, Scope } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { ServiceUnavailable } from "#schemas/core/Problem.ts"
import { storeAway, storeAwayAbandoned } from "#src/http/StoreAway.ts"
import { newId } from "#src/infra/crypto/Tokens.ts"
import { type BlobSource, BlobTooLarge } from "./BlobFiles.ts"
import type { QuotaReached, UploadGone } from "./BlobIndex.ts"
import {
  type BlobUploads,
  type Incoming,
  isRow,
  type Parts,
  publish,
  type Refusal,
  type StagedBlob,
  stepBehind,
  undone
} from "./BlobUploads.ts"
import { gather, sourceOf } from "./GatheredSource.ts"
import { sumsOf } from "./RunningSums.ts"
import type { DiskFull } from "./Disk.ts"

/** The upload was taken for one that nothing goes on with: its reservation could not be renewed. */
const tooLate = ServiceUnavailable.of(
  "The upload outlasted its reservation while the database was away; nothing was stored"
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
    return this.isLate
      ? files.haveRoomLately(this.#reservedBytes, minFreeBytes)
      : Effect.andThen(room, index.reserve(upload, quotaBytes))
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
    const wanted = Math.min(maxBytes, this.takenBytes + stepBehind(this.#reservedBytes))
    return Effect.gen({ self: this }, function* () {
      yield* files.haveRoom(wanted - this.takenBytes + bytes, minFreeBytes)
      const granted = yield* storeAway(index.grow(this.id, this.takenBytes, wanted, quotaBytes)).pipe(
        Effect.mapError((error) => (error._tag === "UploadGone" ? tooLate : error))
      )
      this.#reservedBytes = granted
    })
  }

  /** Ends it, in the transaction that makes the bytes the user's. */
  get end(): Effect.Effect<void, UploadGone | SqlError> {
    return this.isLate ? Effect.void : this.#parts.index.end({ id: this.id, epoch: 0 })
  }

  /** Bytes that are counted late have to fit, at the end of that transaction. */
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

/** Bytes of short blobs of all requests that are in memory until they are published. */
class RowMemory {
  #takenBytes = 0

  /** False: there is no room. */
  take(bytes: number): boolean {
    if (this.#takenBytes + bytes > rowsMostBytes) return false
    this.#takenBytes += bytes
    return true
  }

  giveBack(bytes: number): void {
    this.#takenBytes -= bytes
  }
}

/** With more of them, short blobs get files, too. */
const rowsMostBytes = 64 * 1024 * 1024
/** …as where one request has brought as many. */
const rowsOfRequestBytes = 4 * 1024 * 1024

const staging = (parts: Parts, memory: RowMemory): BlobUploads["staging"] =>
  Effect.fnUntraced(function* (incoming) {
    const { files, rowBytes } = parts
    const run = Effect.runPromiseWith(yield* Effect.context<never>())
    const reservation = new Reservation(parts, incoming, newId("upl"))
    const { id } = reservation
    /** numbers of temporary files that are not published */
    const left = new Set<number>()
    let [filesMade, heldBytes, isOver] = [0, 0, false]
    yield* storeAway(reservation.begin)
    const discarding = Effect.suspend(() => {
      memory.giveBack(heldBytes)
      const discarded = Effect.forEach(left, (file) => files.discard({ id, file }), { discard: true })
      return isOver ? discarded : Effect.andThen(discarded, undone(reservation.end, id))
    })
    // `Effect.addFinalizer` would copy all services of this process for each upload, a quarter of its garbage.
    yield* Scope.addFinalizer(yield* Effect.scope, discarding)
    if (!reservation.isLate) yield* Effect.forkScoped(reservation.renewing)
    const ended = Effect.mapError(reservation.end, (error) => (error._tag === "UploadGone" ? tooLate : error))

    const toFile = <E>(source: BlobSource<E>, maxBytes: number) => {
      const file = filesMade++
      left.add(file)
      return files.receive({ id, file }, source, maxBytes).pipe(
        Effect.tap((blob) => files.makeFolder(blob)),
        Effect.map((blob) => ({ blob, file }))
      )
    }
    const toRow = <E>(source: BlobSource<E>, maxBytes: number) =>
      Effect.flatMap(
        Effect.flatMap(
          Effect.promise(() => gather(source, rowBytes)),
          Effect.fromResult
        ),
        (gathered): Effect.Effect<StagedBlob, E | BlobTooLarge | DiskFull> => {
          if (!Buffer.isBuffer(gathered)) return toFile(gathered, maxBytes)
          const { length } = gathered
          const fits = length <= maxBytes && heldBytes + length <= rowsOfRequestBytes
          if (!fits || !memory.take(length)) return toFile(sourceOf(gathered), maxBytes)
          heldBytes += length
          return Effect.succeed({ blob: sumsOf(gathered), bytes: gathered })
        }
      )
    return {
      isReserved: !reservation.isLate,
      stage: (source, maxBytes = incoming.maxBytes) => {
        const all = counted(source, reservation, run)
        return incoming.inRows === true ? toRow(all, maxBytes) : toFile(all, maxBytes)
      },
      publish: (staged, commit) => {
        const made = publish(parts, { id, userId: incoming.userId }, staged, ended, (blobs) =>
          Effect.tap(commit(blobs), () => reservation.fits)
        )
        // Its own time limit: the bytes before it may take as long as they need.
        return Effect.tap(storeAwayAbandoned(made), () =>
          Effect.sync(() => {
            isOver = true
            for (const one of staged) if (!isRow(one)) left.delete(one.file)
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

export const makeUploads = (parts: Parts): BlobUploads => {
  const staged = staging(parts, new RowMemory())
  return {
    put: putting(staged),
    staging: staged,
    publishRows: ({ pool, quotaBytes, userId }, rows, commit) =>
      storeAwayAbandoned(
        publish(parts, { id: "", userId }, rows, Effect.void, (blobs) =>
          Effect.tap(commit(blobs), () => parts.index.fits(userId, pool, quotaBytes))
        )
      )
  }
}
