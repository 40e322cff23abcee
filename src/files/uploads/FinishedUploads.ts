import { Effect, Predicate } from "effect"
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
import type { NewBlob } from "#src/infra/blobs/BlobIndex.ts"
import { UploadLinks } from "../links/UploadLinks.ts"
import { Tree } from "../tree/Tree.ts"
import { type StoredFile, Versions } from "../tree/Versions.ts"
import { Uploads, type UploadRow, type UploadTarget } from "./Uploads.ts"

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

const itemOf = (file: StoredFile): UploadedFile => ({
  name: file.name,
  size: file.sizeBytes,
  directUrl: null,
  fileId: file.id,
  versionGroupId: file.groupId,
  version: file.version,
  fileHash: file.sha256,
  mimeType: file.mimeType,
  directoryId: file.directoryId,
  isEncrypted: file.isEncrypted
})

/** Makes files of uploads whose bytes are all there. */
export const makeFinishing = Effect.gen(function* () {
  const blobs = yield* BlobStore
  const uploads = yield* Uploads
  const tree = yield* Tree
  const versions = yield* Versions
  const links = yield* UploadLinks
  const { limits } = yield* AppConfig

  const write = Effect.fnUntraced(function* (userId: string, fields: UploadTarget, blob: NewBlob) {
    const { dir, directoryId, encryptionKeyId, ifVersion, isEncrypted, mimeType, modifiedAt, names } = fields
    const base = directoryId === null ? undefined : yield* tree.directory(userId, directoryId)
    const above = base === undefined && dir !== null ? [dir, ...names.slice(0, -1)] : names.slice(0, -1)
    const directory = yield* tree.ensure(userId, base, above)
    return yield* versions.write(userId, "upload", {
      directory,
      name: names.at(-1) ?? "",
      blob,
      mimeType,
      modifiedAt: modifiedAt === null ? new Date() : new Date(modifiedAt),
      isEncrypted,
      encryptionKeyId,
      ifVersion: ifVersion ?? undefined
    })
  })

  const commit = ({ id, parts, userId }: UploadRow, target: UploadTarget) =>
    Effect.fnUntraced(function* (blob: NewBlob) {
      if (target.sha256 !== null && target.sha256 !== blob.sha256)
        return yield* UnprocessableContent.of(`sha256: the bytes have the hash ${blob.sha256}`, {
          param: "sha256"
        })
      const file = yield* write(userId, target, blob)
      const [path] = target.link ? yield* links.make([file]) : []
      const item = itemOf(file)
      yield* uploads.done(id, item)
      yield* uploads.forget(parts ?? [])
      return { ...item, directUrl: path ?? null }
    })

  const end = (id: string) => Effect.catchTag(blobs.abort(id), ["UploadGone", "DiskFull"], () => Effect.void)

  /** The bytes that an upload of parts has beside its own. */
  const joined = ({ id, parts }: UploadRow) =>
    parts === null ? Effect.void : Effect.asVoid(blobs.join(id, parts))

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
        // Another request may have finished it meanwhile.
        if (Predicate.isTagged(error, "UploadGone"))
          return Effect.flatMap(uploads.fileOf(id), (file) =>
            file === undefined ? Effect.fail(goneBytes) : Effect.succeed(file)
          )
        if (Predicate.isTagged(error, "DiskFull")) return Effect.fail(fullDisk)
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
