import { Context, Effect, Layer, Schema } from "effect"
import { Model } from "effect/schema"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { hidden } from "#schemas/core/Noun.ts"
import { type NotFound, ServiceUnavailable } from "#schemas/core/Problem.ts"
import { AppConfig } from "#src/Config.ts"
import type { BlobSource, BlobTooLarge } from "#src/infra/blobs/BlobFiles.ts"
import type { Blob, Owner, QuotaReached } from "#src/infra/blobs/BlobIndex.ts"
import { BlobStore } from "#src/infra/blobs/BlobStore.ts"
import { damagedBytes } from "#src/infra/blobs/BlobUpkeep.ts"
import type { DiskFull } from "#src/infra/blobs/Disk.ts"
import { newId } from "#src/infra/crypto/Tokens.ts"
import { safeFilename } from "#src/http/ContentDisposition.ts"
import { safeContentType } from "#src/http/ContentType.ts"
import { Notices } from "#src/infra/notices/Notices.ts"
import * as Table from "#src/infra/postgres/Table.ts"
import { adoptFiles, refOf } from "./FileAdoption.ts"
import { RecentFiles } from "./RecentFiles.ts"
import { StorageQuotas } from "./StorageQuotas.ts"

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
  sha256: Model.Field({ select: Schema.String, insert: Schema.Uint8Array }),
  /** the directory of blobs that has the bytes */
  store: Model.FieldOnly(["select"])(Schema.NullOr(Schema.String)),
  /** the bytes were seen to be damaged or missing */
  damaged: Model.FieldOnly(["select"])(Schema.Boolean)
}) {}

const computed = {
  size: "size::float8",
  sha256: "encode(sha256, 'hex')",
  damaged: `coalesce((SELECT b.damaged FROM blobs b
    WHERE b.store = files.store AND b.sha256 = files.sha256), false)`
}

/** A file that is to be stored. It is gone from `expiresAt` on. */
export interface NewFile extends Owner {
  /** as sent; stored as a bare, safe name */
  readonly filename: string
  readonly contentType: string
  /** the most that may come, where that is less than any file may have */
  readonly maxBytes: number
}

/** Account files: the bytes are a blob, the name and owner a row. A file exists once its row does. */
export class Files extends Context.Service<
  Files,
  {
    readonly put: <E>(
      content: BlobSource<E>,
      file: NewFile
    ) => Effect.Effect<
      { readonly id: string; readonly filename: string },
      E | BlobTooLarge | DiskFull | QuotaReached | ServiceUnavailable
    >
    readonly find: (id: string) => Effect.Effect<FileRow, NotFound | SqlError>
    /** all bytes of a file that is not large */
    readonly read: (file: FileRow) => Effect.Effect<Buffer, ServiceUnavailable>
    /** a descriptor of the bytes, which is the caller's to close; or the bytes, of a short file */
    readonly open: (file: FileRow) => Effect.Effect<number | Buffer, ServiceUnavailable>
    /** a file and its bytes, where memory has both */
    readonly atHand: (id: string) => { readonly file: FileRow; readonly bytes: Buffer } | undefined
    readonly remove: (id: string, userId: string) => Effect.Effect<void, NotFound | SqlError>
  }
>()("signalbox/accounts/Files") {
  static readonly layer = Layer.effect(
    Files,
    Effect.suspend(() => make)
  )
}

/** The topic of notices, for those who have files in memory. */
const deleted = "files:deleted"

/** Several machines have files of their own where they share no directory. */
const elsewhere = ServiceUnavailable.of(
  "The file's bytes are not on this server's disk; another server has them"
)

/** Reads the blob of a file whose bytes are here, and not known to be damaged; a reader that is refused asks anew. */
const readingOf =
  (blobs: BlobStore["Service"], recent: RecentFiles<FileRow>) =>
  <A>(
    { damaged, id, sha256, size, store }: FileRow,
    read: (blob: Blob) => Effect.Effect<A, ServiceUnavailable>
  ): Effect.Effect<A, ServiceUnavailable> =>
    Effect.suspend(() => {
      if (store !== blobs.id) return elsewhere
      return damaged ? damagedBytes : read({ sha256, sizeBytes: size })
    }).pipe(Effect.onError(() => Effect.sync(() => recent.forget(id))))

/** A new row, and the columns that readers of files do not see. */
const rowOf = (id: string, filename: string, { sha256, sizeBytes }: Blob, file: NewFile, store: string) =>
  [
    {
      user_id: file.userId,
      filename,
      contentType: safeContentType(file.contentType),
      size: sizeBytes,
      sha256: Buffer.from(sha256, "hex")
    },
    { id, store, source: file.source, expires_at: file.expiresAt }
  ] as const

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const blobs = yield* BlobStore
  const notices = yield* Notices
  const { limits, maxFileSizeBytes } = yield* AppConfig
  const quotas = yield* StorageQuotas
  const table = Table.make(sql, {
    name: "files",
    title: "File",
    model: FileRow,
    ids: "fil",
    computed,
    gone: { is: "coalesce(gone_at <= now(), false)", set: "deleted_at = now()" }
  })
  const recent = new RecentFiles<FileRow>(limits)
  yield* notices.subscribe(deleted, () => recent.clear())
  const tellDeleted = notices.publish(deleted)
  yield* adoptFiles

  const reading = readingOf(blobs, recent)
  return Files.of({
    put: (content, file) => {
      const { userId } = file
      const id = newId("fil")
      const filename = safeFilename(file.filename)
      const maxBytes = Math.min(file.maxBytes, maxFileSizeBytes)
      return Effect.as(
        blobs.put({ userId, maxBytes, quotaBytes: quotas.of(userId) }, content, (blob) =>
          Effect.andThen(
            blobs.refer(refOf(id), blob, file),
            table.insert(...rowOf(id, filename, blob, file, blobs.id))
          )
        ),
        { id, filename }
      )
    },
    find: (id) =>
      Effect.suspend(() => {
        const file = recent.find(id)
        if (file !== undefined) return Effect.succeed(file)
        const { version } = recent
        return Effect.tap(table.read(id, undefined), (row) =>
          Effect.sync(() => (row.damaged ? undefined : recent.put(row, version)))
        )
      }),
    read: (file) => reading(file, blobs.read),
    open: (file) =>
      Effect.suspend((): Effect.Effect<number | Buffer, ServiceUnavailable> => {
        const { id, size } = file
        const bytes = recent.bytesOf(id)
        if (bytes !== undefined) return Effect.succeed(bytes)
        if (size === 0 || size > limits.shortFileBytes) return reading(file, blobs.open)
        return Effect.tap(reading(file, blobs.read), (whole) => Effect.sync(() => recent.putBytes(id, whole)))
      }),
    atHand: (id) => recent.whole(id),
    remove: (id, userId) =>
      table
        .remove(id, userId, blobs.release(refOf(id)))
        .pipe(Effect.andThen(Effect.sync(() => recent.forget(id))), Effect.andThen(tellDeleted))
  })
})
