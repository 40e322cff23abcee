import { readdirSync, readFileSync } from "node:fs"
import { createHash } from "node:crypto"
import { join } from "node:path"
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"

/** The hashes that files in a directory of blobs are named by. */
export const blobFiles = (directory: string): ReadonlyArray<string> =>
  readdirSync(directory, { recursive: true, encoding: "utf8" })
    .filter((name) => /^[0-9a-f]{2}\/[0-9a-f]{2}\/[0-9a-f]{64}$/.test(name))
    .map((name) => name.slice(6))

/** The names of uploads under way. */
export const uploadFiles = (directory: string): ReadonlyArray<string> => readdirSync(join(directory, "tmp"))

/** Asserts that each blob that a record refers to has bytes of its hash, in its row or a file; answers the hashes by the record's name. */
export const assertWhole = (directory: string, message: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient
    const rows = yield* sql<{
      ref: string
      sha256: string
    }>`SELECT ref, encode(sha256, 'hex') AS sha256 FROM blob_refs`
    const known = new Map(rows.map(({ ref, sha256 }) => [ref, sha256]))
    const inRows = yield* sql<{ sha256: string; seen: string }>`SELECT encode(sha256, 'hex') AS sha256,
      encode(sha256(bytes), 'hex') AS seen FROM blobs WHERE bytes IS NOT NULL`
    const rowHashes = new Map(inRows.map(({ seen, sha256 }) => [sha256, seen]))
    for (const sha256 of new Set(known.values())) {
      const path = join(directory, sha256.slice(0, 2), sha256.slice(2, 4), sha256)
      const seen = rowHashes.get(sha256) ?? createHash("sha256").update(readFileSync(path)).digest("hex")
      assert.strictEqual(seen, sha256, message)
    }
    return known
  })

/**
 * Asserts, behind a collection that keeps nothing, that files, rows and references are of the same blobs, and sums right;
 * answers the hashes by the names of records. Uploads that are still open have their own files.
 */
export const assertCollected = (directory: string, message: string, openUploads = new Set<string>()) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient
    const known = yield* assertWhole(directory, message)
    const rows = yield* sql<{ sha256: string; isInRow: boolean }>`SELECT encode(sha256, 'hex') AS sha256,
      bytes IS NOT NULL AS "isInRow" FROM blobs`
    const named = rows.map(({ sha256 }) => sha256)
    assert.sameMembers(named, [...new Set(known.values())], message)
    // Bytes that are in a row may have come as a file, too.
    const files = new Set(blobFiles(directory))
    const withFiles = rows.filter(({ isInRow, sha256 }) => !isInRow || files.has(sha256))
    assert.sameMembers(
      [...files],
      withFiles.map(({ sha256 }) => sha256),
      message
    )
    const left = uploadFiles(directory).filter(
      (name) => !openUploads.has(name.slice(0, name.lastIndexOf(".")))
    )
    assert.deepStrictEqual(left, [], message)
    const wrong = yield* sql`SELECT u.user_id, u.pool, u.bytes, r.bytes AS real FROM blob_usage u LEFT JOIN (
        SELECT user_id, pool, sum(size) AS bytes FROM blob_refs JOIN blobs USING (store, sha256)
        GROUP BY user_id, pool) r USING (user_id, pool) WHERE u.bytes <> coalesce(r.bytes, 0)`
    assert.deepStrictEqual(wrong, [], message)
    const records = yield* sql<{ ref: string }>`SELECT 'file ' || id AS ref FROM files
      WHERE gone_at IS NULL OR gone_at > now()`
    assert.sameMembers(
      [...known.keys()].filter((ref) => ref.startsWith("file ")),
      records.map(({ ref }) => ref),
      message
    )
    return known
  })
