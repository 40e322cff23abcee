import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { StorageFull } from "#schemas/core/Problem.ts"
import { StorageQuotas } from "#src/accounts/StorageQuotas.ts"

export interface Usage {
  /** of all references: versions, the trash, account files */
  readonly usedBytes: number
  readonly trashBytes: number
  /** null: none */
  readonly quotaBytes: number | null
}

/** How much room the files of a user take, and may take. */
export class StorageRoom extends Context.Service<
  StorageRoom,
  {
    readonly usage: (userId: string) => Effect.Effect<Usage, SqlError>
    /** Fails where the user has more than the quota; in a transaction that has added to it, and locks the sum. */
    readonly check: (userId: string) => Effect.Effect<void, StorageFull | SqlError>
  }
>()("signalbox/files/StorageRoom") {
  static readonly layer = Layer.effect(
    StorageRoom,
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const quotas = yield* StorageQuotas
      return StorageRoom.of({
        usage: Effect.fnUntraced(function* (userId) {
          const [row] = yield* sql<{ usedBytes: number; trashBytes: number }>`SELECT
            coalesce((SELECT bytes FROM blob_usage WHERE user_id = ${userId} AND pool = 'files'), 0)::float8
              AS "usedBytes",
            coalesce((SELECT sum(size) FROM file_trash WHERE user_id = ${userId} AND NOT is_ended), 0)::float8
              AS "trashBytes"`
          return { usedBytes: 0, trashBytes: 0, ...row, quotaBytes: quotas.of(userId) }
        }),
        check: Effect.fnUntraced(function* (userId) {
          const quotaBytes = quotas.of(userId)
          if (quotaBytes === null) return
          const [row] = yield* sql<{ taken: number }>`SELECT (bytes + (SELECT coalesce(sum(reserved), 0)
              FROM blob_uploads WHERE user_id = ${userId} AND pool = 'files' AND expires_at > now()))::float8 AS taken
            FROM blob_usage WHERE user_id = ${userId} AND pool = 'files'`
          if ((row?.taken ?? 0) > quotaBytes)
            return yield* StorageFull.of(`Quota of ${quotaBytes} bytes reached`)
        })
      })
    })
  )
}
