/**
 * Writes of a tree take locks in this order, so that none waits for another in a circle: buckets (shared by those that add to a
 * bucket, alone by those that move or remove something in it), files by their paths, blobs by their hashes, sums of users.
 */
export const fileTreeFunctions: ReadonlyArray<string> = [
  // The lock's numbers: the migration that made it, and the bucket.
  `CREATE FUNCTION file_lock(bucket text, alone boolean) RETURNS void LANGUAGE plpgsql AS $$
   BEGIN
     IF alone THEN PERFORM pg_advisory_xact_lock(25, hashtext(bucket));
     ELSE PERFORM pg_advisory_xact_lock_shared(25, hashtext(bucket));
     END IF;
   END $$`,

  // A directory that stays where it is until the transaction ends; null where it is none of the user's. Where it went to another
  // bucket while the lock was awaited, that lock ends with its savepoint: nobody waits for a bucket who holds another.
  `CREATE FUNCTION file_hold(by_user text, in_directory text) RETURNS directories LANGUAGE plpgsql AS $$
   DECLARE held directories;
   BEGIN
     LOOP
       SELECT * INTO held FROM directories d
         WHERE d.id = in_directory AND d.user_id = by_user AND d.trash_id IS NULL;
       IF NOT FOUND THEN RETURN NULL; END IF;
       BEGIN
         PERFORM file_lock(held.bucket_id, false);
         PERFORM 1 FROM directories d WHERE d.id = in_directory AND d.trash_id IS NULL
           AND d.bucket_id = held.bucket_id AND d.path = held.path;
         IF FOUND THEN RETURN held; END IF;
         RAISE EXCEPTION 'moved' USING ERRCODE = 'SB001';
       EXCEPTION WHEN SQLSTATE 'SB001' THEN NULL;
       END;
     END LOOP;
   END $$`,

  // The directory at the end of these names below a directory, or below the root; those that are missing are made, with
  // these ids, a bucket of a kind. 'gone': the first one is none of the user's. 'full': the user has as many as there may be.
  `CREATE FUNCTION file_ensure(by_user text, below text, names text[], ids text[], of_kind text,
       most integer) RETURNS text LANGUAGE plpgsql AS $$
   DECLARE held directories; found_id text; is_counted boolean := false;
   BEGIN
     FOR step IN 1..cardinality(names) LOOP
       IF below IS NOT NULL THEN
         held := file_hold(by_user, below);
         IF held.id IS NULL THEN RETURN 'gone'; END IF;
       END IF;
       LOOP
         SELECT d.id INTO found_id FROM directories d WHERE d.user_id = by_user
           AND coalesce(d.parent_id, '') = coalesce(below, '') AND d.name = names[step] AND d.trash_id IS NULL;
         EXIT WHEN FOUND;
         IF NOT is_counted THEN
           IF (SELECT count(*) FROM directories d WHERE d.user_id = by_user AND d.trash_id IS NULL)
               + cardinality(names) - step >= most THEN RETURN 'full';
           END IF;
           is_counted := true;
         END IF;
         INSERT INTO directories (id, user_id, bucket_id, parent_id, name, path, kind) VALUES (ids[step], by_user,
             coalesce(held.bucket_id, ids[step]), below, names[step], coalesce(held.path || names[step] || '/', ''),
             CASE WHEN below IS NULL THEN of_kind ELSE 'plain' END)
           ON CONFLICT (user_id, coalesce(parent_id, ''), name) WHERE trash_id IS NULL DO NOTHING;
       END LOOP;
       below := found_id;
     END LOOP;
     RETURN below;
   END $$`,

  // A new version of the file of this name. 'written': with its number; 'other': another version is current than
  // \`if_version\` says ('none': no file), namely \`now_current\`; 'gone': the directory is none of the user's.
  `CREATE FUNCTION file_write(new_version text, new_group text, by_user text, in_directory text, new_name text,
       new_search text, in_store text, of_sha256 bytea, new_size bigint, new_type text, new_modified timestamptz,
       new_encrypted boolean, new_key text, from_source text, if_version text)
     RETURNS TABLE (outcome text, of_group text, number integer, now_current text, in_bucket text, at_path text,
       made_at timestamptz) LANGUAGE plpgsql AS $$
   DECLARE place directories; held file_groups;
   BEGIN
     place := file_hold(by_user, in_directory);
     IF place.id IS NULL THEN
       outcome := 'gone'; RETURN NEXT; RETURN;
     END IF;
     in_bucket := place.bucket_id; at_path := place.path || new_name;
     LOOP
       SELECT * INTO held FROM file_groups g
         WHERE g.bucket_id = in_bucket AND g.path = at_path AND g.trash_id IS NULL FOR UPDATE;
       IF if_version IS NOT NULL AND if_version <> coalesce(held.current_id, 'none') THEN
         outcome := 'other'; now_current := held.current_id; RETURN NEXT; RETURN;
       END IF;
       IF held.id IS NOT NULL THEN
         UPDATE file_versions v SET superseded_at = now() WHERE v.id = held.current_id;
         UPDATE file_groups g SET current_id = new_version, last_version = held.last_version + 1 WHERE g.id = held.id;
         of_group := held.id; number := held.last_version + 1;
         EXIT;
       END IF;
       INSERT INTO file_groups (id, user_id, bucket_id, directory_id, name, path, search_name, current_id, last_version)
         VALUES (new_group, by_user, in_bucket, in_directory, new_name, at_path, new_search, new_version, 1)
         ON CONFLICT (bucket_id, path) WHERE trash_id IS NULL DO NOTHING;
       IF FOUND THEN
         of_group := new_group; number := 1;
         EXIT;
       END IF;
     END LOOP;
     INSERT INTO file_versions (id, group_id, user_id, version, original_name, mime_type, size, store, sha256,
         is_encrypted, encryption_key_id, source, modified_at)
       VALUES (new_version, of_group, by_user, number, new_name, new_type, new_size, in_store, of_sha256,
         new_encrypted, new_key, from_source, new_modified)
       RETURNING created_at INTO made_at;
     outcome := 'written'; now_current := new_version;
     RETURN NEXT;
   END $$`
]
