import type { PostgresMigration } from "#src/infra/postgres/Migrations.ts"

/** Settings as in `CREATE FUNCTION jobs_offer`: rows are found by keys, whatever was analysed while tables were empty. */
const planned = "SET enable_seqscan = off SET plan_cache_mode = force_generic_plan"

const zone = "'UTC'"
const localTime = "CHECK (%s ~ '^([01][0-9]|2[0-3]):[0-5][0-9]$')"
const timeColumn = (name: string) => `${name} text ${localTime.replace("%s", name)}`

const owned: ReadonlyArray<string> = [
  // `join_generation`: the part of the join link that a new link changes; `join_hash`: SHA-256 of its token.
  `CREATE TABLE projects (
     id text PRIMARY KEY,
     user_id text NOT NULL REFERENCES users (id),
     slug text NOT NULL,
     name text NOT NULL,
     description text NOT NULL,
     joining text NOT NULL CHECK (joining IN ('link', 'closed')),
     join_generation integer NOT NULL DEFAULT 0,
     join_hash bytea NOT NULL,
     created_at timestamptz NOT NULL DEFAULT now(),
     deleted_at timestamptz,
     changed xid8 NOT NULL DEFAULT pg_current_xact_id())`,
  `CREATE UNIQUE INDEX projects_slugs ON projects (user_id, slug) WHERE deleted_at IS NULL`,
  `CREATE INDEX projects_joining ON projects (join_hash)`,
  `CREATE INDEX projects_changed ON projects (changed)`,
  `CREATE TRIGGER projects_mark_changed BEFORE INSERT OR UPDATE ON projects
     FOR EACH ROW EXECUTE FUNCTION mark_changed()`,

  // `projects` null: all of the owner's, later ones too.
  `CREATE TABLE project_keys (
     id text PRIMARY KEY,
     user_id text NOT NULL REFERENCES users (id),
     name text NOT NULL,
     prefix text NOT NULL,
     hash bytea NOT NULL UNIQUE,
     projects text[],
     expires_at timestamptz,
     rate_limit_per_minute integer,
     created_at timestamptz NOT NULL DEFAULT now(),
     revoked_at timestamptz,
     changed xid8 NOT NULL DEFAULT pg_current_xact_id())`,
  `CREATE INDEX project_keys_user ON project_keys (user_id)`,
  `CREATE INDEX project_keys_changed ON project_keys (changed)`,
  `CREATE TRIGGER project_keys_mark_changed BEFORE INSERT OR UPDATE ON project_keys
     FOR EACH ROW EXECUTE FUNCTION mark_changed()`
]

const subscribed: ReadonlyArray<string> = [
  // `digest_at`, `quiet_from`, `quiet_to`: HH:MM in the zone. Deleted at once, with channels and subscriptions.
  `CREATE TABLE subscribers (
     id text PRIMARY KEY,
     name text NOT NULL,
     token_hash bytea NOT NULL UNIQUE,
     timezone text NOT NULL DEFAULT ${zone},
     delivery text NOT NULL DEFAULT 'instant' CHECK (delivery IN ('instant', 'hourly', 'daily')),
     ${timeColumn("digest_at")},
     ${timeColumn("quiet_from")},
     ${timeColumn("quiet_to")},
     high_passes boolean NOT NULL DEFAULT true,
     created_at timestamptz NOT NULL DEFAULT now())`,

  `CREATE TABLE project_subscriptions (
     project_id text NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
     subscriber_id text NOT NULL REFERENCES subscribers (id) ON DELETE CASCADE,
     delivery text NOT NULL DEFAULT 'inherit'
       CHECK (delivery IN ('inherit', 'instant', 'hourly', 'daily', 'muted')),
     created_at timestamptz NOT NULL DEFAULT now(),
     PRIMARY KEY (project_id, subscriber_id))`,
  `CREATE INDEX project_subscriptions_subscriber ON project_subscriptions (subscriber_id)`,

  // `address`: by which two channels are the same one (of a push, the endpoint). `target`: what sending to it takes.
  // `confirm_hash`: SHA-256 of the token of the link that was posted to a webhook.
  `CREATE TABLE channels (
     id text COLLATE "C" PRIMARY KEY,
     subscriber_id text NOT NULL REFERENCES subscribers (id) ON DELETE CASCADE,
     kind text NOT NULL CHECK (kind IN ('push', 'webhook', 'telegram', 'slack', 'discord')),
     name text NOT NULL DEFAULT '',
     address text NOT NULL,
     target jsonb NOT NULL,
     state text NOT NULL DEFAULT 'active' 
       CHECK (state IN ('unconfirmed', 'active', 'off', 'failing', 'gone')),
     dead_in_a_row integer NOT NULL DEFAULT 0,
     confirm_hash bytea UNIQUE,
     created_at timestamptz NOT NULL DEFAULT now())`,
  `CREATE INDEX channels_subscriber ON channels (subscriber_id)`,
  `CREATE UNIQUE INDEX channels_endpoints ON channels (address) WHERE kind = 'push'`
]

