import type { PostgresMigration } from "#src/infra/postgres/Migrations.ts"

/** Plans must not follow statistics, as in `0030_BlobRefers.ts`, which says why. */
const planned = `SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
  SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan`

/** All files of a transaction are written by one call, which looks at a directory once. */
export const fileWrites: PostgresMigration = {
  id: 31,
  name: "file writes",
  statements: [
    // New versions of files of these names, in this order: that in which files are locked. 'written': with its number; 'other':
    // another version is current than `if_versions` says ('': whatever it is; 'none': no file), namely `now_current`; 'gone': the
    // directory is none of the user's. Nothing is written behind one that is not 'written', and all has to be undone.
    // The arbiter of a conflict is the one index that finds a file whatever the planner takes the table for.
    `CREATE FUNCTION file_write_all(by_user text, in_store text, from_source text, new_versions text[], new_groups text[],
       in_directories text[], new_names text[], new_searches text[], of_hashes text[], new_sizes bigint[], new_types text[],
       new_modified timestamptz[], are_encrypted boolean[], new_keys text[], if_versions text[])
     RETURNS TABLE (place bigint, outcome text, of_group text, number integer, now_current text, in_bucket text, at_path text,
       made_at timestamptz) LANGUAGE plpgsql ${planned} AS $$
     DECLARE f record; held directories; before text;
     BEGIN
       FOR f IN SELECT * FROM unnest(new_versions, new_groups, in_directories, new_names, new_searches, of_hashes, new_sizes,
           new_types, new_modified, are_encrypted, new_keys, if_versions) WITH ORDINALITY
           AS u(version, new_group, directory, name, search, hash, size, type, modified, encrypted, key, if_version, place)
       LOOP
         place := f.place; now_current := NULL; made_at := now();
         IF held.id IS DISTINCT FROM f.directory THEN held := file_hold(by_user, f.directory); END IF;
         IF held.id IS NULL THEN
           outcome := 'gone'; RETURN NEXT; RETURN;
         END IF;
         in_bucket := held.bucket_id; at_path := held.path || f.name;
         INSERT INTO file_groups AS g (id, user_id, bucket_id, directory_id, name, path, search_name, current_id, last_version)
           VALUES (f.new_group, by_user, in_bucket, f.directory, f.name, at_path, f.search, f.version, 1)
           ON CONFLICT (bucket_id, path) WHERE trash_id IS NULL DO UPDATE SET last_version = g.last_version + 1
             WHERE f.if_version = '' OR f.if_version = coalesce(g.current_id, 'none')
           RETURNING g.id, g.last_version, g.current_id INTO of_group, number, before;
         IF of_group IS NULL OR (of_group = f.new_group AND f.if_version NOT IN ('', 'none')) THEN
           SELECT g.current_id INTO now_current FROM file_groups g
             WHERE of_group IS NULL AND g.bucket_id = in_bucket AND g.path = at_path AND g.trash_id IS NULL;
           outcome := 'other'; RETURN NEXT; RETURN;
         END IF;
         IF of_group <> f.new_group THEN
           UPDATE file_versions v SET superseded_at = now() WHERE v.id = before;
           UPDATE file_groups g SET current_id = f.version WHERE g.id = of_group;
         END IF;
         INSERT INTO file_versions (id, group_id, user_id, version, original_name, mime_type, size, store, sha256,
             is_encrypted, encryption_key_id, source, modified_at)
           VALUES (f.version, of_group, by_user, number, f.name, f.type, f.size, in_store, decode(f.hash, 'hex'),
             f.encrypted, nullif(f.key, ''), from_source, f.modified);
         outcome := 'written'; now_current := f.version;
         RETURN NEXT;
       END LOOP;
     END $$`,
    `DROP FUNCTION file_write(text, text, text, text, text, text, text, bytea, bigint, text, timestamptz, boolean, text,
       text, text)`
  ]
}
