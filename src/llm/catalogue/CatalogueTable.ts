import { Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { CatalogueCopies, CopiesUnavailable } from "#actors/llm/CatalogueCopies.ts"
import { UpstreamAddress } from "#src/infra/upstream/UpstreamAddress.ts"

/** A statement that takes longer means a Postgres that hangs: the catalogue goes on without its copy. */
const statementTimeoutMillis = 5_000

/** The built-in sandbox listens on another port at every start, and is still the same upstream. */
const sandbox = "sandbox"

const decodeRow = Schema.decodeUnknownSync(Schema.Struct({ body: Schema.String, fetched_at: Schema.Date }))

/** Copies of the upstream's list in `catalogue_copies`, one for each upstream. */
export const layer = Layer.effect(
  CatalogueCopies,
  Effect.gen(function* () {
    const sql = yield* SqlClient
    const { isSandbox, url } = yield* UpstreamAddress
    const upstream = isSandbox ? sandbox : url
    return CatalogueCopies.of({
      newerThan: (than) =>
        Effect.map(
          unavailable(
            than === undefined
              ? sql`SELECT body, fetched_at FROM catalogue_copies WHERE upstream = ${upstream}`
              : sql`SELECT body, fetched_at FROM catalogue_copies
                  WHERE upstream = ${upstream} AND fetched_at > ${than}`
          ),
          ([row]) => {
            if (row === undefined) return undefined
            const { body, fetched_at: fetchedAt } = decodeRow(row)
            return { body, fetchedAt }
          }
        ),
      keep: ({ body, fetchedAt }) =>
        Effect.asVoid(
          unavailable(sql`INSERT INTO catalogue_copies ${sql.insert({ upstream, body, fetched_at: fetchedAt })}
            ON CONFLICT (upstream) DO UPDATE SET body = excluded.body, fetched_at = excluded.fetched_at
            WHERE catalogue_copies.fetched_at < excluded.fetched_at`)
        )
    })
  })
)

const unavailable = <A>(statement: Effect.Effect<A, SqlError>): Effect.Effect<A, CopiesUnavailable> =>
  Effect.timeoutOrElse(
    Effect.mapError(statement, ({ message }) => new CopiesUnavailable({ problem: message })),
    {
      duration: statementTimeoutMillis,
      orElse: () =>
        Effect.fail(new CopiesUnavailable({ problem: `no answer in ${statementTimeoutMillis} ms` }))
    }
  )
