import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { AppConfig } from "#src/Config.ts"
import * as Sweeps from "#src/infra/jobs/Sweeps.ts"

/** Deletes webhooks that were not confirmed in time, and subscribers of long ago who have no project. */
export const sweepSubscribers = Effect.gen(function* () {
  const { limits } = yield* AppConfig
  const sql = yield* SqlClient
  yield* sql`DELETE FROM channels WHERE state = 'unconfirmed'
    AND created_at < now() - ${limits.unconfirmedMillis} * interval '1 millisecond'`
  const without = sql`NOT EXISTS (SELECT FROM project_subscriptions p WHERE p.subscriber_id = s.id)`
  // One who is joining has the row locked; a second statement sees the subscription of one who has joined since.
  yield* sql.withTransaction(
    Effect.gen(function* () {
      const found = yield* sql<{ id: string }>`SELECT s.id FROM subscribers s
        WHERE s.created_at < now() - ${limits.subscriberWithoutProjectMillis} * interval '1 millisecond' AND ${without}
        ORDER BY s.id FOR UPDATE SKIP LOCKED`
      yield* sql`DELETE FROM subscribers s WHERE s.id = ANY(${found.map(({ id }) => id)}::text[]) AND ${without}`
    })
  )
})

export const layer = Sweeps.layer({
  name: "subscribers",
  every: "sweepEveryMillis",
  run: sweepSubscribers
})
