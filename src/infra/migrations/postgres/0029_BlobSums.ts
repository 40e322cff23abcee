import type { PostgresMigration } from "#src/infra/postgres/Migrations.ts"

/** Checksums of blobs beside their hash: see src/infra/blobs/BlobStore.ts. */
export const blobSums: PostgresMigration = {
  id: 29,
  name: "blob sums",
  statements: []
}
