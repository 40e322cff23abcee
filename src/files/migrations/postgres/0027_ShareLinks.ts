import type { PostgresMigration } from "#src/infra/postgres/Migrations.ts"

/** Share links, and the uses of them. */
export const shareLinks: PostgresMigration = {
  id: 27,
  name: "share links",
  statements: []
}
