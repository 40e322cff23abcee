import { Effect } from "effect"
import { HttpEffect, HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { CurrentKey } from "#schemas/core/Authorization.ts"
import { FilesRoomApi } from "#schemas/files/FilesRoomApi.ts"
import { storeAway, storeAwayUntimed } from "#src/http/StoreAway.ts"
import { reachOf, readsNamed } from "../access/Reach.ts"
import { DirectoryChanges } from "./DirectoryChanges.ts"
import { type Caller, directoryFor, etagOfDirectory } from "./Holding.ts"
import { Listing } from "./Listing.ts"
import { Restoring } from "./Restoring.ts"
import { shownDirectory, shownFile } from "./Shown.ts"
import { Trash } from "./Trash.ts"
import { type Directory, inboxName, Tree } from "./Tree.ts"

export const limitDefault = 100

export const caller: Effect.Effect<Caller, never, CurrentKey> = Effect.map(CurrentKey, (key) => ({
  userId: key.ownerId,
  reach: reachOf(key)
}))

/** Shows a directory, with its ETag. */
const tagged = (directory: Directory) =>
  Effect.as(
    HttpEffect.appendPreResponseHandler((_, response) =>
      Effect.succeed(HttpServerResponse.setHeader(response, "etag", etagOfDirectory(directory)))
    ),
    shownDirectory(directory)
  )

/** The lists: all directories, and what is in one. */
const reading = Effect.gen(function* () {
  const listing = yield* Listing
  const tree = yield* Tree
  const find = yield* directoryFor
  return {
    all: Effect.fnUntraced(function* (path: string | undefined) {
      const { reach, userId } = yield* caller
      if (path !== undefined) {
        const names = path.normalize("NFC").split("/")
        yield* readsNamed(reach, names[0] ?? "")
        return { directories: (yield* listing.chain(userId, names)).map(shownDirectory) }
      }
      // The Inbox is always there for those who may see it.
      if (reach.mayRead(inboxName) && (yield* tree.bucket(userId, inboxName)) === undefined)
        yield* tree.ensure(userId, undefined, [inboxName])
      return { directories: (yield* listing.directories(userId, reach.readable)).map(shownDirectory) }
    }),
    one: Effect.fnUntraced(function* (
      id: string,
      query: { readonly limit?: number; readonly cursor?: string }
    ) {
      const by = yield* caller
      const directory = id === "root" ? undefined : yield* find(by, id, "read")
      const page = { limit: limitDefault, ...query }
      const inside = yield* listing.inside(by.userId, directory, by.reach.readable, page)
      return {
        directory: directory === undefined ? null : yield* tagged(directory),
        directories: inside.directories.map(shownDirectory),
        files: inside.files.map(shownFile),
        cursor: inside.cursor
      }
    })
  }
})

export const layer = HttpApiBuilder.group(
  FilesRoomApi,
  "directories",
  Effect.fnUntraced(function* (handlers) {
    const changes = yield* DirectoryChanges
    const lists = yield* reading
    const restoring = yield* Restoring
    const trash = yield* Trash
    return handlers.handleAll({
      listDirectories: ({ query }) => storeAway(lists.all(query.path)),
      readDirectory: ({ params, query }) => storeAway(lists.one(params.id, query)),
      createDirectory: ({ payload }) =>
        caller.pipe(
          Effect.flatMap((by) => changes.create(by, payload)),
          Effect.map(shownDirectory),
          storeAway
        ),
      // A change of all that is below a directory takes as long as it needs.
      updateDirectory: ({ headers, params, payload }) =>
        caller.pipe(
          Effect.flatMap((by) => changes.update(by, params.id, payload, headers["if-match"])),
          Effect.flatMap(tagged),
          storeAwayUntimed
        ),
      trashDirectory: ({ headers, params }) =>
        caller.pipe(
          Effect.flatMap((by) => trash.trashDirectory(by, params.id, headers["if-match"])),
          Effect.map((trashId) => ({ deleted: true as const, trashId })),
          storeAwayUntimed
        ),
      restoreDirectory: ({ params, query }) =>
        caller.pipe(
          Effect.flatMap((by) => restoring.directory(by, params.id, query.onConflict ?? "fail")),
          Effect.flatMap(tagged),
          storeAwayUntimed
        )
    })
  })
)
