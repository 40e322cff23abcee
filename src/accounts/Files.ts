import { Context, Effect, Layer, Schema, Stream } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import type { ServiceUnavailable } from "#schemas/core/Problem.ts"
import { AppConfig } from "#src/Config.ts"
import { Blobs, type BlobTooLarge, type DiskFull } from "#src/infra/blobs/Blobs.ts"
import type { ByteRange } from "#src/infra/blobs/FileBytes.ts"
import { newId } from "#src/infra/crypto/Tokens.ts"
import { safeFilename } from "#src/http/ContentDisposition.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import { type FileRow, FilesRepository } from "./FilesRepository.ts"

export class FileNotFound extends Schema.TaggedError<FileNotFound>()("FileNotFound", { id: Schema.String }) {}

export interface Upload<E> {
  /** as sent; stored as a bare, safe name */
  readonly filename: string
  readonly contentType: string
  readonly content: Stream.Stream<Uint8Array, E>
}

/** Account files: the bytes are a blob, the name and owner a row. A file exists once its row does. */
export class Files extends Context.Service<
  Files,
  {
    readonly upload: <E>(
      userId: string,
      upload: Upload<E>
    ) => Effect.Effect<
      { readonly id: string; readonly filename: string },
      E | BlobTooLarge | DiskFull | ServiceUnavailable
    >
    readonly find: (id: string) => Effect.Effect<FileRow, FileNotFound | SqlError>
    readonly read: (file: FileRow, range: ByteRange) => Effect.Effect<Stream.Stream<Uint8Array>, FileNotFound>
    readonly remove: (id: string, userId: string) => Effect.Effect<void, FileNotFound | SqlError>
  }
>()("signalbox/accounts/Files") {
  static readonly layerNoDeps = Layer.effect(
    Files,
    Effect.gen(function* () {
      const { maxFileSizeBytes } = yield* AppConfig
      return make(yield* Blobs, yield* FilesRepository, maxFileSizeBytes)
    })
  )

  static readonly layer = this.layerNoDeps.pipe(Layer.provide(FilesRepository.layer))
}

/** A stored Content-Type is sent again as a header: one line of a plain media type, or none at all. */
const safeContentType = (contentType: string): string =>
  /^[\w!#$&^.+-]{1,100}\/[\w!#$&^.+-]{1,100}(\s*;\s*[\w!#$&^.+-]{1,100}=("[\w !#$&^.+,:-]{0,100}"|[\w!#$&^.+-]{1,100})){0,4}$/.test(
    contentType
  )
    ? contentType
    : "application/octet-stream"

const make = (
  blobs: Blobs["Service"],
  repository: FilesRepository["Service"],
  maxBytes: number
): Files["Service"] => ({
  upload: <E>(userId: string, upload: Upload<E>) =>
    Effect.gen(function* () {
      const id = newId("fil")
      const filename = safeFilename(upload.filename)
      yield* blobs.write(id, upload.content, { maxBytes }).pipe(
        Effect.flatMap(({ sha256, sizeBytes }) =>
          // Its own time limit: the bytes before it may take as long as they need.
          storeAway(
            repository.insert({
              id,
              userId,
              filename,
              contentType: safeContentType(upload.contentType),
              sizeBytes,
              sha256
            })
          )
        ),
        // Without its row the blob could be neither found nor removed.
        Effect.onError(() => blobs.remove(id))
      )
      return { id, filename }
    }),
  find: (id) =>
    Effect.flatMap(repository.find(id), (file) =>
      file === undefined ? Effect.fail(new FileNotFound({ id })) : Effect.succeed(file)
    ),
  read: (file, range) => Effect.mapError(blobs.read(file.id, range), () => new FileNotFound({ id: file.id })),
  remove: (id, userId) =>
    Effect.gen(function* () {
      if (!(yield* repository.markDeleted(id, userId))) return yield* new FileNotFound({ id })
      yield* blobs.remove(id)
    })
})
