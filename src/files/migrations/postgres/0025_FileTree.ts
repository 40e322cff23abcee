import type { PostgresMigration } from "#src/infra/postgres/Migrations.ts"
import { fileTreeFunctions } from "./FileTreeFunctions.ts"

/**
 * A tree of directories for each user, files in them, and versions of files. Paths are within a bucket, in byte order, so that all
 * that is below a directory is one range: `a/b/` and what begins with it.
 */
export const fileTree: PostgresMigration = {
  id: 25,
  name: "file tree",
  statements: [
    // `path`: '' of a bucket, else with a slash at its end. `version_days`: of buckets; null: versions are kept for ever.
    // `trash_id`: the entry of the trash that it went with. What is in the trash may be in a directory that is gone.
    `CREATE TABLE directories (
       id text PRIMARY KEY,
       user_id text NOT NULL REFERENCES users (id),
       bucket_id text NOT NULL,
       parent_id text,
       name text COLLATE "C" NOT NULL,
       path text COLLATE "C" NOT NULL,
       kind text NOT NULL DEFAULT 'plain' CHECK (kind IN ('plain', 'inbox', 'device')),
       version_days integer DEFAULT 90 CHECK (version_days >= 0),
       required_replicas integer CHECK (required_replicas >= 0),
       created_at timestamptz NOT NULL DEFAULT now(),
       modified_at timestamptz NOT NULL DEFAULT now(),
       trash_id text,
       changed xid8 NOT NULL DEFAULT pg_current_xact_id())`,
    `CREATE UNIQUE INDEX directories_name ON directories (user_id, coalesce(parent_id, ''), name) WHERE trash_id IS NULL`,
    `CREATE INDEX directories_path ON directories (bucket_id, path) WHERE trash_id IS NULL`,
    `CREATE INDEX directories_trash ON directories (trash_id) WHERE trash_id IS NOT NULL`,
    `CREATE INDEX directories_changed ON directories (user_id, changed)`,

    // A file: its name and place, whatever its version is. `path` has its name at the end. `search_name`: the name as searches
    // compare it.
    `CREATE TABLE file_groups (
       id text PRIMARY KEY,
       user_id text NOT NULL REFERENCES users (id),
       bucket_id text NOT NULL,
       directory_id text NOT NULL,
       name text COLLATE "C" NOT NULL,
       path text COLLATE "C" NOT NULL,
       search_name text NOT NULL,
       current_id text,
       last_version integer NOT NULL DEFAULT 0,
       created_at timestamptz NOT NULL DEFAULT now(),
       trash_id text,
       changed xid8 NOT NULL DEFAULT pg_current_xact_id())`,
    `CREATE UNIQUE INDEX file_groups_path ON file_groups (bucket_id, path) WHERE trash_id IS NULL`,
    `CREATE INDEX file_groups_directory ON file_groups (directory_id, name) WHERE trash_id IS NULL`,
    `CREATE INDEX file_groups_trash ON file_groups (trash_id) WHERE trash_id IS NOT NULL`,
    `CREATE INDEX file_groups_changed ON file_groups (user_id, changed)`,

    // `modified_at`: the file's own time. `superseded_at`: since when another version is current.
    `CREATE TABLE file_versions (
       id text PRIMARY KEY,
       group_id text NOT NULL REFERENCES file_groups (id),
       user_id text NOT NULL,
       version integer NOT NULL CHECK (version > 0),
       original_name text NOT NULL,
       mime_type text NOT NULL,
       size bigint NOT NULL CHECK (size >= 0),
       store text NOT NULL,
       sha256 bytea NOT NULL CHECK (length(sha256) = 32),
       is_encrypted boolean NOT NULL DEFAULT false,
       encryption_key_id text,
       source text NOT NULL,
       modified_at timestamptz NOT NULL,
       created_at timestamptz NOT NULL DEFAULT now(),
       superseded_at timestamptz,
       UNIQUE (group_id, version))`,
    `CREATE INDEX file_versions_superseded ON file_versions (superseded_at) WHERE superseded_at IS NOT NULL`,

    // `path`: where it was, from the bucket on. `size`: bytes of all versions of it and of what is below it. `is_ended`: it
    // cannot be restored any more, and its rows go one batch after the other.
    `CREATE TABLE file_trash (
       id text PRIMARY KEY,
       user_id text NOT NULL REFERENCES users (id),
       kind text NOT NULL CHECK (kind IN ('file', 'directory')),
       item_id text NOT NULL,
       name text NOT NULL,
       path text NOT NULL,
       size bigint NOT NULL,
       trashed_at timestamptz NOT NULL DEFAULT now(),
       is_ended boolean NOT NULL DEFAULT false)`,
    `CREATE INDEX file_trash_user ON file_trash (user_id, trashed_at)`,
    `CREATE INDEX file_trash_age ON file_trash (trashed_at)`,
    `CREATE INDEX file_trash_ended ON file_trash (id) WHERE is_ended`,

    // Bytes that the user may have; null: as many as the server gives everyone.
    `ALTER TABLE users ADD COLUMN storage_quota_bytes bigint CHECK (storage_quota_bytes >= 0)`,

    ...["directories", "file_groups"].map(
      (table) => `CREATE TRIGGER ${table}_mark_changed BEFORE INSERT OR UPDATE ON ${table}
                  FOR EACH ROW EXECUTE FUNCTION mark_changed()`
    ),
    ...fileTreeFunctions
  ]
}
