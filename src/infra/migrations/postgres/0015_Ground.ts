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
       created_at timestamptz NOT NULL DEFAULT now())`,

    // Server processes, by a name that is new with every start; with the address of those that are in a cluster.
    `CREATE TABLE processes (
       id text PRIMARY KEY,
       started_at timestamptz NOT NULL,
       alive_at timestamptz NOT NULL DEFAULT clock_timestamp(),
       host text,
       port integer)`,
    `INSERT INTO processes (id, started_at, alive_at) SELECT id, heartbeat_at, heartbeat_at FROM agent_owners`,
    `DROP TABLE agent_owners`
  ]
}
