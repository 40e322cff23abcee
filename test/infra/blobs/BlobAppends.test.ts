import { mkdirSync, renameSync, rmdirSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { OpenBlobFile } from "#src/infra/blobs/BlobFiles.ts"
import type { Blob } from "#src/infra/blobs/BlobIndex.ts"
import { BlobStore, OpenFile, openNew } from "#src/infra/blobs/BlobStore.ts"
import { JoinedFiles } from "#src/infra/blobs/JoinedFiles.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import { incoming, newUser, ownerOf, pieces, sha256Of, sourceOf, tagOf, temporaryFiles } from "./BlobSteps.ts"

const limits = { uploadSyncMillis: 20 }
const stores = BlobStore.layer.pipe(Layer.provideMerge(TestStores.layerWith({ limits })))

/** Two stores of one directory, as two processes have them. */
const two = Effect.gen(function* () {
  const one = yield* BlobStore
  return { one, other: yield* BlobStore.in(one.directory) }
})

const writtenOf = (id: string) =>
  Effect.flatMap(SqlClient, (sql) =>
    Effect.map(
      sql<{ written: number }>`SELECT written::int AS written FROM blob_uploads WHERE id = ${id}`,
      ([row]) => row?.written
    )
  )

const finished = (blobs: BlobStore["Service"], id: string, ref: string, userId: string) =>
  blobs.finish(id, (blob) => Effect.as(blobs.refer(ref, blob, ownerOf(userId)), blob))

layer(stores, { excludeTestServices: true })("uploads in several requests", (it) => {
  it.effect("what has come is durable and noted while more comes", () =>
    Effect.gen(function* () {
      const { one, other } = yield* two
      const user = yield* newUser
      const id = yield* one.begin(incoming(user, null, 200_000))
      const run = Effect.runPromiseWith(yield* Effect.context<never>())
      const stalled = Promise.withResolvers<undefined>()
      // Writes are of 16 and 32 KiB: two of them end within these bytes, each a while behind the one before.
      const slow = [0, 1, 2].map(() => async () => {
        await new Promise((resolve) => setTimeout(resolve, 60))
        return "x".repeat(40_000)
      })
      const appending = run(Effect.result(one.append(id, 0, sourceOf([...slow, () => stalled.promise]))))
      const known = Effect.gen(function* () {
        for (;;) {
          const written = (yield* writtenOf(id)) ?? 0
          if (written > 0) return written
          yield* Effect.sleep(10)
        }
      })
      const kept = yield* known
      // Another process goes on from there, as if the first had been killed.
      assert.strictEqual(yield* other.append(id, kept, pieces(["end"])), kept + 3)
      stalled.resolve(undefined)
      yield* Effect.promise(() => appending)
      const blob = yield* finished(other, id, "append 1", user)
      assert.strictEqual(blob.sha256, sha256Of(Buffer.from("x".repeat(kept) + "end")))
      assert.deepStrictEqual(yield* temporaryFiles, [])
    })
  )

  it.effect("the hash of bytes that came to one process goes on with them, and is taken anew elsewhere", () =>
    Effect.gen(function* () {
      const { one, other } = yield* two
      const user = yield* newUser
      const damage = (id: string, text: string) => writeFileSync(join(one.directory, "tmp", `${id}.0`), text)
      const id = yield* one.begin(incoming(user))
      yield* one.append(id, 0, pieces(["ab"]))
      assert.strictEqual(yield* tagOf(one.append(id, 2, pieces(["cd"], true))), "cut off")
      yield* one.append(id, 4, pieces(["ef"]))
      // Nothing reads the file again: the scrub would find this.
      damage(id, "abcdeX")
      const blob = yield* finished(one, id, "append 2", user)
      assert.strictEqual(blob.sha256, sha256Of(Buffer.from("abcdef")))

      const moved = yield* one.begin(incoming(user))
      yield* one.append(moved, 0, pieces(["ab"]))
      yield* other.append(moved, 2, pieces(["cd"]))
      damage(moved, "aBcd")
      yield* one.append(moved, 4, pieces(["ef"]))
      const anew = yield* finished(one, moved, "append 3", user)
      assert.strictEqual(anew.sha256, sha256Of(Buffer.from("aBcdef")))
    })
  )

  it.effect("nothing is kept of bytes that can only be checked together", () =>
    Effect.gen(function* () {
      const blobs = yield* BlobStore
      const user = yield* newUser
      const id = yield* blobs.begin(incoming(user))
      yield* blobs.append(id, 0, pieces(["ab"]))
      const wrong = blobs.append(id, 2, pieces(["xx"], true), { isWholeOnly: true })
      assert.strictEqual(yield* tagOf(wrong), "cut off")
      assert.strictEqual(yield* writtenOf(id), 2)
      assert.strictEqual(yield* blobs.append(id, 2, pieces(["cd"]), { isWholeOnly: true }), 4)
      const blob = yield* finished(blobs, id, "append 4", user)
      assert.strictEqual(blob.sha256, sha256Of(Buffer.from("abcd")))
    })
  )

  it.effect("a record that is refused leaves the upload as it was", () =>
    Effect.gen(function* () {
      const { one, other } = yield* two
      const user = yield* newUser
      const id = yield* one.begin(incoming(user))
      yield* one.append(id, 0, pieces(["kept"]))
      for (const blobs of [one, other])
        assert.strictEqual(yield* tagOf(blobs.finish(id, () => Effect.fail("refused"))), "refused")
      const blob: Blob = yield* finished(one, id, "append 5", user)
      assert.strictEqual(blob.sha256, sha256Of(Buffer.from("kept")))
      assert.deepStrictEqual(yield* temporaryFiles, [])
    })
  )

  it.effect("is joined from others, which stay until they end", () =>
    Effect.gen(function* () {
      const { one, other } = yield* two
      const user = yield* newUser
      const parts: Array<string> = []
      for (const text of ["ab", "", "cdef"]) {
        const part = yield* one.begin(incoming(user))
        yield* one.append(part, 0, pieces([text]))
        parts.push(part)
      }
      const id = yield* one.begin(incoming(user))
      // Cut off amid the third.
      yield* one.append(id, 0, pieces(["abc"]))
      assert.strictEqual(yield* other.join(id, parts), 6)
      const blob = yield* finished(other, id, "append 6", user)
      assert.strictEqual(blob.sha256, sha256Of(Buffer.from("abcdef")))
      const again = yield* one.begin(incoming(user))
      assert.strictEqual(yield* one.join(again, parts.toReversed()), 6)
      assert.strictEqual(
        (yield* finished(one, again, "append 7", user)).sha256,
        sha256Of(Buffer.from("cdefab"))
      )
      for (const part of parts) yield* one.abort(part)
      const lost = yield* one.begin(incoming(user))
      assert.strictEqual(yield* tagOf(one.join(lost, parts)), "UploadGone")
      yield* one.abort(lost)
      assert.deepStrictEqual(yield* temporaryFiles, [])
    })
  )

  it.effect("a part that goes amid a join ends it, and is named", () =>
    Effect.gen(function* () {
      const { directory } = yield* BlobStore
      const path = join(directory, "tmp", "join.0")
      writeFileSync(path, "abc")
      const joined = new JoinedFiles(
        [
          { id: "upl_1", path, bytes: 3 },
          { id: "upl_2", path: `${path}.none`, bytes: 3 }
        ],
        0
      )
      const read = Effect.map(
        Effect.flatMap(
          Effect.promise(() => joined.next()),
          Effect.fromResult
        ),
        (bytes) => String(bytes)
      )
      assert.strictEqual(yield* read, "abc")
      assert.deepInclude(yield* Effect.flip(read), { _tag: "UploadGone", id: "upl_2" })
      // One that was cut short is none either.
      const short = new JoinedFiles([{ id: "upl_1", path, bytes: 4 }], 3)
      const rest = Effect.flatMap(
        Effect.promise(() => short.next()),
        Effect.fromResult
      )
      assert.strictEqual(yield* tagOf(rest), "UploadGone")
      yield* Effect.promise(() => Promise.all([joined.close(), short.close()]))
      rmSync(path)
    })
  )

  it.effect("a copy that a killed request left half made is not gone on with", () =>
    Effect.gen(function* () {
      const blobs = yield* BlobStore
      const sql = yield* SqlClient
      const user = yield* newUser
      const id = yield* blobs.begin(incoming(user))
      yield* blobs.append(id, 0, pieces(["abcd"]))
      // The request before took the upload from one that is dead, and was killed amid its copy.
      const [row] = yield* sql<{ epoch: number }>`UPDATE blob_uploads SET busy = true, epoch = epoch + 1
        WHERE id = ${id} RETURNING epoch`
      const half = join(blobs.directory, "tmp", `${id}.${row?.epoch}`)
      writeFileSync(half, "ab")
      assert.strictEqual(yield* blobs.append(id, 4, pieces(["ef"])), 6)
      const blob = yield* finished(blobs, id, "append 8", user)
      assert.strictEqual(blob.sha256, sha256Of(Buffer.from("abcdef")))
      rmSync(half)
      assert.deepStrictEqual(yield* temporaryFiles, [])
    })
  )

  it.effect("its file has a second name before the transaction, which is gone behind one that fails", () =>
    Effect.gen(function* () {
      const blobs = yield* BlobStore
      const user = yield* newUser
      const id = yield* blobs.begin(incoming(user))
      yield* blobs.append(id, 0, pieces(["kept"]))
      const names = blobs.finish(id, () =>
        Effect.flatMap(temporaryFiles, (files) => Effect.fail(files.length))
      )
      assert.strictEqual(yield* Effect.flip(names), 2)
      assert.deepStrictEqual(yield* temporaryFiles, [`${id}.0`])
      yield* blobs.abort(id)
    })
  )

  it.effect("another request may take it while its bytes are read", () =>
    Effect.gen(function* () {
      const blobs = yield* BlobStore
      const sql = yield* SqlClient
      const user = yield* newUser
      const id = yield* blobs.begin(incoming(user))
      yield* blobs.append(id, 0, pieces(["taken"]))
      const run = Effect.runPromiseWith(yield* Effect.context<never>())
      const takeIt = sql`UPDATE blob_uploads SET epoch = epoch + 1, file = epoch + 1 WHERE id = ${id}`
      const taken: OpenBlobFile = async (path, flags) => {
        const file = await openNew(path, flags)
        const close = async (): Promise<void> => {
          await file.close()
          renameSync(path, join(dirname(path), `${id}.3`))
          await run(takeIt)
        }
        return {
          writeFile: (chunk) => file.writeFile(chunk),
          truncate: (bytes) => file.truncate(bytes),
          datasync: () => file.datasync(),
          close
        }
      }
      const other = yield* Effect.provideService(BlobStore.in(blobs.directory), OpenFile, taken)
      assert.strictEqual(yield* tagOf(other.finish(id, () => Effect.void)), "UploadGone")
      const third = yield* BlobStore.in(blobs.directory)
      assert.deepInclude(yield* finished(third, id, "append taken", user), {
        sha256: sha256Of(Buffer.from("taken"))
      })
      assert.deepStrictEqual(yield* temporaryFiles, [])
    })
  )

  it.effect("a try that fails makes no upload last longer", () =>
    Effect.gen(function* () {
      const blobs = yield* BlobStore
      const sql = yield* SqlClient
      const user = yield* newUser
      const id = yield* blobs.begin(incoming(user))
      yield* blobs.append(id, 0, pieces(["kept"]))
      yield* sql`UPDATE blob_uploads SET expires_at = now() + interval '1 minute' WHERE id = ${id}`
      const row = Effect.map(
        sql<{
          busy: boolean
          endsAt: Date
        }>`SELECT busy, expires_at AS "endsAt" FROM blob_uploads WHERE id = ${id}`,
        ([found]) => found
      )
      const before = yield* row
      assert.strictEqual(yield* tagOf(blobs.finish(id, () => Effect.fail("refused"))), "refused")
      assert.deepStrictEqual(yield* row, before)
      // Its bytes cannot be read.
      const path = join(blobs.directory, "tmp", `${id}.0`)
      rmSync(path)
      mkdirSync(path)
      yield* sql`UPDATE blob_uploads SET written = 0 WHERE id = ${id}`
      const other = yield* BlobStore.in(blobs.directory)
      yield* Effect.exit(other.finish(id, () => Effect.void))
      assert.deepInclude(yield* row, { busy: false })
      rmdirSync(path)
      yield* blobs.abort(id)
    })
  )

  it.effect("may grow, within the quota", () =>
    Effect.gen(function* () {
      const blobs = yield* BlobStore
      const user = yield* newUser
      const id = yield* blobs.begin(incoming(user, 10, 0))
      assert.strictEqual(yield* tagOf(blobs.append(id, 0, pieces(["a"]))), "BlobTooLarge")
      assert.strictEqual(yield* tagOf(blobs.resize(id, { needed: 11, wanted: 20 }, 10)), "QuotaReached")
      yield* blobs.resize(id, { needed: 5, wanted: 20 }, 10)
      assert.strictEqual(yield* blobs.append(id, 0, pieces(["0123456789"])), 10)
      assert.strictEqual(yield* tagOf(blobs.begin(incoming(user, 10, 1))), "QuotaReached")
      yield* blobs.abort(id)
      assert.strictEqual(yield* tagOf(blobs.resize(id, { needed: 1, wanted: 1 }, null)), "UploadGone")
    })
  )
})
