import { Effect, Layer, Predicate } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { BlobStore } from "#src/infra/blobs/BlobStore.ts"
import { Purge } from "#src/files/tree/Purge.ts"
import { Trash } from "#src/files/tree/Trash.ts"
import { type Directory, Tree } from "#src/files/tree/Tree.ts"
import { type NewVersion, Versions } from "#src/files/tree/Versions.ts"
import { Walk } from "#src/files/tree/Walk.ts"
import { Notices } from "#src/infra/notices/Notices.ts"
import { incoming, pieces } from "#test/infra/blobs/BlobSteps.ts"

/** The tree without a server. */
export const treeLayer = Layer.mergeAll(Tree.layer, Versions.layer, Walk.layer).pipe(
  Layer.provideMerge(BlobStore.layer)
)

/** The sweeps of a tree. */
export const sweepLayer = Trash.layer.pipe(Layer.provideMerge(Purge.layer), Layer.provide(Notices.layer))

export const swept = Effect.gen(function* () {
  yield* (yield* Trash).sweep
  yield* (yield* Purge).prune
})

/** The directory of this path from the root on, such as `docs/a/b`. */
export const ensured = (userId: string, path: string) =>
  Effect.flatMap(Tree, ({ ensure }) => ensure(userId, undefined, path.split("/")))

/** The fields of a version beside its place and bytes. */
export const plain = {
  mimeType: "text/plain",
  modifiedAt: new Date("2026-01-02T03:04:05.678Z"),
  isEncrypted: false,
  encryptionKeyId: null
}

/** A new version of this text. */
export const written = (directory: Directory, name: string, text: string, more: Partial<NewVersion> = {}) =>
  Effect.gen(function* () {
    const blobs = yield* BlobStore
    const versions = yield* Versions
    const { userId } = directory
    return yield* blobs.put(incoming(userId, null, 100_000), pieces([text]), (blob) =>
      versions.write(userId, "test", { ...plain, directory, name, blob, ...more })
    )
  })

/**
 * Faults of a user's tree: numbers have no gap or twin, one version is current, all have references, paths fit. What is
 * deleted for good goes in several transactions, and may be half gone.
 */
export const faultsOfTree = (userId: string) =>
  Effect.flatMap(
    SqlClient,
    (sql) => sql<{ fault: string; id: string }>`
      SELECT 'the numbers of a file are not those of its versions' AS fault, g.id FROM file_groups g
        LEFT JOIN file_versions v ON v.group_id = g.id LEFT JOIN file_trash t ON t.id = g.trash_id
        WHERE g.user_id = ${userId} AND t.is_ended IS NOT TRUE GROUP BY g.id
        HAVING max(v.version) IS DISTINCT FROM g.last_version OR count(*) FILTER (WHERE v.id = g.current_id) <> 1
          OR count(*) FILTER (WHERE v.superseded_at IS NULL) <> 1
      UNION ALL SELECT 'a version without a reference', v.id FROM file_versions v
        LEFT JOIN blob_refs r ON r.ref = 'version ' || v.id AND r.sha256 = v.sha256
        WHERE r.ref IS NULL AND v.user_id = ${userId}
      UNION ALL SELECT 'a version without a file', v.id FROM file_versions v
        LEFT JOIN file_groups g ON g.id = v.group_id WHERE g.id IS NULL AND v.user_id = ${userId}
      UNION ALL SELECT 'a reference without a version', r.ref FROM blob_refs r
        LEFT JOIN file_versions v ON r.ref = 'version ' || v.id
        WHERE v.id IS NULL AND r.ref LIKE 'version %' AND r.user_id = ${userId}
      UNION ALL SELECT 'a file is not at its place', g.id FROM file_groups g
        LEFT JOIN directories d ON d.id = g.directory_id AND d.trash_id IS NULL
        WHERE g.user_id = ${userId} AND g.trash_id IS NULL
          AND (d.id IS NULL OR g.path <> d.path || g.name OR g.bucket_id <> d.bucket_id)
      UNION ALL SELECT 'a directory is not at its place', d.id FROM directories d
        LEFT JOIN directories p ON p.id = d.parent_id AND p.trash_id IS NULL
        WHERE d.user_id = ${userId} AND d.trash_id IS NULL
          AND (d.path <> coalesce(p.path || d.name || '/', '') OR d.bucket_id <> coalesce(p.bucket_id, d.id)
            OR (p.id IS NULL) <> (d.parent_id IS NULL))
      UNION ALL SELECT 'what is in the trash has no entry', i.id FROM (
          SELECT id, trash_id FROM directories WHERE user_id = ${userId} AND trash_id IS NOT NULL
          UNION ALL SELECT id, trash_id FROM file_groups WHERE user_id = ${userId} AND trash_id IS NOT NULL) i
        LEFT JOIN file_trash t ON t.id = i.trash_id WHERE t.id IS NULL
      UNION ALL SELECT 'the size of an entry is not that of its versions', t.id FROM file_trash t
        WHERE t.user_id = ${userId} AND NOT t.is_ended AND t.size <> (SELECT coalesce(sum(v.size), 0) FROM file_groups g
          JOIN file_versions v ON v.group_id = g.id WHERE g.trash_id = t.id)
      UNION ALL SELECT 'a count is not that of the versions', u.id FROM users u
        LEFT JOIN file_counts c ON c.user_id = u.id
        WHERE u.id = ${userId}
          AND coalesce(c.versions, 0) <> (SELECT count(*) FROM file_versions v WHERE v.user_id = u.id)
      UNION ALL SELECT 'a sum is not that of its references', u.user_id FROM blob_usage u
        WHERE u.pool = 'files' AND u.user_id = ${userId} AND u.bytes <> (SELECT coalesce(sum(b.size), 0) FROM blob_refs r
          JOIN blobs b ON b.store = r.store AND b.sha256 = r.sha256
          WHERE r.user_id = u.user_id AND r.pool = 'files')`
  )

export const messageOf = <A, E extends { readonly message: string } | string, R>(
  effect: Effect.Effect<A, E, R>
) => Effect.map(Effect.flip(effect), (error) => (Predicate.isString(error) ? error : error.message))
