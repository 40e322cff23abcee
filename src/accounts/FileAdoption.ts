import * as fs from "node:fs/promises"
import { join } from "node:path"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { AppConfig } from "#src/Config.ts"
import type { Blob } from "#src/infra/blobs/BlobIndex.ts"
import { BlobStore } from "#src/infra/blobs/BlobStore.ts"
import { codeOf, type DiskFull, ifThere } from "#src/infra/blobs/Disk.ts"

/** The name under which an account file refers to its blob. */
export const refOf = (fileId: string): string => `file ${fileId}`

interface Row extends Blob {
  readonly id: string
  readonly userId: string
  readonly store: string | null
  readonly isGone: boolean
}

type Adopted = "adopted" | "over" | "foreign"

/**
 * Account files were once kept under `DATA_DIR/files`, by their ids. A server that starts makes blobs of those that it finds
 * there: the blob and its rows are committed before the old name goes, so that a start that dies is repeated by the next,
 * and of several processes on one disk one does it. Files without a row are left, as they may be another database's.
 */
export const adoptFiles: Effect.Effect<void, SqlError, AppConfig | BlobStore | SqlClient> = Effect.gen(
  function* () {
    const { dataDir } = yield* AppConfig
    const directory = join(dataDir, "files")
    const entries = yield* Effect.promise(() => ifThere(fs.readdir(directory, { withFileTypes: true })))
    if (entries === undefined) return
    // The two characters that ids end with.
    const folders = entries.filter((entry) => entry.isDirectory() && entry.name.length === 2)
    const counts = { adopted: 0, over: 0, foreign: 0 }
    for (const { name } of folders) yield* adoptFolder(join(directory, name), counts)
    // Uploads of before that were never finished, and were never answered.
    yield* Effect.promise(() => fs.rm(join(directory, "tmp"), { recursive: true, force: true }))
    yield* removeEmpty(directory)
    const left = counts.foreign === 0 ? "" : `; ${counts.foreign} that no account has stay in ${directory}`
    yield* Effect.logInfo(`${counts.adopted} account files are blobs now${left}`)
  }
).pipe(
  Effect.catchTag("DiskFull", ({ cause }) =>
    Effect.logWarning(
      "The disk is full: account files that are not yet blobs cannot be read until a start has room",
      cause
    )
  )
)

const adoptFolder = Effect.fnUntraced(function* (folder: string, counts: Record<Adopted, number>) {
  const { limits } = yield* AppConfig
  const sql = yield* SqlClient
  const ids = (yield* Effect.promise(() => ifThere(fs.readdir(folder)))) ?? []
  if (ids.length > 0) {
    const rows = yield* sql<Row>`SELECT id, user_id AS "userId", encode(sha256, 'hex') AS sha256,
      size::float8 AS "sizeBytes", store, coalesce(gone_at <= now(), false) AS "isGone"
      FROM files WHERE ${sql.in("id", ids)}`
    const byId = new Map(rows.map((row) => [row.id, row]))
    yield* Effect.forEach(
      ids,
      (id) => Effect.map(adopt(join(folder, id), byId.get(id)), (outcome) => void counts[outcome]++),
      { concurrency: limits.adoptedAtOnce, discard: true }
    )
  }
  yield* removeEmpty(folder)
})

const adopt = Effect.fnUntraced(function* (path: string, row: Row | undefined) {
  if (row === undefined) return "foreign"
  const isOver = row.isGone || row.store !== null
  if (!isOver) yield* adoptRow(path, row)
  yield* Effect.promise(() => fs.rm(path, { force: true }))
  return isOver ? "over" : "adopted"
})

const adoptRow = (
  path: string,
  { id, userId, ...blob }: Row
): Effect.Effect<unknown, SqlError | DiskFull, BlobStore | SqlClient> =>
  Effect.gen(function* () {
    const sql = yield* SqlClient
    const blobs = yield* BlobStore
    yield* blobs.adopt(path, blob, () =>
      Effect.gen(function* () {
        const mine =
          yield* sql`UPDATE files SET store = ${blobs.id} WHERE id = ${id} AND store IS NULL RETURNING 1`
        const owner = { userId, source: "upload", expiresAt: null }
        if (mine.length > 0) yield* blobs.refer(refOf(id), blob, owner)
      })
    )
  })

/** Other processes may do the same. */
const removeEmpty = (directory: string): Effect.Effect<void> =>
  Effect.promise(() =>
    fs.rmdir(directory).catch((error: unknown) => {
      if (!["ENOENT", "ENOTEMPTY", "EEXIST"].includes(codeOf(error) ?? "")) throw error
    })
  )
