import type { PostgresMigration } from "#src/infra/postgres/Migrations.ts"

/** Dropped events by name too, where the reason has names: which bot it was. '' is all that has none. */
export const namedDrops: PostgresMigration = {
  id: 4,
  name: "named drops",
  statements: [
    `ALTER TABLE drops ADD COLUMN name text NOT NULL DEFAULT ''`,
    `ALTER TABLE drops DROP CONSTRAINT drops_pkey`,
    `ALTER TABLE drops ADD PRIMARY KEY (site, day, reason, name)`
  ]
}
