import { Effect } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import type { Directory } from "#schemas/files/Directory.ts"
import type { StoredFile } from "#schemas/files/StoredFile.ts"
import { OnConflict } from "#schemas/files/TreeTerms.ts"
import { CommandFailed } from "#src/cli/CommandFailed.ts"
import { Connection } from "#src/cli/Connection.ts"
import { givenOf, optional, verb } from "#src/cli/Noun.ts"
import { json, show, tableOf } from "#src/cli/Output.ts"
import { namesOf, placeOf } from "./RemotePlace.ts"

const path = Argument.String("path").pipe(
  Argument.withDescription("Path on the server, such as docs/may.pdf, or an id (fv_…, fg_…, dir_…)")
)

const conflict = optional(
  Flag.Literals("on-conflict", OnConflict.literals),
  "Where the name is taken: fail, replace or rename"
)

/** Pages that are asked for one after the other; a list of a person is no longer. */
const pagesMost = 1_000

interface Page {
  readonly directories: ReadonlyArray<Directory>
  readonly files: ReadonlyArray<StoredFile>
  readonly cursor: string | null
}

/** All pages of a list. */
const wholeOf = <E, R>(next: (cursor: { readonly cursor?: string }) => Effect.Effect<Page, E, R>) =>
  Effect.gen(function* () {
    const directories: Array<Directory> = []
    const files: Array<StoredFile> = []
    let cursor: string | null | undefined
    for (let pages = 0; pages < pagesMost && cursor !== null; pages++) {
      const page: Page = yield* next(cursor === undefined ? {} : { cursor })
      directories.push(...page.directories)
      files.push(...page.files)
      cursor = page.cursor
    }
    return { directories, files }
  })

const columns = ["name", "size", "version", "modifiedAt", "id"]

const rowOfFile = ({ fileSize: size, id, modifiedAt, name, version }: StoredFile) => ({
  name,
  size,
  version,
  modifiedAt,
  id
})

const rowOfDirectory = ({ id, modifiedAt, name }: Directory) => ({ name: `${name}/`, modifiedAt, id })

const ls = Command.make(
  "ls",
  { json, path: path.pipe(Argument.optional) },
  Effect.fnUntraced(function* (input) {
    const { ask } = yield* Connection
    const place = yield* placeOf(givenOf({ path: input.path }).path ?? "")
    if (place.kind === "file")
      return yield* show(input.json, place.file, (file) => tableOf(columns, [rowOfFile(file)]))
    if (place.kind === "version")
      return yield* new CommandFailed({ problem: "ls shows paths and directories; see files versions" })
    const id = place.kind === "root" ? "root" : place.directory.id
    const inside = yield* wholeOf((cursor) =>
      ask((client) =>
        client.directories.readDirectory({ params: { id }, query: { limit: 1_000, ...cursor } })
      )
    )
    yield* show(input.json, inside, ({ directories, files }) =>
      tableOf(columns, [...directories.map(rowOfDirectory), ...files.map(rowOfFile)])
    )
  })
).pipe(Command.withDescription("List what is in a directory, or in the root"))

const find = verb(
  "find",
  "Find files by a part of their names",
  { q: Argument.String("text").pipe(Argument.withDescription("Part of the name, in any case")) },
  (client, { q }) =>
    wholeOf((cursor) =>
      Effect.map(client.storedFiles.searchFiles({ query: { q, limit: 1_000, ...cursor } }), (page) => ({
        directories: [],
        ...page
      }))
    ),
  ({ files }) =>
    tableOf(
      ["path", "size", "version", "modifiedAt", "id"],
      files.map((file) => ({ ...rowOfFile(file), path: file.path }))
    )
)

/** The id of the file that a path or an id names. */
const fileOf = Effect.fnUntraced(function* (text: string) {
  const place = yield* placeOf(text)
  if (place.kind === "file") return place.file.id
  if (place.kind === "version") return place.id
  return yield* new CommandFailed({ problem: `${text} is no file` })
})

const versions = Command.make(
  "versions",
  { json, path },
  Effect.fnUntraced(function* (input) {
    const { ask } = yield* Connection
    const id = yield* fileOf(input.path)
    const history = yield* ask((client) => client.storedFiles.listVersions({ params: { id } }))
    yield* show(input.json, history, (shown) =>
      tableOf(
        ["version", "current", "size", "createdAt", "id"],
        shown.versions.map(({ createdAt, fileSize: size, id: versionId, isCurrent, version }) => ({
          version,
          current: isCurrent ? "yes" : "",
          size,
          createdAt,
          id: versionId
        }))
      )
    )
  })
).pipe(Command.withDescription("List the versions of a file"))

