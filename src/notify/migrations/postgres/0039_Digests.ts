import type { PostgresMigration } from "#src/infra/postgres/Migrations.ts"

/** As in `0020_Notify.ts`, which says why. */
const planned = `SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off
  SET enable_mergejoin = off SET enable_bitmapscan = off`

/** Digests that are due, and what is sent of them. Source: docs/decisions/0044-digests.md. */
export const digests: PostgresMigration = {
  id: 39,
  name: "digests",
  statements: [
    // Of those for whom something is due, a row for each due instant: `subscriber` is locked until the caller's transaction ends. Some
    // may be locked by others, which are accepting messages or change settings: their digests come a moment later. At most so
    // many deliveries are looked at. Deliveries of subscribers who left are dropped here. `items`: messages, as far as it matters.
    `CREATE FUNCTION digests_pick(p_deliveries integer)
     RETURNS TABLE (subscriber text, due text, items integer) LANGUAGE plpgsql ${planned} AS $$
     #variable_conflict use_column
     DECLARE
       at timestamptz := jobs_now();
       picked text[];
       locked text[];
     BEGIN
       picked := ARRAY(SELECT DISTINCT q.subscriber_id FROM (SELECT d.subscriber_id FROM deliveries d
         WHERE d.held_until <= at ORDER BY d.held_until, d.subscriber_id LIMIT p_deliveries) AS q);
       IF cardinality(picked) = 0 THEN RETURN; END IF;
       locked := ARRAY(SELECT s.id FROM subscribers s WHERE s.id = ANY (picked) FOR UPDATE SKIP LOCKED);
       IF cardinality(locked) < cardinality(picked) THEN
         UPDATE deliveries d SET held_until = NULL, dropped_at = now() WHERE d.subscriber_id = ANY (ARRAY(
           SELECT u.id FROM unnest(picked) AS u(id) WHERE NOT EXISTS (SELECT FROM subscribers s WHERE s.id = u.id)))
           AND d.held_until <= at;
       END IF;
       RETURN QUERY
         SELECT d.subscriber_id, d.held_until::text, count(DISTINCT d.message_id)::integer
         FROM unnest(locked) AS u(id) JOIN deliveries d ON d.subscriber_id = u.id AND d.held_until <= at
         GROUP BY d.subscriber_id, d.held_until;
     END $$`,

    // Has what is due for locked subscribers go: a message alone on its channel as itself, more as the digest of that
    // subscriber and instant, which has a delivery for each such channel. What no one wants any more is dropped: its message, project,
    // subscription or channel is gone, muted or off, or was so since it was accepted. Jobs are offered in the order of the lanes.
    `CREATE FUNCTION digests_close(p_subscribers text[], p_dues text[], p_ids text[], p_hashes text[], p_messages integer)
     RETURNS TABLE (singles integer, made integer, dropped integer) LANGUAGE plpgsql ${planned} AS $$
     #variable_conflict use_column
     DECLARE
       lanes text[];
       ids text[];
       payloads text[];
     BEGIN
       WITH due AS MATERIALIZED (
         SELECT d.message_id, d.channel_id, d.id, d.subscriber_id, d.kind, d.held_until, m.seq, m.user_id,
           coalesce(c.id IS NOT NULL AND d.held_seq > greatest(c.after_seq, s.after_seq), false) AS is_wanted, g.id AS digest, g.hash
         FROM unnest(p_subscribers, p_dues, p_ids, p_hashes) AS g(subscriber, due, id, hash)
         JOIN deliveries d ON d.subscriber_id = g.subscriber AND d.held_until = g.due::timestamptz
         LEFT JOIN messages m ON m.id = d.message_id
         LEFT JOIN projects p ON p.id = m.project_id AND p.deleted_at IS NULL
         LEFT JOIN project_subscriptions s ON s.project_id = p.id AND s.subscriber_id = d.subscriber_id AND s.delivery <> 'muted'
         LEFT JOIN channels c ON c.id = d.channel_id AND c.subscriber_id = s.subscriber_id AND c.state IN ('active', 'failing')),
       counted AS MATERIALIZED (
         SELECT due.*, is_wanted AND count(*) FILTER (WHERE is_wanted) OVER (PARTITION BY subscriber_id, held_until, channel_id) > 1
           AS is_item
         FROM due),
       written AS (
         UPDATE deliveries d SET held_until = NULL, digest_id = CASE WHEN k.is_item THEN k.digest END,
           dropped_at = CASE WHEN NOT k.is_wanted THEN now() END
         FROM counted k WHERE d.message_id = k.message_id AND d.channel_id = k.channel_id AND d.held_until = k.held_until),
       made AS (
         INSERT INTO digests (id, subscriber_id, due_at, link_hash, items, messages)
         SELECT o.digest, o.subscriber_id, o.held_until, decode(o.hash, 'hex'), count(*), (array_agg(o.message_id ORDER BY o.seq))[1:p_messages]
         FROM (SELECT DISTINCT k.digest, k.subscriber_id, k.held_until, k.hash, k.message_id, k.seq FROM counted k WHERE k.is_item) AS o
         GROUP BY o.digest, o.subscriber_id, o.held_until, o.hash),
       own AS (
         INSERT INTO deliveries (message_id, channel_id, id, subscriber_id, kind)
         SELECT DISTINCT k.digest, k.channel_id, delivery_id(k.digest, k.channel_id), k.subscriber_id, k.kind
         FROM counted k WHERE k.is_item
         RETURNING message_id, channel_id, id),
       offered AS (
         SELECT k.channel_id AS lane, k.id, format('{"message":"%s","owner":"%s"}', k.message_id, k.user_id) AS payload,
           k.held_until, k.seq
         FROM counted k WHERE k.is_wanted AND NOT k.is_item
         UNION ALL
         SELECT o.channel_id, o.id, format('{"message":"%s","owner":"digests"}', o.message_id),
           (SELECT g.due::timestamptz FROM unnest(p_dues, p_ids) AS g(due, id) WHERE g.id = o.message_id), 0
         FROM own o)
       SELECT array_agg(f.lane ORDER BY f.held_until, f.seq), array_agg(f.id ORDER BY f.held_until, f.seq),
         array_agg(f.payload ORDER BY f.held_until, f.seq), count(*) FILTER (WHERE f.seq > 0),
         count(DISTINCT f.payload) FILTER (WHERE f.seq = 0), (SELECT count(*) FROM counted k WHERE NOT k.is_wanted)
       INTO lanes, ids, payloads, singles, made, dropped FROM offered f;
       IF lanes IS NOT NULL THEN
         PERFORM jobs_offer('deliveries', lanes, ids, payloads, array_fill(''::text, ARRAY[cardinality(lanes)]));
       END IF;
       RETURN NEXT;
     END $$`,

    // As `deliveries_read`, of digests: `items` are the first so many of those on the channel that are wanted still.
    `CREATE FUNCTION digests_read(p_digests text[], p_channels text[], p_items integer)
     RETURNS TABLE (n integer, is_there boolean, channel jsonb, now_millis double precision, made_millis double precision,
       count integer, items jsonb)
     LANGUAGE plpgsql ${planned} AS $$
     BEGIN
       RETURN QUERY
         SELECT a.n::integer, d.id IS NOT NULL AND g.id IS NOT NULL,
           CASE WHEN c.id IS NOT NULL THEN jsonb_build_object('kind', c.kind, 'target', c.target, 'deadInARow', c.dead_in_a_row) END,
           extract(epoch FROM jobs_now())::double precision * 1000, floor(extract(epoch FROM g.created_at) * 1000)::double precision,
           coalesce(i.count, 0)::integer, coalesce(i.items, '[]')
         FROM unnest(p_digests, p_channels) WITH ORDINALITY AS a(digest, channel, n)
         LEFT JOIN deliveries d ON d.message_id = a.digest AND d.channel_id = a.channel
         LEFT JOIN digests g ON g.id = a.digest
         LEFT JOIN jobs j ON j.queue = 'deliveries' AND j.id = d.id
         LEFT JOIN channels c ON c.id = a.channel AND c.subscriber_id = d.subscriber_id AND c.state IN ('active', 'failing')
           AND d.dropped_at IS NULL AND (c.after_seq = 0 OR j.seq > c.after_seq)
         LEFT JOIN LATERAL (
           SELECT max(o.count) AS count, jsonb_agg(jsonb_build_object('id', o.id, 'project', jsonb_build_object('slug', o.slug, 'name', o.name),
             'app', o.app, 'message', o.message, 'title', o.title, 'url', o.url, 'priority', o.priority, 'bodyBytes', o.body_bytes,
             'attachments', o.attachments, 'createdAtMillis', floor(extract(epoch FROM o.created_at) * 1000)) ORDER BY o.seq) AS items
           FROM (SELECT m.*, p.slug, p.name, count(*) OVER () AS count FROM deliveries t JOIN messages m ON m.id = t.message_id
                 JOIN projects p ON p.id = m.project_id AND p.deleted_at IS NULL
                 JOIN project_subscriptions s ON s.project_id = p.id AND s.subscriber_id = t.subscriber_id
                   AND (s.after_seq = 0 OR j.seq > s.after_seq)
                 WHERE t.digest_id = a.digest AND t.channel_id = a.channel AND t.dropped_at IS NULL
                 ORDER BY m.seq LIMIT p_items) AS o) AS i ON c.id IS NOT NULL;
     END $$`
  ]
}
