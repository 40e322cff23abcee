import type { PostgresMigration } from "#src/infra/postgres/Migrations.ts"

/** Checksums of blobs beside their hash: see src/infra/blobs/BlobStore.ts. */
export const blobSums: PostgresMigration = {
  id: 29,
  name: "blob sums",
  statements: [
    // CRC-32 of all bytes, as of gzip; null: nothing has computed it yet.
    `ALTER TABLE blobs ADD COLUMN crc32 bigint CHECK (crc32 BETWEEN 0 AND 4294967295)`,

    // The bytes of a short blob that has no file; random ones are not worth compressing.
    `ALTER TABLE blobs ADD COLUMN bytes bytea CHECK (length(bytes) = size)`,
    `ALTER TABLE blobs ALTER COLUMN bytes SET STORAGE EXTERNAL`,

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
     END $$`,

    // Records refer to blobs. The row of one that has just come, with its sum, is written here, else it is there. Rows are
    // locked in the order of their hashes, the user's sum behind them. Bytes that the rows themselves have are in `all_bytes`,
    // each behind as many as its place says; -1: they are in a file.
    `CREATE FUNCTION blob_refer(in_store text, refs text[], hashes text[], sizes bigint[], sums bigint[], places integer[],
         all_bytes bytea, by_user text, in_pool text, from_source text, until timestamptz) RETURNS void
         LANGUAGE plpgsql AS $$
     BEGIN
       INSERT INTO blobs AS b (store, sha256, size, crc32, bytes, unreferenced_at)
         SELECT DISTINCT ON (hash, place < 0) in_store, decode(hash, 'hex'), size, crc,
           CASE WHEN place >= 0 THEN substring(all_bytes FROM place + 1 FOR size::integer) END, NULL::timestamptz
         FROM unnest(hashes, sizes, sums, places) AS g(hash, size, crc, place)
         WHERE crc >= 0 AND NOT (place >= 0 AND EXISTS (
           SELECT 1 FROM unnest(hashes, sums, places) AS f(hash, crc, place)
           WHERE f.hash = g.hash AND f.crc >= 0 AND f.place < 0))
         ORDER BY hash
         ON CONFLICT (store, sha256) DO UPDATE SET unreferenced_at = NULL, checked_at = now(), damaged = false,
           crc32 = excluded.crc32, bytes = coalesce(b.bytes, excluded.bytes);
       PERFORM 1 FROM blobs b WHERE b.store = in_store
         AND b.sha256 IN (SELECT decode(hash, 'hex') FROM unnest(hashes) AS g(hash)) ORDER BY b.sha256 FOR UPDATE;
       UPDATE blobs b SET unreferenced_at = NULL WHERE b.store = in_store AND b.unreferenced_at IS NOT NULL
         AND b.sha256 IN (SELECT decode(hash, 'hex') FROM unnest(hashes) AS g(hash));
       WITH made AS (
         INSERT INTO blob_refs (ref, store, sha256, user_id, pool, source, expires_at)
           SELECT g.ref, b.store, b.sha256, by_user, in_pool, from_source, until
           FROM unnest(refs, hashes) AS g(ref, hash)
           JOIN blobs b ON b.store = in_store AND b.sha256 = decode(g.hash, 'hex')
         RETURNING sha256)
       INSERT INTO blob_usage AS u (user_id, pool, bytes)
         SELECT by_user, in_pool, coalesce(sum(b.size), 0) FROM made
         JOIN blobs b ON b.store = in_store AND b.sha256 = made.sha256
         ON CONFLICT (user_id, pool) DO UPDATE SET bytes = u.bytes + excluded.bytes;
     END $$`,

    // The same order as blob_refer's, so that two transactions with several blobs do not wait for each other.
    `CREATE FUNCTION blob_release_all(gone text[]) RETURNS void LANGUAGE plpgsql AS $$
     BEGIN
       PERFORM 1 FROM blobs b WHERE (b.store, b.sha256) IN
         (SELECT r.store, r.sha256 FROM blob_refs r WHERE r.ref = ANY (gone)) ORDER BY b.store, b.sha256 FOR UPDATE;
       PERFORM 1 FROM blob_usage u WHERE (u.user_id, u.pool) IN
         (SELECT r.user_id, r.pool FROM blob_refs r WHERE r.ref = ANY (gone)) ORDER BY u.user_id, u.pool FOR UPDATE;
       WITH removed AS (DELETE FROM blob_refs r WHERE r.ref = ANY (gone) RETURNING r.store, r.sha256, r.user_id, r.pool),
         less AS (
           SELECT d.user_id, d.pool, sum(b.size) AS bytes FROM removed d
           JOIN blobs b ON b.store = d.store AND b.sha256 = d.sha256 GROUP BY d.user_id, d.pool),
         counted AS (
           UPDATE blob_usage u SET bytes = u.bytes - less.bytes FROM less
           WHERE u.user_id = less.user_id AND u.pool = less.pool)
       UPDATE blobs b SET unreferenced_at = now()
         FROM (SELECT DISTINCT store, sha256 FROM removed) d
         WHERE b.store = d.store AND b.sha256 = d.sha256
           AND NOT EXISTS (SELECT 1 FROM blob_refs r WHERE r.store = b.store AND r.sha256 = b.sha256
             AND NOT r.ref = ANY (gone));
     END $$`
  ]
}
