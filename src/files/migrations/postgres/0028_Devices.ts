import type { PostgresMigration } from "#src/infra/postgres/Migrations.ts"

/** Devices, flags of synchronisation, and logins of the command line. */
export const devices: PostgresMigration = {
  id: 28,
  name: "devices",
  statements: [
    // `key_id`: the key that the device got by logging in, which goes with it. `directory_id`: of the files that were sent to it.
    `CREATE TABLE devices (
       id text PRIMARY KEY,
       user_id text NOT NULL REFERENCES users (id),
       name text NOT NULL,
       platform text NOT NULL CHECK (platform IN ('desktop', 'mobile', 'cli', 'web')),
       sync_root text NOT NULL,
       key_id text REFERENCES keys (id),
       directory_id text REFERENCES directories (id) ON DELETE SET NULL,
       last_seen_at timestamptz NOT NULL,
       created_at timestamptz NOT NULL DEFAULT now(),
       revoked_at timestamptz,
       changed xid8 NOT NULL DEFAULT pg_current_xact_id())`,
    `CREATE INDEX devices_user ON devices (user_id, created_at) WHERE revoked_at IS NULL`,
    `CREATE INDEX devices_directory ON devices (directory_id) WHERE directory_id IS NOT NULL`,
    `CREATE INDEX devices_changed ON devices (changed)`,
    `CREATE TRIGGER devices_mark_changed BEFORE INSERT OR UPDATE ON devices
     FOR EACH ROW EXECUTE FUNCTION mark_changed()`,

    // The resource is a directory or the group of a file. `enabled` false: it and what is below it are left out.
    `CREATE TABLE sync_flags (
       user_id text NOT NULL REFERENCES users (id),
       resource_type text NOT NULL CHECK (resource_type IN ('file', 'directory')),
       resource_id text NOT NULL,
       enabled boolean NOT NULL,
       scope text NOT NULL CHECK (scope IN ('all', 'selected')),
       device_ids text[] NOT NULL,
       created_at timestamptz NOT NULL DEFAULT now(),
       changed xid8 NOT NULL DEFAULT pg_current_xact_id(),
       PRIMARY KEY (user_id, resource_type, resource_id))`,
    `CREATE INDEX sync_flags_resource ON sync_flags (resource_id)`,
    `CREATE TRIGGER sync_flags_mark_changed BEFORE INSERT OR UPDATE ON sync_flags
     FOR EACH ROW EXECUTE FUNCTION mark_changed()`,

    // `hash`: of the token. From `user_id` on a person has let it in, with the rights of `key_id`, null: with all of their own.
    `CREATE TABLE cli_logins (
       hash bytea PRIMARY KEY CHECK (length(hash) = 32),
       name text NOT NULL,
       platform text NOT NULL,
       ends_at timestamptz NOT NULL,
       user_id text REFERENCES users (id),
       key_id text REFERENCES keys (id),
       scopes text[])`,
    `CREATE INDEX cli_logins_ends ON cli_logins (ends_at)`
  ]
}
