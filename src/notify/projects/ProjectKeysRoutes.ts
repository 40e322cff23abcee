import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { CurrentKey } from "#schemas/core/Authorization.ts"
import { NotifyRoomApi } from "#schemas/notify/NotifyRoomApi.ts"
import type { ProjectKeyRow } from "#schemas/notify/ProjectKey.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import { ProjectKeys } from "./ProjectKeys.ts"

const owner = Effect.map(CurrentKey, ({ ownerId }) => ownerId)

export const layer = HttpApiBuilder.group(
  NotifyRoomApi,
  "projectKeys",
  Effect.fnUntraced(function* (handlers) {
    const keys = yield* ProjectKeys
    /** Without projects that were deleted since. */
    const shown = (row: ProjectKeyRow) => ({
      ...row,
      projects: row.projects === null ? ("all" as const) : keys.covered(row).map(({ id }) => id)
    })
    return handlers.handleAll({
      listProjectKeys: () => Effect.map(owner, (userId) => ({ keys: keys.list(userId).map(shown) })),
      createProjectKey: ({ payload }) =>
        owner.pipe(
          Effect.flatMap((userId) => keys.create(userId, payload)),
          storeAway,
          Effect.map(({ row, secret }) => ({ ...shown(row), key: secret }))
        ),
      updateProjectKey: ({ params, payload }) =>
        owner.pipe(
          Effect.flatMap((userId) => keys.update(params.id, userId, payload)),
          storeAway,
          Effect.map(shown)
        ),
      revokeProjectKey: ({ params }) =>
        owner.pipe(
          Effect.flatMap((userId) => keys.revoke(params.id, userId)),
          storeAway,
          Effect.as({ deleted: true as const })
        )
    })
  })
)
