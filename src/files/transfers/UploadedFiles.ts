import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Problem } from "#schemas/core/Problem.ts"
import type { UploadedFile } from "#schemas/files/UploadedFile.ts"
import { fileType } from "#src/http/FileType.ts"
import type { NewBlob } from "#src/infra/blobs/BlobIndex.ts"
import type { UploadFields } from "#streams/files/UploadFields.ts"
import { UploadLinks } from "#src/files/links/UploadLinks.ts"
import { type Directory, Tree } from "#src/files/tree/Tree.ts"
import { fileColumns, fileTables, type StoredFile, Versions } from "#src/files/tree/Versions.ts"

/** A file whose bytes are all there. */
export interface ArrivedFile {
  /** of its directories below the place of the upload, and its own, as `namesOfPath` made them */
  readonly names: readonly [string, ...Array<string>]
  readonly blob: NewBlob
  /** as it was sent; "" where none was */
  readonly sentType: string
  readonly fields: UploadFields
}

/** A file that was written, with the path of its link. */
export interface WrittenFile {
  readonly file: StoredFile
  readonly linkPath: string | null
}

/** The end of every upload: files of any number become versions, together. */
export class UploadedFiles extends Context.Service<
  UploadedFiles,
  {
    /**
     * In the caller's transaction: makes the directories that are missing below a directory, or below the bucket of a name,
     * the next version of each file, and the links that were asked for. Nothing else may be written behind it.
     *
     * @param source the way that they came, such as `upload`
     */
    readonly write: (
      userId: string,
      source: string,
      place: Directory | string,
      files: ReadonlyArray<ArrivedFile>
    ) => Effect.Effect<ReadonlyArray<WrittenFile>, Problem | SqlError>
    /** The current version of the file of this path in the bucket; undefined: there is none. */
    readonly currentAt: (
      userId: string,
      bucketName: string,
      names: ReadonlyArray<string>
    ) => Effect.Effect<StoredFile | undefined, SqlError>
  }
>()("signalbox/files/UploadedFiles") {
  static readonly layer = Layer.effect(
    UploadedFiles,
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const tree = yield* Tree
      const versions = yield* Versions
      const links = yield* UploadLinks
      const clock = yield* Clock.Clock

      /** One directory for all files in it, in the order of paths. */
      const placed = Effect.fnUntraced(function* (
        userId: string,
        place: Directory | string,
        files: ReadonlyArray<ArrivedFile>
      ) {
        const [base, first] = typeof place === "string" ? [undefined, [place]] : [place, []]
        const found = new Map<string, Directory>()
        // Sorted by their segments, so that all requests make directories in one order: `a/b` before `a-b`.
        for (const path of new Set(files.map(({ names }) => names.slice(0, -1).join("\0")).toSorted())) {
          const names = [...first, ...(path === "" ? [] : path.split("\0"))]
          found.set(
            path,
            names.length === 0 && base !== undefined ? base : yield* tree.ensure(userId, base, names)
          )
        }
        return (names: ReadonlyArray<string>) => found.get(names.slice(0, -1).join("\0"))
      })

      return UploadedFiles.of({
        write: Effect.fnUntraced(function* (userId, source, place, files) {
          const directoryOf = yield* placed(userId, place, files)
          const now = new Date(clock.currentTimeMillisUnsafe())
          const news = files.flatMap(({ blob, fields, names, sentType }) => {
            const directory = directoryOf(names)
            const name = names.at(-1) ?? names[0]
            if (directory === undefined) return []
            const mimeType = fileType(sentType, name)
            const { encryptionKeyId, ifVersion, isEncrypted, modifiedAt } = fields
            const version = { blob, mimeType, isEncrypted, encryptionKeyId }
            return [
              {
                ...version,
                directory,
                name,
                modifiedAt: modifiedAt ?? now,
                ifVersion: ifVersion ?? undefined
              }
            ]
          })
          const written = yield* versions.writeAll(userId, source, news)
          const linked = written.filter((_, index) => files[index]?.fields.link === true)
          const paths = yield* links.make(linked)
          return written.map((file) => ({ file, linkPath: paths[linked.indexOf(file)] ?? null }))
        }),
        currentAt: (userId, bucketName, names) =>
          Effect.map(
            sql<StoredFile>`SELECT ${sql.literal(fileColumns)} FROM ${sql.literal(fileTables)}
              WHERE b.user_id = ${userId} AND coalesce(b.parent_id, '') = '' AND b.name = ${bucketName}
                AND b.trash_id IS NULL AND g.path = ${names.join("/")} AND g.trash_id IS NULL
                AND v.id = g.current_id`,
            ([file]) => file
          )
      })
    })
  )
}

/** As answers show it; `url` is the address of this server. */
export const uploadedItem = ({ file, linkPath }: WrittenFile, url: string): UploadedFile => ({
  name: file.name,
  size: file.sizeBytes,
  directUrl: linkPath === null ? null : url + linkPath,
  fileId: file.id,
  versionGroupId: file.groupId,
  version: file.version,
  fileHash: file.sha256,
  mimeType: file.mimeType,
  directoryId: file.directoryId,
  isEncrypted: file.isEncrypted
})
