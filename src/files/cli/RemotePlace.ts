import { Effect } from "effect"
import type { Directory } from "#schemas/files/Directory.ts"
import type { StoredFile } from "#schemas/files/StoredFile.ts"
import { Connection, RequestRefused } from "#src/cli/Connection.ts"

/** The file or directory that a path or an id on the server names. */
export type RemotePlace =
  | { readonly kind: "root" }
  | { readonly kind: "directory"; readonly directory: Directory }
  | { readonly kind: "file"; readonly file: StoredFile }
  /** by its id: a file (fg_…), or one version of it (fv_…) */
  | { readonly kind: "version"; readonly id: string }

const isId = (text: string, prefix: string): boolean =>
  text.startsWith(prefix) && /^[0-9A-Za-z]{22}$/.test(text.slice(prefix.length))

/** The names of a path of the server, which may begin and end with slashes. */
export const namesOf = (path: string): ReadonlyArray<string> =>
  path
    .normalize("NFC")
    .split("/")
    .filter((name) => name !== "")

const missing = (path: string): RequestRefused =>
  new RequestRefused({ text: `There is no file or directory ${path} on the server` })

/** The directory of a path; undefined: there is none. */
export const directoryAt = Effect.fnUntraced(function* (names: ReadonlyArray<string>) {
  const { ask } = yield* Connection
  const found = yield* ask((client) =>
    client.directories.listDirectories({ query: { path: names.join("/") } }).pipe(
      Effect.map(({ directories }) => directories.at(-1)),
      Effect.catchTag("NotFound", () => Effect.succeed(undefined))
    )
  )
  return found
})

/** The file of a path; undefined: there is none. */
const fileAt = Effect.fnUntraced(function* (names: ReadonlyArray<string>) {
  const { ask } = yield* Connection
  const { files } = yield* ask((client) =>
    client.storedFiles.searchFiles({ query: { path: names.join("/") } })
  )
  return files[0]
})

/** By an id, or by a path such as `docs/reports/may.pdf`; behind a slash it is a directory. Fails where there is none. */
export const placeOf = Effect.fnUntraced(function* (text: string) {
  if (isId(text, "fv_") || isId(text, "fg_")) return { kind: "version", id: text } satisfies RemotePlace
  const { ask } = yield* Connection
  if (isId(text, "dir_")) {
    const { directory } = yield* ask((client) =>
      client.directories.readDirectory({ params: { id: text }, query: { limit: 1 } })
    )
    if (directory === null) return yield* missing(text)
    return { kind: "directory", directory } satisfies RemotePlace
  }
  const names = namesOf(text)
  if (names.length === 0) return { kind: "root" } satisfies RemotePlace
  // A file goes before a directory of its name.
  const file = names.length > 1 && !text.endsWith("/") ? yield* fileAt(names) : undefined
  if (file !== undefined) return { kind: "file", file } satisfies RemotePlace
  const directory = yield* directoryAt(names)
  if (directory === undefined) return yield* missing(text)
  return { kind: "directory", directory } satisfies RemotePlace
})
