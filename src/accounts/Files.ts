import { Context, Effect, Layer, Schema, Stream } from "effect"
import { Model } from "effect/schema"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { hidden } from "#schemas/core/Noun.ts"
import type { NotFound, ServiceUnavailable } from "#schemas/core/Problem.ts"
import { AppConfig } from "#src/Config.ts"
import { Blobs, type BlobTooLarge, type DiskFull } from "#src/infra/blobs/Blobs.ts"
import type { ByteRange } from "#src/infra/blobs/FileBytes.ts"
import { newId } from "#src/infra/crypto/Tokens.ts"
import { safeFilename } from "#src/http/ContentDisposition.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import * as Table from "#src/infra/postgres/Table.ts"

const text = Model.FieldOnly(["select", "insert"])(Schema.String)

/** A row of `files`: whose a blob is and what it is called. */
export class FileRow extends Model.Class<FileRow>("FileRow")({
  id: hidden,
  user_id: text,
  filename: text,
  contentType: text,
  /** bytes */
  size: Model.FieldOnly(["select", "insert"])(Schema.Finite),
  /** lower-case hexadecimal in memory */
  sha256: Model.Field({ select: Schema.String, insert: Schema.Uint8Array })
}) {}

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
    readonly find: (id: string) => Effect.Effect<FileRow, NotFound | SqlError>
    readonly read: (file: FileRow, range: ByteRange) => Effect.Effect<Stream.Stream<Uint8Array>, NotFound>
    readonly remove: (id: string, userId: string) => Effect.Effect<void, NotFound | SqlError>
  }
>()("signalbox/accounts/Files") {
  static readonly layer = Layer.effect(
    Files,
    Effect.gen(function* () {
      const table = Table.make(yield* SqlClient, {
        name: "files",
        title: "File",
        model: FileRow,
        ids: "fil",
        computed: { size: "size::float8", sha256: "encode(sha256, 'hex')" },
        gone: "deleted_at"
      })
      return make(yield* Blobs, table, (yield* AppConfig).maxFileSizeBytes)
    })
  )
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
  table: Table.Table<typeof FileRow>,
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
            table.insert(
              {
                user_id: userId,
                filename,
                contentType: safeContentType(upload.contentType),
                size: sizeBytes,
                sha256
              },
              { id }
            )
          )
        ),
        // Without its row the blob could be neither found nor removed.
        Effect.onError(() => blobs.remove(id))
      )
      return { id, filename }
    }),
  find: (id) => table.read(id, undefined),
  read: ({ id }, range) => Effect.mapError(blobs.read(id, range), () => Table.notFound("File")),
  remove: (id, userId) => Effect.andThen(table.remove(id, userId), blobs.remove(id))
})
