import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { AppConfig } from "#src/Config.ts"
import * as Sweeps from "#src/infra/jobs/Sweeps.ts"

/**
 * Deletes messages that are older than `MESSAGE_DAYS`, with their deliveries and files, some at a time. For a year their
 * links are known to have been good. Source: contract/notify#message-pages
 */
export const deleteOld = Effect.gen(function* () {
  const { limits, messageDays } = yield* AppConfig
  const sql = yield* SqlClient
  for (let deleted = 0; ;) {
    const rows = yield* sql`
      WITH gone AS (
        DELETE FROM messages WHERE id IN (
          SELECT id FROM messages WHERE created_at <= now() - ${messageDays} * interval '1 day'
          LIMIT ${limits.deletedMessagesAtOnce} FOR UPDATE SKIP LOCKED) RETURNING id, link_hash, project_id),
      noted AS (INSERT INTO gone_messages (link_hash, project_id) SELECT link_hash, project_id FROM gone),
      rows AS (DELETE FROM deliveries d USING gone WHERE d.message_id = gone.id)
      SELECT id FROM gone`
    deleted += rows.length
    if (rows.length < limits.deletedMessagesAtOnce) {
      yield* sql`DELETE FROM gone_messages WHERE gone_at < now() - ${limits.goneMessageDays} * interval '1 day'`
      return deleted
    }
  }
})

/** Deletes messages of deleted projects and their deliveries, some at a time: nothing shows them any more. */
export const deleteUnshown = Effect.gen(function* () {
  const { limits } = yield* AppConfig
  const sql = yield* SqlClient
  while (true) {
    const deleted = yield* sql`
      WITH gone AS (
        DELETE FROM messages WHERE id IN (
          SELECT m.id FROM projects p JOIN messages m ON m.project_id = p.id WHERE p.deleted_at IS NOT NULL
          LIMIT ${limits.deletedMessagesAtOnce}) RETURNING id),
      rows AS (DELETE FROM deliveries d USING gone WHERE d.message_id = gone.id)
      SELECT id FROM gone`
    if (deleted.length < limits.deletedMessagesAtOnce) return
  }
})

export const layer = Layer.merge(
  Sweeps.layer({ name: "old-messages", every: "sweepEveryMillis", run: deleteOld }),
  Sweeps.layer({ name: "project-messages", every: "sweepEveryMillis", run: deleteUnshown })
)
