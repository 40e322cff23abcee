import type { PostgresMigration } from "#src/infra/postgres/Migrations.ts"

/** Complete uploads that become no file are tried less and less often: see src/files/uploads/Uploads.ts. */
export const uploadTries: PostgresMigration = {
  id: 32,
  name: "tries of uploads",
  statements: [
    // When a sweep tried last to make a file of it; null: none has.
    `ALTER TABLE uploads ADD COLUMN tried_at timestamptz`
  ]
}
