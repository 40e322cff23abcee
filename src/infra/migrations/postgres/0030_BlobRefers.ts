import type { PostgresMigration } from "#src/infra/postgres/Migrations.ts"

/**
 * Plans of this function must not follow statistics: the first files of a server come while its tables are not analysed,
 * and each of them read the whole index of another column then.
 */
const planned = `SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
  SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan`

/** References to new blobs take three statements, and look at no row but theirs. */
export const blobRefers: PostgresMigration = {
  id: 30,
  name: "blob refers",
  statements: [
    // As before: rows are locked in the order of their hashes, the user's sum behind them. `-1` as a sum: the blob is there.
    `CREATE OR REPLACE FUNCTION blob_refer(in_store text, refs text[], hashes text[], sizes bigint[], sums bigint[],
       places integer[], all_bytes bytea, by_user text, in_pool text, from_source text, until timestamptz) RETURNS void
       LANGUAGE plpgsql ${planned} AS $$
     BEGIN
       INSERT INTO blobs AS b (store, sha256, size, crc32, bytes, unreferenced_at)
         SELECT DISTINCT ON (hash, place < 0) in_store, decode(hash, 'hex'), size, crc,
           CASE WHEN place >= 0 THEN substring(all_bytes FROM place + 1 FOR size::integer) END, NULL::timestamptz
         FROM unnest(hashes, sizes, sums, places) AS g(hash, size, crc, place)
         WHERE crc >= 0 AND NOT (place >= 0 AND -1 = ANY (places) AND EXISTS (
           SELECT 1 FROM unnest(hashes, sums, places) AS f(hash, crc, place)
           WHERE f.hash = g.hash AND f.crc >= 0 AND f.place < 0))
         ORDER BY hash
         ON CONFLICT (store, sha256) DO UPDATE SET unreferenced_at = NULL, checked_at = now(), damaged = false,
           crc32 = excluded.crc32, bytes = coalesce(excluded.bytes, b.bytes);
       IF -1 = ANY (sums) THEN
         PERFORM 1 FROM blobs b WHERE b.store = in_store
           AND b.sha256 IN (SELECT decode(hash, 'hex') FROM unnest(hashes) AS g(hash)) ORDER BY b.sha256 FOR UPDATE;
         UPDATE blobs b SET unreferenced_at = NULL WHERE b.store = in_store AND b.unreferenced_at IS NOT NULL
           AND b.sha256 IN (SELECT decode(hash, 'hex') FROM unnest(hashes) AS g(hash));
       END IF;
       INSERT INTO blob_refs (ref, store, sha256, user_id, pool, source, expires_at)
         SELECT g.ref, in_store, decode(g.hash, 'hex'), by_user, in_pool, from_source, until
         FROM unnest(refs, hashes) AS g(ref, hash);
       INSERT INTO blob_usage AS u (user_id, pool, bytes)
         SELECT by_user, in_pool, coalesce(sum(g.size), 0) FROM unnest(sizes) AS g(size)
         ON CONFLICT (user_id, pool) DO UPDATE SET bytes = u.bytes + excluded.bytes;
     END $$`
  ]
}
