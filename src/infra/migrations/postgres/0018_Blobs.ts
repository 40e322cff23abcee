import type { PostgresMigration } from "#src/infra/postgres/Migrations.ts"

/** Bytes by their content: see src/infra/blobs/BlobStore.ts. */
export const blobs: PostgresMigration = {
  id: 18,
  name: "blobs",
  statements: [
    // A directory of blobs, by the id in it. Files that were there before this database knew it are not this database's.
    `CREATE TABLE blob_stores (
       id text PRIMARY KEY,
       created_at timestamptz NOT NULL DEFAULT now())`,

    // `unreferenced_at`: since when nothing refers to it; null while something does. `checked_at`: its bytes were last
    // seen to have the hash. `damaged`: they were missing, or had another one.
    `CREATE TABLE blobs (
       store text NOT NULL REFERENCES blob_stores (id),
       sha256 bytea NOT NULL CHECK (length(sha256) = 32),
       size bigint NOT NULL CHECK (size >= 0),
       created_at timestamptz NOT NULL DEFAULT now(),
       unreferenced_at timestamptz DEFAULT now(),
       checked_at timestamptz NOT NULL DEFAULT now(),
       damaged boolean NOT NULL DEFAULT false,
       PRIMARY KEY (store, sha256))`,
    `CREATE INDEX blobs_unreferenced ON blobs (store, unreferenced_at) WHERE unreferenced_at IS NOT NULL`,
    `CREATE INDEX blobs_checked ON blobs (store, checked_at)`,
    `CREATE INDEX blobs_damaged ON blobs (store) WHERE damaged`,

    // `ref`: the record that refers to the blob, such as 'file fil_…'. `source`: the part of the server it came from.
    `CREATE TABLE blob_refs (
       ref text PRIMARY KEY,
       store text NOT NULL,
       sha256 bytea NOT NULL,
       user_id text NOT NULL REFERENCES users (id),
       source text NOT NULL,
       expires_at timestamptz,
       created_at timestamptz NOT NULL DEFAULT now(),
       FOREIGN KEY (store, sha256) REFERENCES blobs (store, sha256))`,
    `CREATE INDEX blob_refs_blob ON blob_refs (store, sha256)`,
    `CREATE INDEX blob_refs_expiry ON blob_refs (expires_at) WHERE expires_at IS NOT NULL`,

    // Bytes of a user: each reference counts, as users see no one else's.
    `CREATE TABLE blob_usage (
       user_id text PRIMARY KEY REFERENCES users (id),
       bytes bigint NOT NULL DEFAULT 0 CHECK (bytes >= 0))`,

    // Bytes on their way. A reservation whose upload died ends by itself. `written`: durable in the upload's file, which
    // `file` names; `epoch`: the request that appends, so that a later one ends the earlier; `busy`: that one has not
    // ended, and may be writing.
    `CREATE TABLE blob_uploads (
       id text PRIMARY KEY,
       store text NOT NULL REFERENCES blob_stores (id),
       user_id text NOT NULL REFERENCES users (id),
       reserved bigint NOT NULL CHECK (reserved >= 0),
       written bigint NOT NULL DEFAULT 0 CHECK (written >= 0),
       epoch integer NOT NULL DEFAULT 0,
       file integer NOT NULL DEFAULT 0,
       busy boolean NOT NULL DEFAULT false,
       expires_at timestamptz NOT NULL)`,
    `CREATE INDEX blob_uploads_user ON blob_uploads (user_id)`,
    `CREATE INDEX blob_uploads_expiry ON blob_uploads (store, expires_at)`,

    // False: with what the user has and what is on its way it would be more than the quota. The sum is taken in a statement
    // behind the one that locks, so that it has the uploads that were begun meanwhile.
    `CREATE FUNCTION blob_reserve(new_id text, in_store text, by_user text, size bigint, kept_millis double precision,
         quota bigint) RETURNS boolean LANGUAGE plpgsql AS $$
     DECLARE taken bigint;
     BEGIN
       IF quota IS NOT NULL THEN
         INSERT INTO blob_usage AS u (user_id) VALUES (by_user)
           ON CONFLICT (user_id) DO UPDATE SET bytes = u.bytes RETURNING u.bytes INTO taken;
         taken := taken + (SELECT coalesce(sum(reserved), 0) FROM blob_uploads
           WHERE user_id = by_user AND expires_at > now());
         IF taken + size > quota THEN RETURN false; END IF;
       END IF;
       INSERT INTO blob_uploads (id, store, user_id, reserved, expires_at)
         VALUES (new_id, in_store, by_user, size, now() + kept_millis * interval '1 millisecond');
       RETURN true;
     END $$`,

    // A record is gone; false where it refers to nothing. The blob's row is locked first, so that two records that go at
    // once see each other.
    `CREATE FUNCTION blob_release(gone text) RETURNS boolean LANGUAGE plpgsql AS $$
     DECLARE blob record; bytes_less bigint;
     BEGIN
       SELECT r.store, r.sha256 INTO blob FROM blob_refs r WHERE r.ref = gone;
       IF blob.sha256 IS NULL THEN RETURN false; END IF;
       SELECT b.size INTO bytes_less FROM blobs b
         WHERE b.store = blob.store AND b.sha256 = blob.sha256 FOR UPDATE;
       WITH removed AS (DELETE FROM blob_refs r WHERE r.ref = gone RETURNING r.user_id)
         UPDATE blob_usage u SET bytes = u.bytes - bytes_less FROM removed WHERE u.user_id = removed.user_id;
       IF NOT FOUND THEN RETURN false; END IF;
       UPDATE blobs b SET unreferenced_at = now()
         WHERE b.store = blob.store AND b.sha256 = blob.sha256
           AND NOT EXISTS (SELECT 1 FROM blob_refs r WHERE r.store = b.store AND r.sha256 = b.sha256);
       RETURN true;
     END $$`
  ]
}
