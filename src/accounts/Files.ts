import { read } from "node:fs"
import { Context, Effect, Layer, Schema, type Stream } from "effect"
import { Model } from "effect/schema"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { hidden } from "#schemas/core/Noun.ts"
import type { NotFound, ServiceUnavailable } from "#schemas/core/Problem.ts"
import { AppConfig } from "#src/Config.ts"
import { closeFile } from "#src/front/FileSender.ts"
import { Blobs, type BlobSource, type BlobTooLarge, type DiskFull } from "#src/infra/blobs/Blobs.ts"
import type { ByteRange } from "#src/infra/blobs/FileBytes.ts"
import { newId } from "#src/infra/crypto/Tokens.ts"
import { safeFilename } from "#src/http/ContentDisposition.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import { Notices } from "#src/infra/notices/Notices.ts"
import * as Table from "#src/infra/postgres/Table.ts"
import type { Limits } from "#src/Limits.ts"
import { RecentFiles } from "./RecentFiles.ts"

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
  readonly content: BlobSource<E>
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
    /** a descriptor of the bytes, which is the caller's to close; or the bytes, of a short file */
    readonly open: (file: FileRow) => Effect.Effect<number | Uint8Array, NotFound>
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
      const { limits, maxFileSizeBytes } = yield* AppConfig
      const recent = new RecentFiles<FileRow>(limits)
      const notices = yield* Notices
      yield* notices.subscribe(deleted, () => recent.clear())
      return make(yield* Blobs, table, recent, notices.publish(deleted), { ...limits, maxFileSizeBytes })
    })
  )
}

/** The topic of notices, for those who have files in memory. */
const deleted = "files:deleted"

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
  recent: RecentFiles<FileRow>,
  tellDeleted: Effect.Effect<void>,
  { maxFileSizeBytes: maxBytes, shortFileBytes }: Limits & { readonly maxFileSizeBytes: number }
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
  find: (id) =>
    Effect.suspend(() => {
      const file = recent.find(id)
      if (file !== undefined) return Effect.succeed(file)
      const { version } = recent
      return Effect.tap(table.read(id, undefined), (row) => Effect.sync(() => recent.put(row, version)))
    }),
  read: ({ id }, range) => Effect.mapError(blobs.read(id, range), () => Table.notFound("File")),
  open: ({ id, size }) =>
    Effect.suspend((): Effect.Effect<number | Uint8Array, NotFound> => {
      const bytes = recent.bytesOf(id)
      if (bytes !== undefined) return Effect.succeed(bytes)
      const opened = Effect.mapError(blobs.open(id), () => Table.notFound("File"))
      if (size === 0 || size > shortFileBytes) return opened
      return Effect.tap(
        Effect.flatMap(opened, (fd) => readWhole(fd, size)),
        (whole) => Effect.sync(() => recent.putBytes(id, whole))
      )
    }),
  remove: (id, userId) =>
    table
      .remove(id, userId)
      .pipe(
        Effect.andThen(Effect.sync(() => recent.forget(id))),
        Effect.andThen(tellDeleted),
        Effect.andThen(blobs.remove(id))
      )
})

/** The whole of a short file, whose descriptor is closed. */
const readWhole = (fd: number, size: number): Effect.Effect<Buffer> =>
  Effect.callback((resume) => {
    const bytes = Buffer.allocUnsafeSlow(size)
    read(fd, bytes, 0, size, 0, (error, count) => {
      closeFile({ fd })
      if (error !== null) resume(Effect.die(error))
      else if (count === size) resume(Effect.succeed(bytes))
      else resume(Effect.die(new Error(`A file of ${size} bytes has ${count} on the disk`)))
    })
  })
