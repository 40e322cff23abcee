import { Effect, Result } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import type { FieldFault } from "#schemas/core/FieldFault.ts"
import { invalidField, type Problem } from "#schemas/core/Problem.ts"
import { bucketName, entryName, namesOfPath } from "#schemas/files/Names.ts"
import { safeContentType } from "#src/http/ContentType.ts"
import { readUploadFields } from "#streams/files/UploadFields.ts"
import type { UploadMetadata } from "#streams/files/uploads/UploadMetadata.ts"
import { type Reach, writesFound, writesNamed } from "../access/Reach.ts"
import { directoryNotFound, isDirectoryId, Tree } from "../tree/Tree.ts"
import { type UploadTarget, usualBucket } from "./Uploads.ts"

export const orInvalid = <A>(read: Result.Result<A, FieldFault>): Effect.Effect<A, Problem> =>
  Effect.mapError(Effect.fromResult(read), ({ field, text }) => invalidField(field, text))

/** Reads what an upload is to become, and sees that its caller may write there. */
export const makeTargets = Effect.gen(function* () {
  const tree = yield* Tree

  /** The name of the bucket that it goes to. */
  const bucketOf = Effect.fnUntraced(function* (
    userId: string,
    reach: Reach,
    dir: string,
    directoryId: string | null
  ): Effect.fn.Return<string, Problem | SqlError> {
    if (directoryId !== null) {
      const directory = yield* tree.directory(userId, directoryId)
      return (yield* writesFound(reach, directory, directoryNotFound.message)).bucketName
    }
    yield* bucketName("dir", dir)
    yield* writesNamed(reach, dir)
    return dir
  })

  return Effect.fnUntraced(function* (
    userId: string,
    reach: Reach,
    metadata: UploadMetadata
  ): Effect.fn.Return<{ readonly fields: UploadTarget; readonly bucket: string }, Problem | SqlError> {
    const textOf = (field: string): string => metadata.get(field) ?? ""
    const { modifiedAt, ...values } = yield* orInvalid(readUploadFields(textOf))
    const [path, filename] = [textOf("path"), textOf("filename")]
    if (path === "" && filename === "")
      return yield* invalidField("filename", "expected filename or path in Upload-Metadata")
    const names =
      path === "" ? ([yield* entryName("filename", filename)] as const) : yield* namesOfPath("path", path)
    const sentType = textOf("filetype").trim()
    const directoryId = textOf("directoryId") || null
    const dir = textOf("dir") || usualBucket
    if (directoryId !== null && textOf("dir") !== "")
      return yield* invalidField("dir", "give this or directoryId, not both")
    if (directoryId !== null && !isDirectoryId(directoryId)) return yield* directoryNotFound
    const bucket = yield* bucketOf(userId, reach, dir, directoryId)
    const fields: UploadTarget = {
      ...values,
      filename: names.at(-1) ?? names[0],
      filetype: sentType === "" ? "" : safeContentType(sentType),
      names,
      path: path || null,
      dir: directoryId === null ? dir : null,
      directoryId,
      modifiedAt: modifiedAt?.toISOString() ?? null
    }
    return { fields, bucket }
  })
})
