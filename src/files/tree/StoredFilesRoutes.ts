import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { FilesRoomApi } from "#schemas/files/FilesRoomApi.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import { readsNamed } from "../access/Reach.ts"
import { caller, limitDefault } from "./DirectoriesRoutes.ts"
import { FileChanges } from "./FileChanges.ts"
import { Listing } from "./Listing.ts"
import { Restoring } from "./Restoring.ts"
import { shownFile, shownPath, shownVersion } from "./Shown.ts"
import { Trash } from "./Trash.ts"
import { fileNotFound, type StoredFile, Versions } from "./Versions.ts"

/** The versions of a file that the caller may read, newest first. */
const historyFor = Effect.map(Versions, (versions) =>
  Effect.fnUntraced(function* (id: string) {
    const { reach, userId } = yield* caller
    const all = yield* versions.history(id)
    const [file] = all
    const isReached = file?.userId === userId && reach.mayRead(file.bucketName)
    return isReached ? all : yield* fileNotFound
  })
)

interface Search {
  readonly q?: string
  readonly path?: string
  readonly limit?: number
  readonly cursor?: string
}

const searching = Effect.map(Listing, (listing) =>
  Effect.fnUntraced(function* ({ path, q = "", ...page }: Search) {
    const { reach, userId } = yield* caller
    if (path === undefined) {
      const found = yield* listing.search(userId, reach.readable, q, { limit: limitDefault, ...page })
      return { files: found.rows.map(shownFile), cursor: found.cursor }
    }
    const names = path.normalize("NFC").split("/")
    yield* readsNamed(reach, names[0] ?? "")
    const file = yield* listing.fileAt(userId, names)
    return { files: file === undefined ? [] : [shownFile(file)], cursor: null }
  })
)

/** A history has at least one version, and a current one. */
const shownHistory = (id: string, all: ReadonlyArray<StoredFile>) => {
  const current = all.find((version) => version.isCurrent)
  const asked = all.find((version) => version.id === id) ?? current
  if (current === undefined || asked === undefined) return fileNotFound
  return Effect.succeed({
    fileId: asked.id,
    versionGroupId: current.groupId,
    name: current.name,
    path: shownPath(current),
    directoryId: current.directoryId,
    versions: all.map(shownVersion)
  })
}

export const layer = HttpApiBuilder.group(
  FilesRoomApi,
  "storedFiles",
  Effect.fnUntraced(function* (handlers) {
    const changes = yield* FileChanges
    const history = yield* historyFor
    const search = yield* searching
    const restoring = yield* Restoring
    const trash = yield* Trash
    return handlers.handleAll({
      searchFiles: ({ query }) => storeAway(search(query)),
      updateFile: ({ headers, params, payload }) =>
        caller.pipe(
          Effect.flatMap((by) => changes.move(by, params.id, payload, headers["if-match"])),
          Effect.map(shownFile),
          storeAway
        ),
      copyFile: ({ headers, params, payload }) =>
        caller.pipe(
          Effect.flatMap((by) => changes.copy(by, params.id, payload, headers["if-match"])),
          Effect.map(shownFile),
          storeAway
        ),
      trashFile: ({ headers, params }) =>
        caller.pipe(
          Effect.flatMap((by) => trash.trashFile(by, params.id, headers["if-match"])),
          Effect.map((trashId) => ({ deleted: true as const, trashId })),
          storeAway
        ),
      restoreFile: ({ headers, params, query }) =>
        Effect.gen(function* () {
          const by = yield* caller
          const restored = yield* restoring.file(by, params.id, query.onConflict ?? "fail")
          return shownFile(restored ?? (yield* changes.revert(by, params.id, headers["if-match"])))
        }).pipe(storeAway),
      listVersions: ({ params }) =>
        storeAway(Effect.flatMap(history(params.id), (all) => shownHistory(params.id, all))),
      deleteVersion: ({ params }) =>
        caller.pipe(
          Effect.flatMap((by) => changes.deleteVersion(by, params.id, params.versionId)),
          Effect.as({ deleted: true as const }),
          storeAway
        )
    })
  })
)
