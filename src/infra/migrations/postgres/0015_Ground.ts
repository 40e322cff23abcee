import type { PostgresMigration } from "#src/infra/postgres/Migrations.ts"

/** Tables of services that all rooms share. */
export const ground: PostgresMigration = {
  id: 15,
  name: "ground",
  statements: [
    // Keys that sign and encrypt. No CHECK: Postgres would put the bytes of a refused row into its error.
    `CREATE TABLE secrets (
       name text PRIMARY KEY,
       bytes bytea NOT NULL,
       created_at timestamptz NOT NULL DEFAULT now())`
  ]
}
