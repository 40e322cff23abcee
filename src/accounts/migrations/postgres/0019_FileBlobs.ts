import type { PostgresMigration } from "#src/infra/postgres/Migrations.ts"

/**
 * The bytes of account files are blobs. `store`: the one that has them; null until they are adopted from the directory of
 * before. A file is gone when it was deleted, and from its expiry on.
 */
export const fileBlobs: PostgresMigration = {
  id: 19,
  name: "file blobs",
  statements: [
    `ALTER TABLE files
       ADD COLUMN store text REFERENCES blob_stores (id),
       ADD COLUMN source text NOT NULL DEFAULT 'upload',
       ADD COLUMN expires_at timestamptz,
       ADD COLUMN gone_at timestamptz GENERATED ALWAYS AS (least(deleted_at, expires_at)) STORED`,
    `CREATE INDEX files_gone ON files (gone_at) WHERE gone_at IS NOT NULL`
  ]
}
