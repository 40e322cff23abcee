import { Effect } from "effect"
import { CommandFailed } from "#src/cli/CommandFailed.ts"
import { Connection, type ConnectionFailure } from "#src/cli/Connection.ts"
import { atOnce } from "./bytes/ByteClient.ts"
import type { LocalFile } from "./bytes/LocalFiles.ts"
import type { FileThere, UploadTarget } from "./bytes/UploadTarget.ts"
import { namesOf, placeOf } from "./RemotePlace.ts"

/** directories of the server whose files are compared with those that are here; of one form's files there are no more */
const comparedDirectories = 250

/** A directory of the server, by its path or its id. */
export const targetOf = Effect.fnUntraced(function* (directory: string) {
  const { target } = yield* Connection
  const { key, url } = yield* target
  const place = directory.startsWith("dir_") ? yield* placeOf(directory) : undefined
  const [bucket, ...below] = namesOf(place?.kind === "directory" ? place.directory.path : directory)
  if (bucket === undefined)
    return yield* new CommandFailed({ problem: "Files go into a directory of the server, not into its root" })
  const upload: UploadTarget = {
    url,
    headers: { authorization: `Bearer ${key}` },
    bucket,
    below: below.map((name) => `${name}/`).join("")
  }
  return upload
})

/** The path that a file has on the server. */
export const pathOf = ({ below, bucket }: UploadTarget, { relative }: LocalFile): string =>
  `${bucket}/${below}${relative}`.normalize("NFC")

/** Directories of the server that files go to; undefined: the key may not read there. */
const directoriesOf = Effect.fnUntraced(function* ({ bucket }: UploadTarget) {
  const { ask } = yield* Connection
  return yield* ask((client) =>
    // A list has what the key may read; asked by its name the bucket tells whether it is of that.
    client.directories.listDirectories({ query: { path: bucket } }).pipe(
      Effect.catchTag("NotFound", () => Effect.void),
      Effect.andThen(client.directories.listDirectories({ query: {} })),
      Effect.map(({ directories }) => directories),
      Effect.catchTag("Forbidden", () => Effect.succeed(undefined))
    )
  )
})

/**
 * The files of the server at the paths of these, which have no entry where there is none; undefined: the key may not read, or
 * they would be of too many directories.
 */
export const filesThere = Effect.fnUntraced(function* (
  target: UploadTarget,
  files: ReadonlyArray<LocalFile>
): Effect.fn.Return<ReadonlyMap<LocalFile, FileThere> | undefined, ConnectionFailure, Connection> {
  const { ask } = yield* Connection
  const wanted = new Set(files.map((file) => pathOf(target, file).replace(/\/[^/]*$/, "")))
  const found = (yield* directoriesOf(target))?.filter(({ path }) => wanted.has(path))
  if (found === undefined || found.length > comparedDirectories) return undefined
  const there = new Map<string, FileThere>()
  const note = Effect.fnUntraced(function* (id: string) {
    let cursor: string | undefined
    do {
      const query: { readonly limit: number; readonly cursor?: string } =
        cursor === undefined ? { limit: 1_000 } : { limit: 1_000, cursor }
      const page = yield* ask((client) => client.directories.readDirectory({ params: { id }, query }))
      for (const { fileHash, id: fileId, path } of page.files) there.set(path, { fileId, sha256: fileHash })
      cursor = page.cursor ?? undefined
    } while (cursor !== undefined)
  })
  yield* Effect.forEach(found, ({ id }) => note(id), { concurrency: atOnce, discard: true })
  return new Map(
    files.flatMap((file) => {
      const known = there.get(pathOf(target, file))
      return known === undefined ? [] : [[file, known] as const]
    })
  )
})

/** Uploads of the server that an earlier run began, by what they are of. */
export const openUploads = Effect.fnUntraced(function* ({ bucket }: UploadTarget) {
  const { ask } = yield* Connection
  const { uploads } = yield* ask((client) => client.uploads.listUploads())
  return new Map(
    uploads
      .filter(({ dir, file, partial }) => dir === bucket && file === null && !partial)
      .map(({ modifiedAt, path, size, url }) => [resumeKey(path ?? "", size, modifiedAt), url])
  )
})

/** An upload is known by this again; the bytes are checked by their hash in any case. */
const resumeKey = (path: string, size: number | null, modifiedAt: string | null): string =>
  JSON.stringify([path.normalize("NFC"), size, modifiedAt === null ? null : Date.parse(modifiedAt)])

/** The path of the upload that an earlier run began of this file; undefined: there is none. */
export const earlierUpload = (
  open: ReadonlyMap<string, string>,
  { below }: UploadTarget,
  { modifiedAt, relative, sizeBytes }: LocalFile
): string | undefined => open.get(resumeKey(below + relative, sizeBytes, modifiedAt.toISOString()))
