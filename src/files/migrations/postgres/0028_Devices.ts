import type { PostgresMigration } from "#src/infra/postgres/Migrations.ts"

/** Devices, flags of synchronisation, and logins of the command line. */
export const devices: PostgresMigration = {
  id: 28,
  name: "devices",
  statements: []
}
