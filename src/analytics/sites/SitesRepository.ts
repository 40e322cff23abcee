import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { siteOfRow, type SiteRow } from "./SiteDirectory.ts"

export interface NewSiteRow {
  readonly id: string
  readonly user_id: string
  readonly name: string
  readonly domain: string
  readonly timezone: string
  readonly public: boolean
  readonly secret_prefix: string
  readonly secret_hash: Uint8Array
  readonly visitor_secret: Uint8Array
}

/** The columns of a row that may change. */
export type SiteRowChange = Partial<
  Pick<NewSiteRow, "name" | "domain" | "timezone" | "public" | "secret_prefix" | "secret_hash">
>

/** `sites` in Postgres. A site of another user is not found. */
export class SitesRepository extends Context.Service<
  SitesRepository,
  {
    /** undefined: the user has as many sites as they may */
    readonly insert: (row: NewSiteRow, limit: number) => Effect.Effect<SiteRow | undefined, SqlError>
    readonly update: (
      id: string,
      userId: string,
      change: SiteRowChange
    ) => Effect.Effect<SiteRow | undefined, SqlError>
    readonly markDeleted: (id: string, userId: string) => Effect.Effect<SiteRow | undefined, SqlError>
  }
>()("signalbox/analytics/SitesRepository") {
  static readonly layer = Layer.effect(
    SitesRepository,
    Effect.map(SqlClient, (sql) => {
      const first = (rows: ReadonlyArray<Record<string, unknown>>): SiteRow | undefined =>
        rows[0] === undefined ? undefined : siteOfRow(rows[0])
      return {
        insert: (row, limit) =>
          sql.withTransaction(
            Effect.gen(function* () {
              // A concurrent creation for the same user waits here, and counts this one.
              yield* sql`SELECT id FROM users WHERE id = ${row.user_id} FOR NO KEY UPDATE`
              const [there] = yield* sql<{ total: number }>`SELECT count(*)::int AS total FROM sites
                WHERE user_id = ${row.user_id} AND deleted_at IS NULL`
              if ((there?.total ?? 0) >= limit) return undefined
              return first(
                yield* sql<Record<string, unknown>>`INSERT INTO sites ${sql.insert({ ...row })} RETURNING *`
              )
            })
          ),
        update: (id, userId, change) =>
          Effect.map(
            // An empty change must still say whether the site is there.
            sql<Record<string, unknown>>`UPDATE sites SET ${sql.update({ user_id: userId, ...change })}
              WHERE id = ${id} AND user_id = ${userId} AND deleted_at IS NULL RETURNING *`,
            first
          ),
        markDeleted: (id, userId) =>
          Effect.map(
            sql<Record<string, unknown>>`UPDATE sites SET deleted_at = now()
              WHERE id = ${id} AND user_id = ${userId} AND deleted_at IS NULL RETURNING *`,
            first
          )
      }
    })
  )
}
