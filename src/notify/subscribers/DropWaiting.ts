import { Effect } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { deliveries } from "../delivery/Deliveries.ts"

/**
 * Deliveries that wait for these channels are not made: at their turn a worker finds them dropped. An attempt that has begun goes on.
 * Locks are taken in one order, against circles: subscriber, channels by id, deliveries. Its caller has those before.
 *
 * @param projectId of whose messages alone
 */
export const dropWaiting = (
  sql: SqlClient,
  channelIds: ReadonlyArray<string>,
  projectId?: string
): Effect.Effect<void, SqlError> =>
  channelIds.length === 0
    ? Effect.void
    : Effect.asVoid(sql`UPDATE deliveries d SET dropped_at = now() FROM jobs j
        WHERE j.queue = ${deliveries.name} AND j.lane = ANY(${channelIds}::text[]) AND NOT j.open
          AND d.message_id = j.payload ->> 'message' AND d.channel_id = j.lane AND d.dropped_at IS NULL
          ${
            projectId === undefined
              ? sql``
              : sql`AND EXISTS (SELECT FROM messages m WHERE m.id = d.message_id AND m.project_id = ${projectId})`
          }`)
