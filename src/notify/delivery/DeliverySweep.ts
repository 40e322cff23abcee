import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { AppConfig } from "#src/Config.ts"
import * as Sweeps from "#src/infra/jobs/Sweeps.ts"

/** Deliveries that ended long ago, with their outcomes, some at a time. Source: contract/notify#deliveries. */
export const layer = Sweeps.layer({
  name: "deliveries",
  every: "sweepEveryMillis",
  run: Effect.gen(function* () {
    const { limits } = yield* AppConfig
    const sql = yield* SqlClient
    while (true) {
      const [row] = yield* sql<{ ended: number }>`
        WITH old AS (
          DELETE FROM jobs_ended WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM jobs_ended
            WHERE queue = 'deliveries' AND ended_at < jobs_now() - ${limits.deliveriesKeptMillis} * interval '1 millisecond'
              AND (outcome = 'done' OR ended_at < jobs_now() - ${limits.deliveriesDeadMillis} * interval '1 millisecond')
            LIMIT ${limits.jobsDeletedAtOnce} FOR UPDATE SKIP LOCKED))
          RETURNING payload ->> 'message' AS message, lane),
        rows AS (DELETE FROM deliveries d USING old WHERE d.message_id = old.message AND d.channel_id = old.lane)
        SELECT count(*)::int AS ended FROM old`
      if ((row?.ended ?? 0) < limits.jobsDeletedAtOnce) return
    }
  })
})
