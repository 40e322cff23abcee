import type { PostgresMigration } from "#src/infra/postgres/Migrations.ts"

/** Checksums of blobs beside their hash: see src/infra/blobs/BlobStore.ts. */
export const blobSums: PostgresMigration = {
  id: 29,
  name: "blob sums",
  // CRC-32 of all bytes, as of gzip; null: nothing has computed it yet.
  statements: [`ALTER TABLE blobs ADD COLUMN crc32 bigint CHECK (crc32 BETWEEN 0 AND 4294967295)`]
}
