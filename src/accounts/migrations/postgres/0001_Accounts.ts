import type { PostgresMigration } from "#src/infra/postgres/Migrations.ts"

/**
 * Users, keys, sites, and their data. `changed` is the transaction that last wrote the row: CachedTable.ts finds new rows
 * by it. Rows that are kept in memory are therefore marked first (`deleted_at`, `revoked_at`), and deleted a day later at the
 * earliest.
 */
export const accounts: PostgresMigration = {
  id: 1,
  name: "accounts",
  statements: [
    `CREATE FUNCTION mark_changed() RETURNS trigger LANGUAGE plpgsql AS $$
     BEGIN NEW.changed := pg_current_xact_id(); RETURN NEW; END $$`,

    `CREATE TABLE users (
       id text PRIMARY KEY,
       email text NOT NULL,
       name text NOT NULL,
       role text NOT NULL CHECK (role IN ('user', 'admin')),
       email_verified timestamptz,
       created_at timestamptz NOT NULL DEFAULT now(),
       deleted_at timestamptz,
       changed xid8 NOT NULL DEFAULT pg_current_xact_id())`,
    `CREATE UNIQUE INDEX users_email ON users (lower(email)) WHERE deleted_at IS NULL`,
    `CREATE INDEX users_changed ON users (changed)`,

    `CREATE TABLE keys (
       id text PRIMARY KEY,
       user_id text NOT NULL REFERENCES users (id),
       name text NOT NULL,
       kind text NOT NULL CHECK (kind IN ('account', 'router')),
       prefix text NOT NULL,
       hash bytea NOT NULL UNIQUE CHECK (length(hash) = 32),
       models text[],
       collections text[],
       expires_at timestamptz,
       spend_limit_usd numeric CHECK (spend_limit_usd >= 0),
       rate_limit_per_minute integer CHECK (rate_limit_per_minute > 0),
       created_at timestamptz NOT NULL DEFAULT now(),
       revoked_at timestamptz,
       changed xid8 NOT NULL DEFAULT pg_current_xact_id())`,
    `CREATE INDEX keys_user ON keys (user_id, created_at)`,
    `CREATE INDEX keys_changed ON keys (changed)`,

    `CREATE TABLE sites (
       id text PRIMARY KEY,
       user_id text NOT NULL REFERENCES users (id),
       name text NOT NULL,
       domain text NOT NULL,
       timezone text NOT NULL DEFAULT 'UTC',
       public boolean NOT NULL DEFAULT false,
       secret_prefix text NOT NULL,
       secret_hash bytea NOT NULL UNIQUE CHECK (length(secret_hash) = 32),
       visitor_secret bytea NOT NULL,
       first_event_at timestamptz,
       created_at timestamptz NOT NULL DEFAULT now(),
       deleted_at timestamptz,
       changed xid8 NOT NULL DEFAULT pg_current_xact_id())`,
    `CREATE INDEX sites_user ON sites (user_id, created_at)`,
    `CREATE INDEX sites_changed ON sites (changed)`,

    ...["users", "keys", "sites"].map(
      (table) => `CREATE TRIGGER ${table}_mark_changed BEFORE INSERT OR UPDATE ON ${table}
                  FOR EACH ROW EXECUTE FUNCTION mark_changed()`
    ),

    `CREATE TABLE salts (day date PRIMARY KEY, salt bytea NOT NULL)`,

    `CREATE TABLE files (
       id text PRIMARY KEY,
       user_id text NOT NULL REFERENCES users (id),
       filename text NOT NULL,
       content_type text NOT NULL,
       size bigint NOT NULL CHECK (size >= 0),
       sha256 bytea NOT NULL CHECK (length(sha256) = 32),
       created_at timestamptz NOT NULL DEFAULT now(),
       deleted_at timestamptz)`,
    `CREATE INDEX files_user ON files (user_id, created_at)`,

    `CREATE TABLE request_counts (
       user_id text NOT NULL REFERENCES users (id),
       day date NOT NULL,
       requests bigint NOT NULL DEFAULT 0,
       errors bigint NOT NULL DEFAULT 0,
       PRIMARY KEY (user_id, day))`
  ]
}
