import { Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { type NotFound, ServiceUnavailable } from "#schemas/core/Problem.ts"
import { RecentFiles } from "#src/accounts/RecentFiles.ts"
import { AppConfig } from "#src/Config.ts"
import type { Blob } from "#src/infra/blobs/BlobIndex.ts"
import { BlobStore } from "#src/infra/blobs/BlobStore.ts"
import { damagedBytes } from "#src/infra/blobs/BlobUpkeep.ts"
import { Notices } from "#src/infra/notices/Notices.ts"
import { treeChanged } from "#src/files/tree/Tree.ts"
import { type StoredFile, Versions } from "#src/files/tree/Versions.ts"

/** Several machines have files of their own where they share no directory. */
const elsewhere = ServiceUnavailable.of(
  "The file's bytes are not on this server's disk; another server has them"
)

/** Versions of files and their bytes, from memory where they were asked for lately. */
export class FileReads extends Context.Service<
  FileReads,
  {
    /** by the id of a version, or of a file for its current one */
    readonly find: (id: string) => Effect.Effect<StoredFile, NotFound | SqlError>
    /** a descriptor of the bytes, which is the caller's to close; or the bytes, of a short file */
    readonly open: (file: StoredFile) => Effect.Effect<number | Buffer, ServiceUnavailable>
    /** a version and its bytes, where memory has both */
    readonly atHand: (id: string) => { readonly file: StoredFile; readonly bytes: Buffer } | undefined
  }
>()("signalbox/files/FileReads") {
  static readonly layer = Layer.effect(
    FileReads,
    Effect.gen(function* () {
      const blobs = yield* BlobStore
      const versions = yield* Versions
      const notices = yield* Notices
      const { limits } = yield* AppConfig
      const recent = new RecentFiles<StoredFile>(limits)
      yield* notices.subscribe(treeChanged, () => recent.clear())

      const reading = <A>(
        { damaged, id, sha256, sizeBytes, store }: StoredFile,
        read: (blob: Blob) => Effect.Effect<A, ServiceUnavailable>
      ): Effect.Effect<A, ServiceUnavailable> =>
        Effect.suspend(() => {
          if (store !== blobs.id) return elsewhere
          return damaged ? damagedBytes : read({ sha256, sizeBytes })
        }).pipe(Effect.onError(() => Effect.sync(() => recent.forget(id))))

      return FileReads.of({
        find: (id) =>
          Effect.suspend(() => {
            const known = recent.find(id)
            if (known !== undefined) return Effect.succeed(known)
            const { version } = recent
            return Effect.tap(versions.find(id), (file) =>
              // A file's own id means another version with the next upload.
              Effect.sync(() => (file.damaged || file.id !== id ? undefined : recent.put(file, version)))
            )
          }),
        open: (file) =>
          Effect.suspend((): Effect.Effect<number | Buffer, ServiceUnavailable> => {
            const { id, sizeBytes } = file
            const bytes = recent.bytesOf(id)
            if (bytes !== undefined) return Effect.succeed(bytes)
            if (sizeBytes > limits.shortFileBytes) return reading(file, blobs.open)
            return Effect.tap(reading(file, blobs.read), (whole) =>
              Effect.sync(() => recent.putBytes(id, whole))
            )
          }),
        atHand: (id) => recent.whole(id)
      })
    })
  )
}
