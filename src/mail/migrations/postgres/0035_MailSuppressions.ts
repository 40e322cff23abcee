import type { PostgresMigration } from "#src/infra/postgres/Migrations.ts"

/** Addresses that an owner sends nothing to, or no bulk mail. */
export const suppressions: PostgresMigration = {
  id: 35,
  name: "mail-suppressions",
  statements: [
    // `pattern`: an address in lower case, or `*@` and a domain.
    `CREATE TABLE mail_suppressions (
       id text COLLATE "C" PRIMARY KEY,
       user_id text NOT NULL,
       pattern text COLLATE "C" NOT NULL,
       scope text COLLATE "C" NOT NULL CHECK (scope IN ('all', 'bulk')),
       reason text NOT NULL CHECK (reason IN ('hard_bounce', 'complaint', 'manual', 'unsubscribe')),
       note text,
       created_at timestamptz NOT NULL DEFAULT now(),
       UNIQUE (user_id, pattern, scope))`,
    `CREATE INDEX mail_suppressions_newest ON mail_suppressions (user_id, created_at, id)`
  ]
}
