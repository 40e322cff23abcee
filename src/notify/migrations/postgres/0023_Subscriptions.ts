import type { PostgresMigration } from "#src/infra/postgres/Migrations.ts"

/** As in `0020_Notify.ts`, which says why. */
const planned = `SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off
  SET enable_mergejoin = off SET enable_bitmapscan = off`

/**
 * Turning a channel off, or leaving a project, drops all that waits without a look at each row. Source:
 * docs/decisions/0030-delivery.md.
 */
export const subscriptions: PostgresMigration = {
  id: 23,
  name: "subscriptions",
  statements: [
    // A sweep found that the subscriber has no project, or no channel, then.
    `ALTER TABLE subscribers ADD COLUMN idle_since timestamptz`,
    `CREATE INDEX subscribers_idle ON subscribers (idle_since) WHERE idle_since IS NOT NULL`,

    // Jobs up to this `seq` were offered before the channel was turned on again, or the project joined again.
    `ALTER TABLE channels ADD COLUMN after_seq bigint NOT NULL DEFAULT 0`,
    `ALTER TABLE project_subscriptions ADD COLUMN after_seq bigint NOT NULL DEFAULT 0`,

    // As before, but for jobs of before.
    `CREATE OR REPLACE FUNCTION deliveries_read(p_messages text[], p_channels text[], p_asked text[])
     RETURNS TABLE (n integer, is_there boolean, channel jsonb, now_millis double precision, message jsonb)
     LANGUAGE plpgsql ${planned} AS $$
     BEGIN
       RETURN QUERY
         SELECT a.n::integer, d.id IS NOT NULL AND m.id IS NOT NULL,
           CASE WHEN c.id IS NOT NULL THEN jsonb_build_object('kind', c.kind, 'target', c.target, 'deadInARow', c.dead_in_a_row) END,
           extract(epoch FROM jobs_now())::double precision * 1000,
           CASE WHEN p_asked[a.n] = 't' THEN jsonb_build_object('project', jsonb_build_object('slug', p.slug, 'name', p.name),
             'app', m.app, 'message', m.message, 'title', m.title, 'url', m.url, 'priority', m.priority, 'bodyBytes', m.body_bytes,
             'attachments', m.attachments, 'createdAtMillis', floor(extract(epoch FROM m.created_at) * 1000)) END
         FROM unnest(p_messages, p_channels) WITH ORDINALITY AS a(message, channel, n)
         LEFT JOIN deliveries d ON d.message_id = a.message AND d.channel_id = a.channel
         LEFT JOIN messages m ON m.id = a.message
         LEFT JOIN projects p ON p.id = m.project_id AND p.deleted_at IS NULL
         LEFT JOIN project_subscriptions s ON s.project_id = p.id AND s.subscriber_id = d.subscriber_id
         LEFT JOIN channels c ON c.id = a.channel AND c.subscriber_id = s.subscriber_id AND c.state IN ('active', 'failing')
           AND d.dropped_at IS NULL AND (greatest(c.after_seq, s.after_seq) = 0 OR EXISTS (SELECT FROM jobs j
             WHERE j.queue = 'deliveries' AND j.id = d.id AND j.seq > greatest(c.after_seq, s.after_seq)));
     END $$`
  ]
}
