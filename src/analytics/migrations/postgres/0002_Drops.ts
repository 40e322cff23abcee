import type { PostgresMigration } from "#src/infra/postgres/Migrations.ts"

/** Events that were sent and dropped: how many, by site, UTC day and reason. */
export const drops: PostgresMigration = {
  id: 2,
  name: "drops",
  statements: [
    `CREATE TABLE drops (
       site text NOT NULL REFERENCES sites (id),
       day date NOT NULL,
       reason text NOT NULL,
       count bigint NOT NULL CHECK (count >= 0),
       PRIMARY KEY (site, day, reason))`
  ]
}
