import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { AppConfig } from "#src/Config.ts"
import { deliveries } from "../delivery/Deliveries.ts"

/**
 * Deliveries that wait for these channels are said to be dropped: as many as a request has time for. No worker makes the others
 * either: the channel or the subscription is gone, or takes what was offered later (`after_seq`). An attempt that has begun goes on.
 * Rows that another transaction has locked are left out, so that no one waits for anyone here. Its caller has locked the channels.
 *
 * @param projectId of whose messages alone
 */
export const makeDropWaiting = Effect.gen(function* () {
  const sql = yield* SqlClient
  const { limits } = yield* AppConfig
  return (channelIds: ReadonlyArray<string>, projectId?: string): Effect.Effect<void, SqlError> =>
    channelIds.length === 0
      ? Effect.void
      : Effect.asVoid(sql`WITH held AS (
            SELECT d.message_id, d.channel_id FROM channels c
            JOIN deliveries d ON d.subscriber_id = c.subscriber_id AND d.channel_id = c.id
            WHERE c.id = ANY(${channelIds}::text[]) AND d.held_until IS NOT NULL LIMIT ${limits.deliveriesDroppedAtOnce}),
          items AS (
            SELECT d.message_id, d.channel_id FROM jobs j
            JOIN deliveries d ON d.digest_id = j.payload ->> 'message' AND d.channel_id = j.lane
            WHERE j.queue = ${deliveries.name} AND j.lane = ANY(${channelIds}::text[]) AND NOT j.open
            LIMIT ${limits.deliveriesDroppedAtOnce}),
          waiting AS (
            SELECT j.payload ->> 'message' AS message, j.lane AS channel FROM jobs j
            WHERE j.queue = ${deliveries.name} AND j.lane = ANY(${channelIds}::text[]) AND NOT j.open
            LIMIT ${limits.deliveriesDroppedAtOnce}),
          rows AS (
            SELECT d.message_id, d.channel_id FROM (SELECT * FROM waiting UNION ALL SELECT * FROM held UNION ALL SELECT * FROM items) AS w
            JOIN deliveries d ON d.message_id = w.message AND d.channel_id = w.channel
            WHERE d.dropped_at IS NULL ${
              projectId === undefined
                ? sql``
                : sql`AND EXISTS (SELECT FROM messages m WHERE m.id = d.message_id AND m.project_id = ${projectId})`
            } FOR UPDATE OF d SKIP LOCKED)
          UPDATE deliveries d SET dropped_at = now(), held_until = NULL FROM rows r
          WHERE d.message_id = r.message_id AND d.channel_id = r.channel_id`)
})
