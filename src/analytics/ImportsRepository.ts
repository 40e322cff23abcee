import { randomBytes } from "node:crypto"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"

export interface ImportState {
  /** lines taken so far */
  readonly next: number
  /** of the import's identities */
  readonly salt: string
}

const saltBytes = 32

/** `imports` in Postgres: how far each import has come. */
export class ImportsRepository extends Context.Service<
  ImportsRepository,
  {
    /** the state of an import, begun where there is none; forgets the salts of imports that were given up */
    readonly begin: (site: string, name: string) => Effect.Effect<ImportState, SqlError>
    /** the import has come to `next`; with its last part its salt is thrown away */
    readonly advance: (
      site: string,
      name: string,
      next: number,
      isLast: boolean
    ) => Effect.Effect<void, SqlError>
  }
>()("signalbox/analytics/ImportsRepository") {
  static readonly layer = Layer.effect(
    ImportsRepository,
    Effect.map(SqlClient, (sql) => ({
      begin: (site, name) =>
        Effect.gen(function* () {
          yield* sql`UPDATE imports SET salt = NULL WHERE salt IS NOT NULL AND updated_at < now() - interval '24 hours'`
          const fresh = randomBytes(saltBytes).toString("hex")
          const rows = yield* sql<ImportState>`
            INSERT INTO imports (site, name, salt) VALUES (${site}, ${name}, ${fresh})
            ON CONFLICT (site, name) DO UPDATE SET salt = coalesce(imports.salt, excluded.salt)
            RETURNING next::float8 AS next, salt`
          return rows[0] ?? { next: 0, salt: fresh }
        }),
      advance: (site, name, next, isLast) =>
        Effect.asVoid(
          sql`UPDATE imports SET next = ${next}, updated_at = now(), salt = CASE WHEN ${isLast} THEN NULL ELSE salt END
            WHERE site = ${site} AND name = ${name} AND next <= ${next}`
        )
    }))
  )
}
