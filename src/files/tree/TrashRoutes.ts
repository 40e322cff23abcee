import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { FilesRoomApi } from "#schemas/files/FilesRoomApi.ts"
import { storeAway, storeAwayUntimed } from "#src/http/StoreAway.ts"
import { caller, limitDefault } from "./DirectoriesRoutes.ts"
import { StorageRoom } from "./StorageRoom.ts"
import { Trash } from "./Trash.ts"

const deleted = { deleted: true as const }

export const layer = HttpApiBuilder.group(
  FilesRoomApi,
  "trash",
  Effect.fnUntraced(function* (handlers) {
    const room = yield* StorageRoom
    const trash = yield* Trash
    const user = Effect.map(caller, ({ userId }) => userId)
    return handlers.handleAll({
      listTrash: ({ query }) =>
        caller.pipe(
          Effect.flatMap(({ reach, userId }) =>
            trash.list(userId, reach.readable, { limit: limitDefault, ...query })
          ),
          Effect.map(({ cursor, rows }) => ({ items: rows, cursor })),
          storeAway
        ),
      readStorage: () => storeAway(Effect.flatMap(user, room.usage)),
      emptyTrash: () => storeAwayUntimed(Effect.as(Effect.flatMap(user, trash.empty), deleted)),
      purgeTrashItem: ({ params }) =>
        user.pipe(
          Effect.flatMap((userId) => trash.remove(userId, params.id)),
          Effect.as(deleted),
          storeAwayUntimed
        )
    })
  })
)
