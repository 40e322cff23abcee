import { Effect, Layer, Predicate } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import type { UploadedFile } from "#schemas/files/UploadedFile.ts"
import {
  Gone,
  type Problem,
  ServiceUnavailable,
  StorageFull,
  UnprocessableContent
} from "#schemas/core/Problem.ts"
import { isComplete } from "#streams/files/uploads/UploadProgress.ts"
import { AppConfig } from "#src/Config.ts"
import { BlobStore } from "#src/infra/blobs/BlobStore.ts"
import type { NewBlob, QuotaReached } from "#src/infra/blobs/BlobIndex.ts"
import * as Sweeps from "#src/infra/jobs/Sweeps.ts"
import { UploadedFiles, uploadedItem } from "../transfers/UploadedFiles.ts"
import { movedMeanwhile } from "../tree/Holding.ts"
import { directoryGone, Tree } from "../tree/Tree.ts"
import { Uploads, type UploadRow, type UploadTarget, usualBucket } from "./Uploads.ts"

export const fullDisk = StorageFull.of("The disk is full; what came before is kept")

/** The bytes are not here: they came to a machine with a disk of its own, or were lost with the disk. */
export const goneBytes = Gone.of("The upload's bytes are not there any more; begin it anew")

export const elsewhere = ServiceUnavailable.of(
  "The upload's bytes are not on this server's disk; another server has them"
)

const beingFinished = ServiceUnavailable.of(
  "Another server puts the file together at the moment; ask again",
  { retryAfterSeconds: 2 }
)

const goneParts = Gone.of("Upload-Concat: a partial upload is not there any more; begin it anew")

export const quotaReached = ({ quotaBytes }: QuotaReached): StorageFull =>
  StorageFull.of(`Quota of ${quotaBytes} bytes reached`)

/** Makes files of uploads whose bytes are all there. */
export const makeFinishing = Effect.gen(function* () {
  const blobs = yield* BlobStore
  const uploads = yield* Uploads
  const tree = yield* Tree
  const files = yield* UploadedFiles
  const { limits } = yield* AppConfig

  const commit = ({ bucket, id, parts, userId }: UploadRow, target: UploadTarget) =>
    Effect.fnUntraced(function* (blob: NewBlob) {
      const { dir, directoryId, filetype, modifiedAt, names, ...fields } = target
      if (fields.sha256 !== null && fields.sha256 !== blob.sha256)
        return yield* UnprocessableContent.of(`sha256: the bytes have the hash ${blob.sha256}`, {
          param: "sha256"
        })
      const place = directoryId === null ? (dir ?? usualBucket) : yield* tree.directory(userId, directoryId)
      // Its caller was asked about another one.
      if (!Predicate.isString(place) && place.bucketName !== bucket) return yield* movedMeanwhile
      const given = { ...fields, modifiedAt: modifiedAt === null ? null : new Date(modifiedAt) }
      const arrived = { names, blob, sentType: filetype, fields: given }
      const [written] = yield* files.write(userId, "upload", place, [arrived])
      if (written === undefined) return yield* directoryGone
      if (!Predicate.isString(place) && written.file.bucketId !== place.bucketId) return yield* movedMeanwhile
      // The path of its link is in the answer alone: nothing keeps the secret of that.
      const item = uploadedItem(written, "")
      yield* uploads.done(id, { ...item, directUrl: null })
      yield* uploads.forget(parts ?? [])
      return item
    })

  const end = (id: string) => Effect.catchTag(blobs.abort(id), ["UploadGone", "DiskFull"], () => Effect.void)

  /** The bytes that an upload of parts has beside its own. */
  const joined = ({ id, parts }: UploadRow) =>
    parts === null ? Effect.void : Effect.asVoid(blobs.join(id, parts))

  /** Another request has the upload, or has finished it; where there is none, its bytes are lost. */
  const takenOver = Effect.fnUntraced(function* (id: string) {
    if (yield* blobs.isOpen(id)) return yield* beingFinished
    return (yield* uploads.fileOf(id)) ?? (yield* goneBytes)
  })

  /** Undefined where it is not complete, or becomes no file. */
  const finished = Effect.fnUntraced(function* (
    upload: UploadRow
  ): Effect.fn.Return<UploadedFile | undefined, Problem | SqlError> {
    const { fields, id, idleMillis, isBusy, store } = upload
    if (upload.isDone) return upload.file ?? undefined
    if (fields === null || (upload.kind === "whole" && !isComplete(upload))) return undefined
    if (store !== blobs.id) return yield* elsewhere
    if (isBusy && idleMillis < 2 * limits.uploadRenewMillis) return yield* beingFinished
    const made = joined(upload).pipe(
      Effect.andThen(blobs.finish(id, commit(upload, fields))),
      Effect.catch((error): Effect.Effect<UploadedFile, Problem | SqlError> => {
        if (Predicate.isTagged(error, "UploadGone"))
          return error.id === id ? takenOver(id) : Effect.fail(goneParts)
        if (Predicate.isTagged(error, "DiskFull")) return Effect.fail(fullDisk)
        if (Predicate.isTagged(error, "QuotaReached")) return Effect.fail(quotaReached(error))
        if (Predicate.isTagged(error, "BlobTooLarge")) return Effect.fail(goneBytes)
        return Effect.fail(error)
      })
    )
    const file = yield* Effect.tapErrorTag(made, "UnprocessableContent", () =>
      Effect.andThen(end(id), uploads.forget([id]))
    )
    for (const part of upload.parts ?? []) yield* end(part)
    return file
  })

  return { finished, end }
})

export type Finishing = Effect.Success<typeof makeFinishing>

/**
 * Makes files of uploads whose last request died behind its last byte, and forgets those that are over. One that cannot
 * become a file, as another version came between, waits for its client to ask, and is over when it would have been.
 */
export const uploadSweep = Layer.unwrap(
  Effect.gen(function* () {
    const uploads = yield* Uploads
    const { finished } = yield* makeFinishing
    const { limits } = yield* AppConfig
    const finishLeft = Effect.gen(function* () {
      for (const upload of yield* uploads.left(limits.uploadSweepEveryMillis))
        yield* Effect.catch(Effect.andThen(uploads.tried(upload.id), finished(upload)), (error) =>
          Effect.logDebug(`The upload ${upload.id} is complete and becomes no file`, error)
        )
    })
    return Sweeps.layer({
      name: "uploads",
      every: "uploadSweepEveryMillis",
      run: Effect.andThen(finishLeft, uploads.sweep)
    })
  })
)
