import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { BadRequest, Conflict } from "#schemas/core/Problem.ts"
import type { DeviceRow } from "#schemas/files/Device.ts"
import { reachOf } from "../access/Reach.ts"
import { type Directory, Tree } from "../tree/Tree.ts"
import { Trash } from "../tree/Trash.ts"

/** The hidden directories of what is sent to devices: buckets that no list shows. Source: contract/files#sending. */
export class DeviceDirectories extends Context.Service<
  DeviceDirectories,
  {
    /** In the caller's transaction, which holds the device's row; made where it is missing. */
    readonly of: (
      userId: string,
      deviceId: string
    ) => Effect.Effect<Directory, BadRequest | Conflict | SqlError>
    /** In the caller's transaction: the device goes, and what was sent to it into the trash. */
    readonly letGo: (device: DeviceRow) => Effect.Effect<void, Conflict | SqlError>
  }
>()("signalbox/files/DeviceDirectories") {
  static readonly layer = Layer.effect(
    DeviceDirectories,
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const tree = yield* Tree
      const trash = yield* Trash

      return DeviceDirectories.of({
        of: tree.deviceDirectory,
        letGo: Effect.fnUntraced(function* ({ directory_id: id, id: deviceId, name, user_id: userId }) {
          if (id === null) return
          const empty = yield* sql`DELETE FROM directories d WHERE id = ${id} AND user_id = ${userId}
            AND NOT EXISTS (SELECT FROM file_groups WHERE directory_id = d.id)
            AND NOT EXISTS (SELECT FROM directories WHERE parent_id = d.id) RETURNING id`
          if (empty.length > 0) return
          // It comes back out of the trash as a bucket that lists show.
          yield* sql`UPDATE directories SET kind = 'plain' WHERE id = ${id} AND user_id = ${userId}`
          const caller = { userId, reach: reachOf({ scopes: ["full"] }) }
          const trashId = yield* Effect.catchTags(trash.trashDirectory(caller, id, undefined), {
            // It went there before.
            NotFound: () => Effect.succeed(undefined),
            PreconditionFailed: Effect.die
          })
          if (trashId === undefined) return
          // In the trash, where the name may be that of another bucket.
          const slug = name.replaceAll(/[^a-zA-Z0-9._-]+/g, "-").slice(0, 60)
          const shown = `sent-to-${slug}-${deviceId.slice(-6)}`
          yield* sql`UPDATE directories SET name = ${shown} WHERE id = ${id}`
          yield* sql`UPDATE file_trash SET name = ${shown}, path = ${shown} WHERE id = ${trashId}`
        })
      })
    })
  )
}