const sent: ReadonlyArray<string> = [
  // `seq` orders a list. `key_id` null: the owner's own test. `link_hash`: SHA-256 of the token of its page.
  `CREATE TABLE messages (
     id text COLLATE "C" PRIMARY KEY,
     seq bigint GENERATED ALWAYS AS IDENTITY,
     user_id text NOT NULL,
     project_id text NOT NULL,
     key_id text,
     app text NOT NULL,
     message text NOT NULL,
     title text,
     url text,
     body text,
     body_bytes integer NOT NULL,
     body_format text NOT NULL CHECK (body_format IN ('auto', 'text', 'markdown', 'json', 'log')),
     priority text NOT NULL CHECK (priority IN ('low', 'normal', 'high')),
     attachments integer NOT NULL,
     recipients integer NOT NULL,
     queued_for_digest integer NOT NULL,
     link_hash bytea NOT NULL UNIQUE,
     created_at timestamptz NOT NULL DEFAULT now())`,
  `CREATE INDEX messages_owner ON messages (user_id, seq)`,
  `CREATE INDEX messages_key ON messages (key_id, seq)`,
  `CREATE INDEX messages_project ON messages (project_id, seq)`,
  `CREATE INDEX messages_age ON messages USING brin (created_at)`,

  // The row says to whom, the job of its id how far it is: nothing is written here when a delivery ends well.
  // `held_until`: it waits for a digest. No foreign keys: each would be a look-up a row of a fan-out.
  `CREATE TABLE deliveries (
     message_id text COLLATE "C" NOT NULL,
     channel_id text COLLATE "C" NOT NULL,
     id text COLLATE "C" NOT NULL,
     subscriber_id text NOT NULL,
     kind text NOT NULL,
     held_until timestamptz,
     digest_id text,
     dropped_at timestamptz,
     PRIMARY KEY (message_id, channel_id))`,
  `CREATE INDEX deliveries_held ON deliveries (subscriber_id, held_until) WHERE held_until IS NOT NULL`,

  // How far a message's deliveries are, and an owner's dead ones, are found without the jobs of other queues.
  `CREATE INDEX jobs_of_messages ON jobs ((payload ->> 'message')) WHERE queue = 'deliveries'`,
  `CREATE INDEX jobs_ended_deliveries ON jobs_ended (id) WHERE queue = 'deliveries'`,
  `CREATE INDEX jobs_dead_deliveries ON jobs_ended ((payload ->> 'owner'), seq)
     WHERE queue = 'deliveries' AND outcome = 'dead'`,
  // Deliveries are kept for long after their ends: neither their sweep nor that of the other queues reads the rest.
  `CREATE INDEX jobs_ended_deliveries_age ON jobs_ended (ended_at) WHERE queue = 'deliveries'`,
  `CREATE INDEX jobs_ended_others_age ON jobs_ended (ended_at) WHERE queue <> 'deliveries'`
]

