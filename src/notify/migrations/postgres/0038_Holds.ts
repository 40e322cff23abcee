import type { PostgresMigration } from "#src/infra/postgres/Migrations.ts"

/** As in `0020_Notify.ts`, which says why. */
const planned = "SET enable_seqscan = off SET plan_cache_mode = force_generic_plan"

const schedules: ReadonlyArray<string> = [
  // When messages are due by these settings, as a text that streams/notify/digests/Due.ts reads; null: at once, always.
  `CREATE FUNCTION hold_schedule(delivery text, digest_at text, quiet_from text, quiet_to text, timezone text)
   RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
     SELECT CASE WHEN delivery <> 'instant' OR quiet_from <> quiet_to
       THEN delivery || ' ' || coalesce(CASE WHEN delivery = 'daily' THEN digest_at END, '-')
         || CASE WHEN quiet_from <> quiet_to THEN ' ' || quiet_from || ' ' || quiet_to || ' ' ELSE ' - - ' END || timezone END
   $$`,

  // The settings of project and subscriber together; triggers keep it. `holds_high`: of messages of high priority too.
  `ALTER TABLE project_subscriptions ADD COLUMN schedule text COLLATE "C", ADD COLUMN holds_high boolean NOT NULL DEFAULT false`,
  `CREATE INDEX project_subscriptions_held ON project_subscriptions (project_id) WHERE schedule IS NOT NULL`,

  `CREATE FUNCTION subscription_schedule() RETURNS trigger LANGUAGE plpgsql AS $$
   BEGIN
     SELECT hold_schedule(CASE NEW.delivery WHEN 'inherit' THEN s.delivery ELSE NEW.delivery END, s.digest_at, s.quiet_from,
       s.quiet_to, s.timezone), NOT s.high_passes
     INTO NEW.schedule, NEW.holds_high FROM subscribers s WHERE s.id = NEW.subscriber_id FOR SHARE;
     RETURN NEW;
   END $$`,
  `CREATE TRIGGER project_subscriptions_schedule BEFORE INSERT OR UPDATE OF delivery ON project_subscriptions
     FOR EACH ROW EXECUTE FUNCTION subscription_schedule()`,
  `CREATE FUNCTION subscriber_schedules() RETURNS trigger LANGUAGE plpgsql AS $$
   BEGIN
     UPDATE project_subscriptions p SET schedule = k.schedule, holds_high = NOT NEW.high_passes
     FROM (SELECT o.project_id, hold_schedule(CASE o.delivery WHEN 'inherit' THEN NEW.delivery ELSE o.delivery END,
             NEW.digest_at, NEW.quiet_from, NEW.quiet_to, NEW.timezone) AS schedule
           FROM project_subscriptions o WHERE o.subscriber_id = NEW.id) AS k
     WHERE p.project_id = k.project_id AND p.subscriber_id = NEW.id
       AND (p.schedule IS DISTINCT FROM k.schedule OR p.holds_high <> NOT NEW.high_passes);
     RETURN NULL;
   END $$`,
  `CREATE TRIGGER subscribers_schedules
     AFTER UPDATE OF delivery, digest_at, quiet_from, quiet_to, high_passes, timezone ON subscribers
     FOR EACH ROW EXECUTE FUNCTION subscriber_schedules()`,
  `UPDATE project_subscriptions SET delivery = delivery`,

  // From `since` until before `until` a message by that schedule is due at `due_at`; null: at once. The server computes
  // them, since it alone knows zones; a sweep deletes old ones.
  `CREATE TABLE hold_instants (
     schedule text COLLATE "C" NOT NULL,
     since timestamptz NOT NULL,
     until timestamptz NOT NULL,
     due_at timestamptz,
     PRIMARY KEY (schedule, since))`,
  `CREATE INDEX hold_instants_age ON hold_instants (until)`
]

