import { createHash } from "node:crypto"
import { existsSync } from "node:fs"
import { join } from "node:path"
import { Effect, Result } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { newId } from "#src/infra/crypto/Tokens.ts"
import type { BlobSource } from "#src/infra/blobs/BlobFiles.ts"
import type { Blob } from "#src/infra/blobs/BlobIndex.ts"
import { BlobStore } from "#src/infra/blobs/BlobStore.ts"
import { uploadFiles } from "./StoredBlobs.ts"

export const sha256Of = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex")

/** A source of these pieces, which fails at its end where that is said. */
export const pieces = (all: ReadonlyArray<string>, fails = false): BlobSource<"cut off"> => {
  const left = [...all]
  return async () => {
    const next = left.shift()
    if (next !== undefined) return Result.succeed(Buffer.from(next))
    return fails ? Result.fail("cut off") : Result.succeed(undefined)
  }
}

export const sourceOf =
  (steps: Array<() => Promise<string | undefined>>): BlobSource<never> =>
  async () => {
    const text = await steps.shift()?.()
    return Result.succeed(text === undefined ? undefined : Buffer.from(text))
  }

export const newUser = Effect.gen(function* () {
  const sql = yield* SqlClient
  const id = newId("usr")
  yield* sql`INSERT INTO users (id, email, name, role) VALUES (${id}, ${`${id}@example.com`}, 'U', 'user')`
  return id
})

/** An upload of a thousand bytes at most. */
export const incoming = (userId: string, quotaBytes: number | null = null, maxBytes = 1_000) => ({
  userId,
  quotaBytes,
  maxBytes
})

export const ownerOf = (userId: string, expiresAt: Date | null = null) => ({
  userId,
  source: "test",
  expiresAt
})

export const put = (userId: string, text: string, ref: string, expiresAt: Date | null = null) =>
  Effect.flatMap(BlobStore, (blobs) =>
    blobs.put(incoming(userId), pieces([text]), (blob) =>
      Effect.as(blobs.refer(ref, blob, ownerOf(userId, expiresAt)), blob)
    )
  )

export const usageOf = (userId: string) =>
  Effect.flatMap(SqlClient, (sql) =>
    Effect.map(
      sql<{ bytes: number; reserved: number }>`SELECT
        coalesce((SELECT sum(bytes) FROM blob_usage WHERE user_id = ${userId}), 0)::int AS bytes,
        coalesce((SELECT sum(reserved) FROM blob_uploads WHERE user_id = ${userId}), 0)::int AS reserved`,
      ([row]) => row
    )
  )

export const pathOf = ({ sha256 }: Pick<Blob, "sha256">) =>
  Effect.map(BlobStore, ({ directory }) => join(directory, sha256.slice(0, 2), sha256.slice(2, 4), sha256))

export const isThere = (blob: Pick<Blob, "sha256">) => Effect.map(pathOf(blob), existsSync)

export const tagOf = <A, E extends { readonly _tag: string } | string, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.map(Effect.flip(effect), (error) => (typeof error === "string" ? error : error._tag))

export const temporaryFiles = Effect.map(BlobStore, ({ directory }) => uploadFiles(directory))
