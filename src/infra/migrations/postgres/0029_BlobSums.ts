import type { PostgresMigration } from "#src/infra/postgres/Migrations.ts"

/** Checksums of blobs beside their hash: see src/infra/blobs/BlobStore.ts. */
export const blobSums: PostgresMigration = {
  id: 29,
  name: "blob sums",
  statements: [
    // CRC-32 of all bytes, as of gzip; null: nothing has computed it yet.
    `ALTER TABLE blobs ADD COLUMN crc32 bigint CHECK (crc32 BETWEEN 0 AND 4294967295)`,

    // A record refers to a blob from now on: see BlobIndex.ts. The blob's row is locked by it, then the user's sum.
    `CREATE FUNCTION blob_refer(new_ref text, in_store text, of_sha256 bytea, by_user text, in_pool text, from_source text,
         until timestamptz) RETURNS void LANGUAGE plpgsql AS $$
     BEGIN
       WITH found AS (
           UPDATE blobs SET unreferenced_at = NULL WHERE store = in_store AND sha256 = of_sha256
           RETURNING store, sha256, size),
         made AS (INSERT INTO blob_refs (ref, store, sha256, user_id, pool, source, expires_at)
           SELECT new_ref, store, sha256, by_user, in_pool, from_source, until FROM found)
       INSERT INTO blob_usage AS u (user_id, pool, bytes) SELECT by_user, in_pool, size FROM found
       ON CONFLICT (user_id, pool) DO UPDATE SET bytes = u.bytes + excluded.bytes;
     END $$`
  ]
}