const held: ReadonlyArray<string> = [
  // In the order of jobs: what was accepted before a channel was turned on again is not sent (`after_seq`).
  `ALTER TABLE deliveries ADD COLUMN held_seq bigint`,
  `CREATE INDEX deliveries_due ON deliveries (held_until, subscriber_id) WHERE held_until IS NOT NULL`,
  `CREATE INDEX deliveries_digests ON deliveries (digest_id, channel_id) WHERE digest_id IS NOT NULL`,

  // `messages`: the first ones that it was made of, in their order; null once its page is gone. `items`: how many there were.
  `CREATE TABLE digests (
     id text COLLATE "C" PRIMARY KEY,
     subscriber_id text NOT NULL,
     due_at timestamptz NOT NULL,
     link_hash bytea NOT NULL UNIQUE,
     items integer NOT NULL,
     messages text[],
     created_at timestamptz NOT NULL DEFAULT now())`,
  `CREATE INDEX digests_age ON digests USING brin (created_at)`,

  `DROP FUNCTION deliveries_fan_out(text, text[], text[], integer)`,

  // As before; those of subscribers whose settings say so are held, without a job. Their subscribers are locked in one
  // order, against changes of settings and against the end of their digest, before the clock is read. Where it is not known
  // when a schedule is due nothing is written, and `missing` names them, with the instant that was asked for.
  `CREATE FUNCTION deliveries_fan_out(p_owner text, p_messages text[], p_projects text[], p_max integer,
     p_high boolean DEFAULT false)
   RETURNS TABLE (message text, deliveries integer, recipients integer, held integer, missing text,
     now_millis double precision)
   LANGUAGE plpgsql ${planned} AS $$
   #variable_conflict use_column
   DECLARE
     at timestamptz;
     holders text[];
     locked jsonb;
     schedules text[];
     untils timestamptz[];
     dues jsonb;
     lanes text[];
     ids text[];
     payloads text[];
     messages text[];
     subscribers text[];
     helds boolean[];
   BEGIN
     holders := ARRAY(SELECT DISTINCT s.subscriber_id FROM project_subscriptions s
       WHERE s.project_id = ANY (p_projects) AND s.schedule IS NOT NULL AND (NOT p_high OR s.holds_high)
         AND s.delivery <> 'muted');
     IF cardinality(holders) = 0 THEN
       WITH added AS (
         INSERT INTO deliveries (message_id, channel_id, id, subscriber_id, kind)
         SELECT m.message, c.id, delivery_id(m.message, c.id), s.subscriber_id, c.kind
         FROM unnest(p_messages, p_projects) AS m(message, project)
         JOIN project_subscriptions s ON s.project_id = m.project AND s.delivery <> 'muted'
         JOIN channels c ON c.subscriber_id = s.subscriber_id AND c.state = 'active'
         LIMIT p_max + 1
         RETURNING message_id, channel_id, id, subscriber_id)
       SELECT array_agg(a.channel_id), array_agg(a.id), array_agg(a.message_id), array_agg(a.subscriber_id),
         array_agg(format('{"message":"%s","owner":"%s"}', a.message_id, p_owner))
       INTO lanes, ids, messages, subscribers, payloads FROM added a;
     ELSE
       PERFORM FROM subscribers s WHERE s.id = ANY (holders) ORDER BY s.id FOR KEY SHARE;
       at := jobs_now();
       -- Looked up by key: as a join, a plan that was made for a few rows would compare each with each.
       SELECT jsonb_object_agg(h.id, true) INTO locked FROM unnest(holders) AS h(id);
       SELECT array_agg(k.schedule), array_agg(i.until), jsonb_object_agg(k.schedule, i.due_at) INTO schedules, untils, dues
       FROM (SELECT DISTINCT s.schedule FROM project_subscriptions s
             WHERE s.project_id = ANY (p_projects) AND s.schedule IS NOT NULL AND (NOT p_high OR s.holds_high)
               AND locked ? s.subscriber_id) AS k
       LEFT JOIN LATERAL (SELECT i.due_at, i.until FROM hold_instants i
         WHERE i.schedule = k.schedule AND i.since <= at AND i.until > at ORDER BY i.since DESC LIMIT 1) AS i ON true;
       IF array_position(untils, NULL) IS NOT NULL THEN
         RETURN QUERY SELECT NULL::text, 0, 0, 0, k.schedule, extract(epoch FROM at)::double precision * 1000
           FROM unnest(schedules, untils) AS k(schedule, until) WHERE k.until IS NULL;
         RETURN;
       END IF;
       WITH added AS (
         INSERT INTO deliveries (message_id, channel_id, id, subscriber_id, kind, held_until, held_seq)
         SELECT f.message, f.channel, delivery_id(f.message, f.channel), f.subscriber_id, f.kind, f.due_at,
           CASE WHEN f.due_at IS NOT NULL THEN (SELECT nextval('job_seqs')) END
         FROM (SELECT m.message, c.id AS channel, s.subscriber_id, c.kind, CASE WHEN s.schedule IS NOT NULL
                   AND (NOT p_high OR s.holds_high) AND locked ? s.subscriber_id THEN (dues ->> s.schedule)::timestamptz END AS due_at
               FROM unnest(p_messages, p_projects) AS m(message, project)
               JOIN project_subscriptions s ON s.project_id = m.project AND s.delivery <> 'muted'
               JOIN channels c ON c.subscriber_id = s.subscriber_id AND c.state = 'active') AS f
         LIMIT p_max + 1
         RETURNING message_id, channel_id, id, subscriber_id, held_until)
       SELECT array_agg(a.channel_id) FILTER (WHERE a.held_until IS NULL), array_agg(a.id) FILTER (WHERE a.held_until IS NULL),
         array_agg(a.message_id), array_agg(a.subscriber_id), array_agg(a.held_until IS NOT NULL),
         array_agg(format('{"message":"%s","owner":"%s"}', a.message_id, p_owner)) FILTER (WHERE a.held_until IS NULL)
       INTO lanes, ids, messages, subscribers, helds, payloads FROM added a;
     END IF;
     IF cardinality(messages) <= p_max AND lanes IS NOT NULL THEN
       PERFORM jobs_offer('deliveries', lanes, ids, payloads, array_fill(''::text, ARRAY[cardinality(lanes)]));
     END IF;
     RETURN QUERY
       SELECT m.message, count(a.message)::integer, count(DISTINCT a.subscriber)::integer,
         count(DISTINCT a.subscriber) FILTER (WHERE a.held)::integer, NULL::text, NULL::double precision
       FROM unnest(p_messages) AS m(message)
       LEFT JOIN unnest(messages, subscribers, helds) AS a(message, subscriber, held) ON a.message = m.message
       GROUP BY m.message;
   END $$`
]

/** Messages that are held for a digest, or until quiet hours end. Source: docs/decisions/0044-digests.md. */
export const holds: PostgresMigration = { id: 38, name: "holds", statements: [...schedules, ...held] }
