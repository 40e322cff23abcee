import { Effect, Predicate, Result } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import type { UploadedFile } from "#schemas/files/UploadedFile.ts"
import {
  BadRequest,
  Conflict,
  Forbidden,
  PayloadTooLarge,
  type Problem,
  RequestTimeout
} from "#schemas/core/Problem.ts"
import { ChecksumCheck, type UploadChecksum } from "#streams/files/uploads/UploadChecksum.ts"
import { type AppendFault, appendFault, isComplete } from "#streams/files/uploads/UploadProgress.ts"
import { StorageQuotas } from "#src/accounts/StorageQuotas.ts"
import { AppConfig } from "#src/Config.ts"
import { invalidKey } from "#src/accounts/Admission.ts"
import type { KeyedExchange } from "#src/accounts/KeyedRoute.ts"
import type { BodyEnd } from "#src/front/RawRoute.ts"
import type { BlobSource, BlobTooLarge } from "#src/infra/blobs/BlobFiles.ts"
import type { QuotaReached, UploadGone } from "#src/infra/blobs/BlobIndex.ts"
import type { WrongOffset } from "#src/infra/blobs/BlobAppends.ts"
import { BlobStore } from "#src/infra/blobs/BlobStore.ts"
import type { DiskFull } from "#src/infra/blobs/Disk.ts"
import { StoppableSource } from "#src/infra/blobs/StoppableSource.ts"
import { elsewhere, type Finishing, fullDisk, quotaReached } from "./FinishedUploads.ts"
import { endedByLater, type UploadTurn } from "./UploadTurns.ts"
import { Uploads, type UploadRow } from "./Uploads.ts"

/** Bytes that a request brings, and what it says of them. */
export interface Sent {
  /** where they begin */
  readonly offset: number
  /** all that the upload will have, if the request says so */
  readonly length: number | undefined
  readonly checksum: UploadChecksum | undefined
}

/** The outcome of a request that brings bytes. */
export type Received =
  /** the client has left, or a checksum is wrong: there is nothing else to say */
  | "gone"
  | "mismatch"
  | { readonly offset: number; readonly length: number | null; readonly file: UploadedFile | undefined }

type Cut = Exclude<BodyEnd, "complete"> | "mismatch" | "later" | "key"

const problemOfFault = ({ field, status, text }: AppendFault): Problem => {
  const kinds = { 400: BadRequest, 403: Forbidden, 409: Conflict, 413: PayloadTooLarge } as const
  return kinds[status].of(field === "" ? text : `${field}: ${text}`, field === "" ? {} : { param: field })
}

/** The bytes of a body, compared with their checksum at their end. */
const contentOf = (
  { body }: KeyedExchange,
  checksum: UploadChecksum | undefined
): BlobSource<Exclude<BodyEnd, "complete"> | "mismatch"> => {
  const check = checksum === undefined ? undefined : new ChecksumCheck(checksum)
  return async () => {
    const piece = await body.pull()
    if (Predicate.isString(piece)) {
      if (piece !== "complete") return Result.fail(piece)
      return check?.isGood() === false ? Result.fail("mismatch") : Result.succeed(undefined)
    }
    check?.update(piece)
    return Result.succeed(piece)
  }
}

/** Why a body was not taken to its end; what came before may be kept. */
const problemOfCut = (cut: Cut, maxBytes: number): Problem | "gone" | "mismatch" => {
  switch (cut) {
    case "gone":
    case "mismatch":
      return cut
    case "slow":
      return RequestTimeout.of("body: comes too slowly; what came is kept")
    case "tooLong":
      return PayloadTooLarge.of(`body: at most ${maxBytes} bytes`)
    case "later":
      return endedByLater
    case "key":
      return invalidKey()
  }
}

/** The bytes of a request were kept as far as they came, unlike those of one that is refused. */
const isKept = (appended: Result.Result<number | WrongOffset, unknown>): boolean =>
  Result.isSuccess(appended)
    ? Predicate.isNumber(appended.success)
    : Predicate.isString(appended.failure) && appended.failure !== "mismatch"