const files: ReadonlyArray<string> = [
  // `state` unused: no message has it, and it goes at its expiry. used: its bytes go then. expired: they have gone, and
  // its messages name it. deleted: its messages are gone, and a sweep removes it. `store`: the directory of its blob.
  `CREATE TABLE attachments (
     id text COLLATE "C" PRIMARY KEY,
     user_id text NOT NULL REFERENCES users (id),
     key_id text,
     filename text NOT NULL,
     content_type text NOT NULL,
     size bigint NOT NULL,
     store text NOT NULL,
     sha256 bytea NOT NULL,
     state text NOT NULL DEFAULT 'unused' CHECK (state IN ('unused', 'used', 'expired', 'deleted')),
     created_at timestamptz NOT NULL DEFAULT now(),
     expires_at timestamptz NOT NULL)`,
  `CREATE INDEX attachments_expiry ON attachments (expires_at) WHERE state <> 'expired'`,

  `CREATE TABLE message_attachments (
     message_id text COLLATE "C" NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
     place integer NOT NULL,
     attachment_id text COLLATE "C" NOT NULL REFERENCES attachments (id),
     PRIMARY KEY (message_id, place))`,
  `CREATE INDEX message_attachments_attachment ON message_attachments (attachment_id)`,

  // The last message of a file is gone. The file is locked first, so that two that go at once see each other.
  `CREATE FUNCTION attachment_detached() RETURNS trigger LANGUAGE plpgsql AS $$
   BEGIN
     PERFORM FROM attachments a WHERE a.id = OLD.attachment_id FOR UPDATE;
     IF NOT EXISTS (SELECT FROM message_attachments m WHERE m.attachment_id = OLD.attachment_id) THEN
       DELETE FROM attachments a WHERE a.id = OLD.attachment_id AND a.state = 'expired';
       UPDATE attachments a SET state = 'deleted', expires_at = least(a.expires_at, now())
         WHERE a.id = OLD.attachment_id;
     END IF;
     RETURN NULL;
   END $$`,
  `CREATE TRIGGER message_attachments_detached AFTER DELETE ON message_attachments
     FOR EACH ROW EXECUTE FUNCTION attachment_detached()`,

  // Links of messages that are too old to be there: their pages say so.
  `CREATE TABLE gone_messages (
     link_hash bytea PRIMARY KEY,
     project_id text NOT NULL,
     gone_at timestamptz NOT NULL DEFAULT now())`,
  `CREATE INDEX gone_messages_age ON gone_messages (gone_at)`
]

const functions: ReadonlyArray<string> = [
  // 22 base62 characters that follow from message and channel: a delivery cannot be there twice.
  `CREATE FUNCTION delivery_id(message text, channel text) RETURNS text LANGUAGE sql STABLE PARALLEL SAFE AS $$
     SELECT 'dlv_' || left(translate(encode(sha256(convert_to(message || channel, 'UTF8')), 'base64'), '+/', 'Zz'), 22)
   $$`,

  // A row and a job for each active channel of those who have subscribed; answers, for each message, its deliveries
  // and recipients. Of more than so many, one more is there and has no job: the caller undoes it.
  `CREATE FUNCTION deliveries_fan_out(p_owner text, p_messages text[], p_projects text[], p_max integer)
   RETURNS TABLE (message text, deliveries integer, recipients integer, held integer)
   LANGUAGE plpgsql ${planned} AS $$
   #variable_conflict use_column
   DECLARE
     lanes text[];
     ids text[];
     payloads text[];
     messages text[];
     subscribers text[];
   BEGIN
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
     IF cardinality(lanes) <= p_max THEN
       PERFORM jobs_offer('deliveries', lanes, ids, payloads, array_fill(''::text, ARRAY[cardinality(lanes)]));
     END IF;
     RETURN QUERY
       SELECT m.message, count(a.message)::integer, count(DISTINCT a.subscriber)::integer, 0
       FROM unnest(p_messages) AS m(message)
       LEFT JOIN unnest(messages, subscribers) AS a(message, subscriber) ON a.message = m.message
       GROUP BY m.message;
   END $$`,

  // Of deliveries whose turn it is, in one statement: a row each, by its place in the arrays. `channel` is null where
  // it takes nothing any more: it, its subscriber's subscription or the project is gone, or the delivery was dropped. The texts of a message are
  // told where they are asked for, since many deliveries have the same.
  `CREATE FUNCTION deliveries_read(p_messages text[], p_channels text[], p_asked text[])
   RETURNS TABLE (n integer, is_there boolean, channel jsonb, now_millis double precision, message jsonb)
   LANGUAGE plpgsql ${planned} SET enable_hashjoin = off SET enable_mergejoin = off SET enable_bitmapscan = off AS $$
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
         AND d.dropped_at IS NULL;
   END $$`
]

/** Projects, their keys, subscribers with their channels, messages, deliveries. Source: docs/decisions/0030-delivery.md. */
export const notify: PostgresMigration = {
  id: 20,
  name: "notify",
  statements: [...owned, ...subscribed, ...sent, ...files, ...functions]
}
