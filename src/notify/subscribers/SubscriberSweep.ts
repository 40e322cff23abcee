import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { AppConfig } from "#src/Config.ts"
import * as Sweeps from "#src/infra/jobs/Sweeps.ts"

/** Deletes webhooks that were not confirmed in time, and subscribers who have been without a project or a channel for long. */
export const sweepSubscribers = Effect.gen(function* () {
  const { limits } = yield* AppConfig
  const sql = yield* SqlClient
  yield* sql`DELETE FROM channels WHERE state = 'unconfirmed'
    AND created_at < now() - ${limits.unconfirmedMillis} * interval '1 millisecond'`
  const isIdle = sql`(NOT EXISTS (SELECT FROM channels c WHERE c.subscriber_id = s.id) OR NOT EXISTS (
    SELECT FROM project_subscriptions p JOIN projects j ON j.id = p.project_id AND j.deleted_at IS NULL
    WHERE p.subscriber_id = s.id))`
  // One who is joining has the row locked, and makes it that of one who is not idle.
  yield* sql`UPDATE subscribers SET idle_since = CASE WHEN idle_since IS NULL THEN now() END
    WHERE id IN (SELECT s.id FROM subscribers s WHERE (s.idle_since IS NOT NULL) <> ${isIdle} FOR UPDATE SKIP LOCKED)`
  // A second statement sees the subscription of one who has joined since.
  yield* sql.withTransaction(
    Effect.gen(function* () {
      const found = yield* sql<{ id: string }>`SELECT s.id FROM subscribers s
        WHERE s.idle_since < now() - ${limits.subscriberIdleMillis} * interval '1 millisecond'
        ORDER BY s.id FOR UPDATE SKIP LOCKED`
      yield* sql`DELETE FROM subscribers s WHERE s.id = ANY(${found.map(({ id }) => id)}::text[]) AND ${isIdle}`
    })
  )
})

export const layer = Sweeps.layer({
  name: "subscribers",
  every: "sweepEveryMillis",
  run: sweepSubscribers
})
