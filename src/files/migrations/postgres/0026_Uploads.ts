import type { PostgresMigration } from "#src/infra/postgres/Migrations.ts"

/** Resumable uploads. */
export const uploads: PostgresMigration = {
  id: 26,
  name: "resumable uploads",
  statements: []
}
