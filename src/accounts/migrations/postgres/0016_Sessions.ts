import type { PostgresMigration } from "#src/infra/postgres/Migrations.ts"

/** Scopes of account keys, sessions of people in browsers, and links that open one. */
export const sessions: PostgresMigration = {
  id: 16,
  name: "sessions",
  statements: [
    `ALTER TABLE keys ADD COLUMN scopes text[] NOT NULL DEFAULT '{full}'`,
    `UPDATE keys SET scopes = '{}' WHERE kind = 'router'`,

    // `key_id` is null where a link opened it. An index on `used_at` would cost with every use.
    `CREATE TABLE web_sessions (
       id text PRIMARY KEY,
       user_id text NOT NULL REFERENCES users (id),
       key_id text REFERENCES keys (id),
       hash bytea NOT NULL UNIQUE CHECK (length(hash) = 32),
       created_at timestamptz NOT NULL,
       used_at timestamptz NOT NULL,
       ends_at timestamptz NOT NULL,
       ended_at timestamptz,
       changed xid8 NOT NULL DEFAULT pg_current_xact_id())`,
    `CREATE INDEX web_sessions_user ON web_sessions (user_id) WHERE ended_at IS NULL`,
    `CREATE INDEX web_sessions_changed ON web_sessions (changed)`,
    `CREATE TRIGGER web_sessions_mark_changed BEFORE INSERT OR UPDATE ON web_sessions
     FOR EACH ROW EXECUTE FUNCTION mark_changed()`,

    `CREATE TABLE login_links (
       hash bytea PRIMARY KEY CHECK (length(hash) = 32),
       user_id text NOT NULL REFERENCES users (id),
       ends_at timestamptz NOT NULL)`,
    `CREATE INDEX login_links_user ON login_links (user_id, ends_at)`,
    `CREATE INDEX login_links_ends ON login_links (ends_at)`,

    // Those that a link opened have no key: what they pay for names the session.
    `ALTER TABLE IF EXISTS agent_sessions DROP CONSTRAINT IF EXISTS agent_sessions_key_id_fkey`
  ]
}
