import { Array as Arr, Clock, Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { AppConfig } from "#src/Config.ts"
import { type LinkToken, newToken } from "./LinkTokens.ts"

/** A version that has just been written. */
interface Uploaded {
  readonly id: string
  readonly groupId: string
  readonly userId: string
}

/** The path of a link. Its server's address goes before it: see `RawServerUrl`. */
export const directPath = (token: string): string => `/direct/${token}`

/**
 * The links that uploads have of their own: without a cap or a password, pinned to the version, in no list. They last an
 * hour. Source: contract/files#links.
 */
export class UploadLinks extends Context.Service<
  UploadLinks,
  {
    /** In the caller's transaction, by one statement; answers a path for each, in their order. */
    readonly make: (files: ReadonlyArray<Uploaded>) => Effect.Effect<ReadonlyArray<string>, SqlError>
  }
>()("signalbox/files/UploadLinks") {
  static readonly layer = Layer.effect(
    UploadLinks,
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const clock = yield* Clock.Clock
      const { limits } = yield* AppConfig
      return UploadLinks.of({
        make: Effect.fnUntraced(function* (files) {
          const now = clock.currentTimeMillisUnsafe()
          const createdAt = new Date(now)
          const expiresAt = new Date(now + limits.uploadLinkMillis)
          const links = files.map((file): Uploaded & LinkToken => ({ ...file, ...newToken() }))
          const rows: ReadonlyArray<Record<string, unknown>> = links.map(({ groupId, hash, id, userId }) => ({
            token_hash: hash,
            user_id: userId,
            group_id: groupId,
            version_id: id,
            expires_at: expiresAt,
            created_at: createdAt
          }))
          if (!Arr.isReadonlyArrayNonEmpty(rows)) return []
          yield* sql`INSERT INTO share_links ${sql.insert(rows)}`
          return links.map(({ token }) => directPath(token))
        })
      })
    })
  )
}
