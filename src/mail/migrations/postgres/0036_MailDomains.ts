import type { PostgresMigration } from "#src/infra/postgres/Migrations.ts"

/** Domains that mail is sent from, with their DKIM keys. */
export const mailDomains: PostgresMigration = {
  id: 36,
  name: "mail domains",
  statements: [
    // Private keys are sealed. No CHECK: Postgres would put the bytes of a refused row into its error.
    `CREATE TABLE mail_domains (
       id text COLLATE "C" PRIMARY KEY,
       user_id text NOT NULL REFERENCES users (id),
       name text COLLATE "C" NOT NULL,
       selector text NOT NULL,
       public_key text NOT NULL,
       private_key bytea NOT NULL,
       next_public_key text,
       next_private_key bytea,
       retired_at timestamptz,
       verified_at timestamptz,
       unverified_at timestamptz NOT NULL DEFAULT now(),
       looked_up_at timestamptz,
       findings jsonb NOT NULL DEFAULT '{}',
       created_at timestamptz NOT NULL DEFAULT now(),
       deleted_at timestamptz,
       changed xid8 NOT NULL DEFAULT pg_current_xact_id())`,
    `CREATE UNIQUE INDEX mail_domains_names ON mail_domains (user_id, name) WHERE deleted_at IS NULL`,
    `CREATE UNIQUE INDEX mail_domains_verified ON mail_domains (name)
       WHERE verified_at IS NOT NULL AND deleted_at IS NULL`,
    `CREATE INDEX mail_domains_looks ON mail_domains (looked_up_at) WHERE deleted_at IS NULL`,
    `CREATE INDEX mail_domains_changed ON mail_domains (changed)`,
    `CREATE TRIGGER mail_domains_mark_changed BEFORE INSERT OR UPDATE ON mail_domains
       FOR EACH ROW EXECUTE FUNCTION mark_changed()`
  ]
}