/** Another name in the same directory, or a directory that is there. */
const targetOf = Effect.fnUntraced(function* (text: string) {
  const found = yield* Effect.option(placeOf(text.endsWith("/") ? text : `${text}/`))
  if (found._tag === "Some" && found.value.kind === "directory")
    return { parentId: found.value.directory.id, name: undefined }
  if (found._tag === "Some" && found.value.kind === "root") return { parentId: null, name: undefined }
  const names = namesOf(text)
  const parent = yield* placeOf(`${names.slice(0, -1).join("/")}/`)
  const parentId = parent.kind === "directory" ? parent.directory.id : null
  return { parentId, name: names.at(-1) }
})

const mv = Command.make(
  "mv",
  {
    json,
    path,
    to: Argument.String("to").pipe(
      Argument.withDescription("The path that it gets, or a directory that it is moved into")
    ),
    onConflict: conflict
  },
  Effect.fnUntraced(function* (input) {
    const { ask } = yield* Connection
    const place = yield* placeOf(input.path)
    if (place.kind === "root") return yield* new CommandFailed({ problem: "The root stays where it is" })
    const { name, parentId } = yield* targetOf(input.to)
    const named = name === undefined ? {} : { name }
    if (place.kind === "directory") {
      const params = { id: place.directory.id }
      const moved = yield* ask((client) =>
        client.directories.updateDirectory({ params, headers: {}, payload: { ...named, parentId } })
      )
      return yield* show(input.json, moved, (shown) => `Moved to ${shown.path}`)
    }
    if (parentId === null) return yield* new CommandFailed({ problem: "A file cannot be in the root" })
    const id = place.kind === "file" ? place.file.id : place.id
    const payload = { ...named, directoryId: parentId, ...givenOf({ onConflict: input.onConflict }) }
    const moved = yield* ask((client) =>
      client.storedFiles.updateFile({ params: { id }, headers: {}, payload })
    )
    yield* show(input.json, moved, (shown) => `Moved to ${shown.path}`)
  })
).pipe(Command.withDescription("Rename or move a file or directory"))

const rm = Command.make(
  "rm",
  { json, path },
  Effect.fnUntraced(function* (input) {
    const { ask } = yield* Connection
    const place = yield* placeOf(input.path)
    if (place.kind === "root") return yield* new CommandFailed({ problem: "The root cannot be deleted" })
    const trashed = yield* place.kind === "directory"
      ? ask((client) =>
          client.directories.trashDirectory({ params: { id: place.directory.id }, headers: {} })
        )
      : ask((client) =>
          client.storedFiles.trashFile({
            params: { id: place.kind === "file" ? place.file.id : place.id },
            headers: {}
          })
        )
    yield* show(input.json, trashed, () => `In the trash; back by: signalbox files restore ${input.path}`)
  })
).pipe(Command.withDescription("Move a file or directory to the trash"))

/** The newest entry of the trash of this path; undefined: none. */
const trashedAt = Effect.fnUntraced(function* (text: string) {
  const { ask } = yield* Connection
  const wanted = namesOf(text).join("/")
  let cursor: string | null | undefined
  for (let pages = 0; pages < pagesMost && cursor !== null; pages++) {
    const after: { readonly cursor?: string } = cursor === undefined ? {} : { cursor }
    const page = yield* ask((client) => client.trash.listTrash({ query: { limit: 1_000, ...after } }))
    const item = page.items.find((one) => one.path === wanted)
    if (item !== undefined) return item
    cursor = page.cursor
  }
  return undefined
})

const restore = Command.make(
  "restore",
  { json, path, onConflict: conflict },
  Effect.fnUntraced(function* (input) {
    const { ask } = yield* Connection
    const isId = /^(?:fv|fg|dir)_[0-9A-Za-z]{22}$/.test(input.path)
    const item = isId ? undefined : yield* trashedAt(input.path)
    const id = isId ? input.path : item?.itemId
    if (id === undefined)
      return yield* new CommandFailed({ problem: `There is no ${input.path} in the trash` })
    const { onConflict } = givenOf({ onConflict: input.onConflict })
    if (id.startsWith("dir_")) {
      const query = onConflict === "rename" ? { onConflict } : {}
      const back = yield* ask((client) => client.directories.restoreDirectory({ params: { id }, query }))
      return yield* show(input.json, back, (shown) => `Restored ${shown.path}`)
    }
    const query = onConflict === undefined ? {} : { onConflict }
    const back = yield* ask((client) =>
      client.storedFiles.restoreFile({ params: { id }, headers: {}, query })
    )
    yield* show(input.json, back, (shown) => `Restored ${shown.path}, version ${shown.version}`)
  })
).pipe(
  Command.withDescription("Restore a file or directory from the trash, or an old version of a file by its id")
)

/** Verbs of files and directories on the server. */
export const treeVerbs: ReadonlyArray<Command.Command.Any> = [ls, find, versions, mv, rm, restore]
