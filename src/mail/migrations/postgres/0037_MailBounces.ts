import type { PostgresMigration } from "#src/infra/postgres/Migrations.ts"

/** Reports on deliveries that came back, and deliveries that are tried anew. */
export const mailBounces: PostgresMigration = {
  id: 37,
  name: "mail bounces",
  statements: [
    // `attempt`: the number of attempts by then, so that a report that comes twice is one, and those of another try are others.
    `CREATE TABLE mail_bounces (
       delivery_id text COLLATE "C" NOT NULL,
       attempt integer NOT NULL,
       type text NOT NULL CHECK (type IN ('hard', 'soft', 'complaint')),
       detail text NOT NULL,
       received_at timestamptz NOT NULL DEFAULT now(),
       PRIMARY KEY (delivery_id, attempt, type))`,

    // The time for which a delivery is tried counts from here where it was asked for again.
    `ALTER TABLE mail_deliveries ADD COLUMN retried_at timestamptz`,

    // An address in another case is the same one.
    `DROP INDEX mail_deliveries_address`,
    `CREATE INDEX mail_deliveries_address ON mail_deliveries (user_id, lower(address))`
  ]
}
