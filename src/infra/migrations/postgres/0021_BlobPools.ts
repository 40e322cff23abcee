import type { PostgresMigration } from "#src/infra/postgres/Migrations.ts"

/** A user's bytes count for one of several quotas, each with a sum of its own: see src/infra/blobs/BlobIndex.ts. */
export const blobPools: PostgresMigration = {
  id: 21,
  name: "blob pools",
  statements: [
    `ALTER TABLE blob_refs ADD COLUMN pool text NOT NULL DEFAULT 'files'`,
    `ALTER TABLE blob_uploads ADD COLUMN pool text NOT NULL DEFAULT 'files'`,
    `ALTER TABLE blob_usage ADD COLUMN pool text NOT NULL DEFAULT 'files',
       DROP CONSTRAINT blob_usage_pkey, ADD PRIMARY KEY (user_id, pool)`,

    // As in 0018_Blobs.ts, for one of the user's quotas.
    `DROP FUNCTION blob_reserve(text, text, text, bigint, double precision, bigint)`,
    `CREATE FUNCTION blob_reserve(new_id text, in_store text, by_user text, in_pool text, size bigint,
         kept_millis double precision, quota bigint) RETURNS boolean LANGUAGE plpgsql AS $$
     DECLARE taken bigint;
     BEGIN
       IF quota IS NOT NULL THEN
         INSERT INTO blob_usage AS u (user_id, pool) VALUES (by_user, in_pool)
           ON CONFLICT (user_id, pool) DO UPDATE SET bytes = u.bytes RETURNING u.bytes INTO taken;
         taken := taken + (SELECT coalesce(sum(reserved), 0) FROM blob_uploads
           WHERE user_id = by_user AND pool = in_pool AND expires_at > now());
         IF taken + size > quota THEN RETURN false; END IF;
       END IF;
       INSERT INTO blob_uploads (id, store, user_id, pool, reserved, expires_at)
         VALUES (new_id, in_store, by_user, in_pool, size, now() + kept_millis * interval '1 millisecond');
       RETURN true;
     END $$`,
    `CREATE OR REPLACE FUNCTION blob_release(gone text) RETURNS boolean LANGUAGE plpgsql AS $$
     DECLARE blob record; bytes_less bigint;
     BEGIN
       SELECT r.store, r.sha256 INTO blob FROM blob_refs r WHERE r.ref = gone;
       IF blob.sha256 IS NULL THEN RETURN false; END IF;
       SELECT b.size INTO bytes_less FROM blobs b
         WHERE b.store = blob.store AND b.sha256 = blob.sha256 FOR UPDATE;
       WITH removed AS (DELETE FROM blob_refs r WHERE r.ref = gone RETURNING r.user_id, r.pool)
         UPDATE blob_usage u SET bytes = u.bytes - bytes_less FROM removed
           WHERE u.user_id = removed.user_id AND u.pool = removed.pool;
       IF NOT FOUND THEN RETURN false; END IF;
       UPDATE blobs b SET unreferenced_at = now()
         WHERE b.store = blob.store AND b.sha256 = blob.sha256
           AND NOT EXISTS (SELECT 1 FROM blob_refs r WHERE r.store = b.store AND r.sha256 = b.sha256);
       RETURN true;
     END $$`
  ]
}