/** Appends what a request brings to the bytes of its upload. */
const makeAppending = Effect.gen(function* () {
  const blobs = yield* BlobStore
  const uploads = yield* Uploads
  const { limits } = yield* AppConfig
  const quotas = yield* StorageQuotas

  /** An upload whose length is told later has room for what this request says that it brings. */
  const reserve = ({ id, userId }: UploadRow, { length, offset }: Sent, bytes: number | undefined) => {
    const needed = length ?? offset + (bytes ?? 0)
    return blobs.resize(id, { needed, wanted: needed }, quotas.of(userId))
  }

  /** A request that told the length was not refused. */
  const keepLength = (id: string, length: number) =>
    Effect.andThen(uploads.setLength(id, length), blobs.resize(id, { needed: length, wanted: length }, null))

  return Effect.fnUntraced(function* (exchange: KeyedExchange, turn: UploadTurn, sent: Sent) {
    const { upload } = turn
    const { length, offset } = sent
    const { declaredBytes } = exchange.body
    const isOpen = upload.length === null
    if (isOpen) yield* reserve(upload, sent, declaredBytes)
    const content = new StoppableSource<Exclude<BodyEnd, "complete"> | "mismatch", "later" | "key">(
      contentOf(exchange, sent.checksum)
    )
    turn.brings({ stop: () => content.stop("later"), quietMillis: () => content.quietMillis })
    const unwatch = exchange.watch(() => content.stop("key"))
    // How long a body without a length is, the disk tells.
    const roomBytes = declaredBytes ?? (isOpen ? 0 : undefined)
    const mostBytes =
      length ?? (declaredBytes === undefined ? limits.sharedFileBytes : offset + declaredBytes)
    const growth = isOpen ? { mostBytes, quotaBytes: quotas.of(upload.userId) } : undefined
    const options = { roomBytes, growth, isWholeOnly: sent.checksum !== undefined }
    const appended = yield* Effect.result(
      Effect.ensuring(blobs.append(upload.id, offset, content.next, options), Effect.sync(unwatch))
    )
    if (isOpen && length !== undefined && isKept(appended)) yield* keepLength(upload.id, length)
    return appended
  })
})

/** Takes the bytes of requests, and makes the file when they are all there. */
export const makeReceiving = Effect.gen(function* () {
  const append = yield* makeAppending
  const blobs = yield* BlobStore
  const { limits } = yield* AppConfig

  return (finishing: Finishing) =>
    Effect.fnUntraced(function* (
      exchange: KeyedExchange,
      turn: UploadTurn,
      sent: Sent
    ): Effect.fn.Return<Received, Problem | SqlError> {
      const { upload } = turn
      const bytes = exchange.body.declaredBytes
      const fault = appendFault(
        upload,
        { offset: sent.offset, length: sent.length, bytes },
        limits.sharedFileBytes
      )
      if (fault !== undefined) return yield* problemOfFault(fault)
      if (upload.isDone)
        return { offset: upload.offset, length: upload.length, file: upload.file ?? undefined }
      if (upload.store !== blobs.id) return yield* elsewhere
      const appended = yield* append(exchange, turn, sent).pipe(
        Effect.catch((error) => Effect.succeed(Result.fail(error)))
      )
      if (Result.isFailure(appended)) {
        const { failure } = appended
        const problem = Predicate.isString(failure)
          ? problemOfCut(failure, limits.sharedFileBytes)
          : refusalOf(failure)
        return Predicate.isString(problem) ? problem : yield* Effect.fail(problem)
      }
      const offset = appended.success
      if (!Predicate.isNumber(offset))
        return yield* Conflict.of(`Upload-Offset: the upload has ${offset.written} bytes`)
      const now = { ...upload, offset, length: upload.length ?? sent.length ?? null, isBusy: false }
      const file = isComplete(now) ? yield* finishing.finished(now) : undefined
      return { offset, length: now.length, file }
    })
})

type Refusal = BlobTooLarge | DiskFull | QuotaReached | UploadGone | SqlError

const refusalOf = (error: Refusal): Problem | SqlError => {
  switch (error._tag) {
    case "BlobTooLarge":
      return PayloadTooLarge.of("body: is longer than what the upload has room for")
    case "DiskFull":
      return fullDisk
    case "QuotaReached":
      return quotaReached(error)
    case "UploadGone":
      return endedByLater
    default:
      return error
  }
}
