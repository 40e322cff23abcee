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
     END $$`,

    // The reservation of an upload under way becomes `needed`, or more where the quota has room, at most `wanted`. Null: there
    // is no such upload. Less than `needed`: the quota has no room for it.
    `CREATE FUNCTION blob_grow(upload text, needed bigint, wanted bigint, quota bigint) RETURNS bigint
       LANGUAGE plpgsql AS $$
     DECLARE mine record; taken bigint; granted bigint := wanted;
     BEGIN
       SELECT u.user_id, u.pool INTO mine FROM blob_uploads u WHERE u.id = upload AND u.expires_at > now();
       IF NOT FOUND THEN RETURN NULL; END IF;
       IF quota IS NOT NULL THEN
         INSERT INTO blob_usage AS u (user_id, pool) VALUES (mine.user_id, mine.pool)
           ON CONFLICT (user_id, pool) DO UPDATE SET bytes = u.bytes RETURNING u.bytes INTO taken;
         taken := taken + (SELECT coalesce(sum(u.reserved), 0) FROM blob_uploads u
           WHERE u.user_id = mine.user_id AND u.pool = mine.pool AND u.id <> upload AND u.expires_at > now());
         granted := least(wanted, quota - taken);
         IF granted < needed THEN RETURN granted; END IF;
       END IF;
       UPDATE blob_uploads u SET reserved = granted WHERE u.id = upload;
       RETURN granted;
     END $$`
  ]
}
