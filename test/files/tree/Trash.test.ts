import { assert, describe, layer } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { sweepLinks } from "#src/files/links/LinkServices.ts"
import { sweep as sweepFlags } from "#src/files/sync/SyncFlags.ts"
import { Trash } from "#src/files/tree/Trash.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { namesOf, newClient, sharedTree, type ShownDirectory, type ShownFile } from "./TreeClient.ts"
import { ensured, faultsOfTree, sweepLayer, swept, written } from "./TreeSteps.ts"

const served = sweepLayer.pipe(Layer.provideMerge(sharedTree))

const dayMillis = 86_400_000

layer(served, { excludeTestServices: true, timeout: 600_000 })("the trash", (it) => {
  it.effect("gets files as they are: what waits for the move finds none any more", () =>
    Effect.gen(function* () {
      const [sql, { addFile }] = [yield* SqlClient, yield* Trash]
      const { outcome, userId } = yield* newClient
      const docs = yield* ensured(userId, "docs")
      const old = yield* written(docs, "f", "old")
      yield* written(docs, "f", "new")
      const waiting = yield* sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`SELECT file_lock(${docs.bucketId}, true)`
          const requests = yield* Effect.forkChild(
            Effect.all(
              [
                outcome("DELETE", `files/${old.groupId}/versions/${old.id}`),
                outcome("POST", `files/${old.id}/restore`)
              ],
              { concurrency: 2 }
            )
          )
          yield* eventually(
            "both wait",
            Effect.map(
              sql`SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND classid = 25 AND NOT granted`,
              (rows) => rows.length === 2
            )
          )
          yield* addFile(old.groupId)
          return requests
        })
      )
      assert.deepStrictEqual(yield* Fiber.join(waiting), ["404 File not found", "404 File not found"])
      assert.deepStrictEqual(yield* faultsOfTree(userId), [])
    })
  )

  it.effect("has what was deleted, newest first, for 30 days", () =>
    Effect.gen(function* () {
      const { ok, outcome, page, trash, userId } = yield* newClient
      const docs = yield* ensured(userId, "docs/a")
      const f = yield* written(docs, "f.txt", "old")
      yield* written(docs, "f.txt", "newer")
      yield* written(docs, "g.txt", "g")
      const file = (yield* ok("DELETE", `files/${f.id}`)) as { trashId: string }
      const directory = (yield* ok("DELETE", `directories/${docs.id}`)) as { trashId: string }
      assert.deepStrictEqual(file as unknown, { deleted: true, trashId: file.trashId })
      const { items } = (yield* ok("GET", "trash")) as {
        items: ReadonlyArray<{ trashedAt: string; expiresAt: string }>
      }
      const [first, second] = items
      assert.deepStrictEqual(items as unknown, [
        {
          id: directory.trashId,
          kind: "directory",
          itemId: docs.id,
          name: "a",
          path: "docs/a",
          size: 1,
          trashedAt: first?.trashedAt,
          expiresAt: first?.expiresAt
        },
        {
          id: file.trashId,
          kind: "file",
          itemId: f.groupId,
          name: "f.txt",
          path: "docs/a/f.txt",
          size: 8,
          trashedAt: second?.trashedAt,
          expiresAt: second?.expiresAt
        }
      ])
      assert.strictEqual(
        Date.parse(first?.expiresAt ?? "") - Date.parse(first?.trashedAt ?? ""),
        30 * dayMillis
      )
      assert.deepStrictEqual(yield* ok("GET", "storage"), { usedBytes: 9, trashBytes: 9, quotaBytes: null })
      assert.strictEqual(yield* outcome("GET", `files/${f.id}/versions`), "404 File not found")
      assert.strictEqual(yield* outcome("GET", `directories/${docs.id}`), "404 Directory not found")
      assert.strictEqual(yield* outcome("DELETE", `files/${f.id}`), "404 File not found")
      assert.deepStrictEqual(namesOf((yield* page(docs.bucketId)).directories), [])
      const byOne = (yield* ok("GET", "trash?limit=1")) as { cursor: string }
      const rest = (yield* ok("GET", `trash?limit=1&cursor=${byOne.cursor}`)) as {
        items: Array<{ id: string }>
        cursor: null
      }
      assert.deepStrictEqual([rest.items.map(({ id }) => id), rest.cursor], [[file.trashId], null])
      assert.match(yield* outcome("GET", "trash?cursor=abc"), /^400 cursor: /)
      assert.strictEqual((yield* trash).items.length, 2)
      assert.deepStrictEqual(yield* faultsOfTree(userId), [])
    })
  )

  describe("a file in it", () => {
    it.effect("comes back with its versions; one of the same name made since is another file", () =>
      Effect.gen(function* () {
        const { ok, outcome, page, trash, userId } = yield* newClient
        const docs = yield* ensured(userId, "docs")
        yield* written(docs, "f.txt", "1")
        const f = yield* written(docs, "f.txt", "2")
        yield* ok("DELETE", `files/${f.id}`)
        const since = yield* written(docs, "f.txt", "since")
        assert.strictEqual(since.version, 1)
        assert.notStrictEqual(since.groupId, f.groupId)
        assert.strictEqual(yield* outcome("POST", `files/${f.id}/restore`), "409 name: is taken")
        assert.strictEqual((yield* trash).items.length, 1)
        const back = yield* ok("POST", `files/${f.groupId}/restore?onConflict=rename`)
        assert.deepInclude(back, { id: f.id, version: 2, name: "f (1).txt", path: "docs/f (1).txt" })
        yield* ok("DELETE", `files/${f.id}`)
        yield* ok("PATCH", `files/${since.id}`, { name: "f (1).txt" })
        const replaced = yield* ok("POST", `files/${f.id}/restore?onConflict=replace`)
        assert.deepInclude(replaced, { id: f.id, name: "f (1).txt" })
        assert.deepStrictEqual(namesOf((yield* page(docs.id)).files), ["f (1).txt"])
        assert.deepStrictEqual(
          (yield* trash).items.map(({ itemId }) => itemId),
          [since.groupId]
        )
        assert.deepStrictEqual(yield* faultsOfTree(userId), [])
      })
    )

    it.effect("comes back to its directory where that has moved, and makes it again where it is gone", () =>
      Effect.gen(function* () {
        const { ok, trash, userId } = yield* newClient
        const a = yield* ensured(userId, "docs/a/b")
        const f = yield* written(a, "f", "f")
        yield* ok("DELETE", `files/${f.id}`)
        yield* ok("PATCH", `directories/${a.parentId}`, { name: "renamed" })
        assert.deepInclude(yield* ok("POST", `files/${f.id}/restore`), { path: "docs/renamed/b/f" })
        yield* ok("DELETE", `directories/${a.bucketId}`)
        // Alone, out of a directory that stays in the trash.
        const back = (yield* ok("POST", `files/${f.id}/restore`)) as ShownFile
        assert.deepInclude(back, { path: "docs/renamed/b/f" })
        assert.notStrictEqual(back.directoryId, a.id)
        assert.deepStrictEqual(
          (yield* trash).items.map(({ size }) => size),
          [0]
        )
        assert.deepStrictEqual(yield* faultsOfTree(userId), [])
      })
    )
  })

  describe("a directory in it", () => {
    it.effect("does not come back below one that is too deep by now, nor a file whose path is too long", () =>
      Effect.gen(function* () {
        const { ok, outcome, trash, userId } = yield* newClient
        const deep = (levels: number) => Array.from({ length: levels }, () => "d").join("/")
        const tall = yield* ensured(userId, `b/place/${deep(10)}`)
        const place = yield* ensured(userId, "b/place")
        const top = yield* ensured(userId, "b/place/d")
        const file = yield* written(place, "f".repeat(255), "f")
        yield* ok("DELETE", `directories/${top.id}`)
        yield* ok("DELETE", `files/${file.id}`)
        const low = yield* ensured(userId, `low/${deep(60)}`)
        yield* ok("PATCH", `directories/${place.id}`, { parentId: low.id })
        assert.strictEqual(
          yield* outcome("POST", `directories/${top.id}/restore`),
          "400 parentId: at most 64 directories below each other"
        )
        const long = yield* ensured(
          userId,
          `long/${Array.from({ length: 8 }, () => "n".repeat(230)).join("/")}`
        )
        yield* ok("PATCH", `directories/${place.id}`, { parentId: long.id })
        assert.strictEqual(
          yield* outcome("POST", `files/${file.id}/restore`),
          "400 name: a path within a bucket has at most 2048 bytes"
        )
        assert.strictEqual((yield* trash).items.length, 2)
        yield* ok("PATCH", `directories/${place.id}`, { parentId: tall.bucketId })
        assert.deepInclude(yield* ok("POST", `directories/${top.id}/restore`), { path: "b/place/d" })
        assert.deepInclude(yield* ok("POST", `files/${file.id}/restore`), { id: file.id })
        assert.deepStrictEqual(yield* faultsOfTree(userId), [])
      })
    )

    it.effect("comes back with all that went with it, and not what went before", () =>
      Effect.gen(function* () {
        const { ok, outcome, page, trash, userId } = yield* newClient
        const a = yield* ensured(userId, "docs/a")
        const b = yield* ensured(userId, "docs/a/b")
        const [f, g] = [yield* written(a, "f", "f"), yield* written(b, "g", "g")]
        yield* ok("DELETE", `files/${f.id}`)
        yield* ok("DELETE", `directories/${a.id}`)
        assert.strictEqual(yield* outcome("POST", `directories/${b.id}/restore`), "404 Directory not found")
        yield* ensured(userId, "docs/a")
        assert.strictEqual(yield* outcome("POST", `directories/${a.id}/restore`), "409 name: is taken")
        const back = yield* ok("POST", `directories/${a.id}/restore?onConflict=rename`)
        assert.deepInclude(back, { id: a.id, path: "docs/a (1)" })
        assert.deepInclude((yield* page(b.id)).files[0], { id: g.id, path: "docs/a (1)/b/g" })
        assert.deepStrictEqual(
          (yield* trash).items.map(({ itemId }) => itemId),
          [f.groupId]
        )
        assert.deepInclude(yield* ok("POST", `files/${f.id}/restore`), { path: "docs/a (1)/f" })
        assert.deepStrictEqual(yield* faultsOfTree(userId), [])
      })
    )

    it.effect("comes back into a parent that is made again, and a bucket to the root", () =>
      Effect.gen(function* () {
        const { ok, userId } = yield* newClient
        const b = yield* ensured(userId, "docs/a/b")
        yield* written(b, "f", "f")
        yield* ok("DELETE", `directories/${b.id}`)
        yield* ok("DELETE", `directories/${b.bucketId}`)
        yield* ok(
          "DELETE",
          "trash/" + ((yield* ok("GET", "trash")) as { items: Array<{ id: string }> }).items[0]?.id
        )
        assert.deepInclude(yield* ok("POST", `directories/${b.id}/restore`), { path: "docs/a/b" })
        const chain = (yield* ok("GET", "directories?path=docs")) as {
          directories: ReadonlyArray<ShownDirectory>
        }
        const docs = chain.directories[0]?.id ?? ""
        yield* ok("DELETE", `directories/${docs}`)
        yield* ensured(userId, "docs")
        assert.deepInclude(yield* ok("POST", `directories/${docs}/restore?onConflict=rename`), {
          path: "docs-1"
        })
        assert.deepInclude(yield* ok("GET", "directories?path=docs-1/a/b"), {})
        assert.deepStrictEqual(yield* faultsOfTree(userId), [])
      })
    )
  })

  it.effect("is emptied for good, as a whole or entry by entry, and its bytes are free then", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const { ok, outcome, scoped, trash, userId } = yield* newClient
      const a = yield* ensured(userId, "docs/a")
      const [f, g] = [yield* written(a, "f", "12"), yield* written(a, "g", "345")]
      yield* written(a, "g", "6")
      const entry = (yield* ok("DELETE", `files/${f.id}`)) as { trashId: string }
      yield* ok("DELETE", `directories/${a.id}`)
      const writer = yield* scoped("write", "read")
      assert.match(yield* outcome("DELETE", "trash", undefined, writer), /^403 /)
      assert.match(yield* outcome("DELETE", `trash/${entry.trashId}`, undefined, writer), /^403 /)
      assert.strictEqual(
        yield* (yield* newClient).outcome("DELETE", `trash/${entry.trashId}`),
        "404 Entry not found in the trash"
      )
      assert.deepStrictEqual(yield* ok("DELETE", `trash/${entry.trashId}`), { deleted: true })
      assert.strictEqual(
        yield* outcome("DELETE", `trash/${entry.trashId}`),
        "404 Entry not found in the trash"
      )
      assert.deepInclude(yield* ok("GET", "storage"), { usedBytes: 4, trashBytes: 4 })
      assert.deepStrictEqual(yield* ok("DELETE", "trash"), { deleted: true })
      assert.deepStrictEqual((yield* trash).items, [])
      assert.deepInclude(yield* ok("GET", "storage"), { usedBytes: 0, trashBytes: 0 })
      assert.strictEqual(yield* outcome("POST", `files/${g.id}/restore`), "404 File not found")
      const rows = yield* sql`SELECT 1 FROM file_groups WHERE id IN (${f.groupId}, ${g.groupId})`
      assert.deepStrictEqual(rows, [])
      assert.deepStrictEqual(yield* faultsOfTree(userId), [])
    })
  )

  it.effect("shows and gives back what is in the buckets of a key, and nothing else", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const { ok, outcome, scoped, userId } = yield* newClient
      const [one, two] = [yield* ensured(userId, "one"), yield* ensured(userId, "two/x")]
      const f = yield* written(one, "f", "f")
      yield* ok("DELETE", `files/${f.id}`)
      yield* ok("DELETE", `directories/${two.id}`)
      const { items } = (yield* ask("GET", "/api/trash", yield* scoped("read:two"))).json as {
        items: Array<{ path: string }>
      }
      assert.deepStrictEqual(
        items.map(({ path }) => path),
        ["two/x"]
      )
      const writer = yield* scoped("write:two")
      assert.strictEqual(
        yield* outcome("POST", `files/${f.id}/restore`, undefined, writer),
        "404 File not found"
      )
      const reader = yield* scoped("write:one")
      assert.strictEqual(
        yield* outcome("POST", `directories/${two.id}/restore`, undefined, reader),
        "404 Directory not found"
      )
      assert.strictEqual(yield* outcome("POST", `directories/${two.id}/restore`, undefined, writer), "200")
    })
  )

  describe("a sweep", () => {
    it.effect("deletes all that a user had who was deleted a day ago, links and flags with it", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        const { ask } = yield* TestServer
        const [gone, late] = [yield* newClient, yield* newClient]
        for (const { ok, userId } of [gone, late]) {
          const docs = yield* ensured(userId, "docs/a")
          const [f, g] = [yield* written(docs, "f", "f"), yield* written(docs, "g", "g")]
          yield* written(docs, "g", "newer")
          yield* ok("DELETE", `files/${f.id}`)
          yield* ok("POST", "share-links", { fileId: g.id })
          yield* ok("POST", "sync/subscriptions", { resourceType: "directory", resourceId: docs.id })
          assert.strictEqual((yield* ask("DELETE", `/api/v1/admin/users/${userId}`)).status, 200)
        }
        const age = (userId: string, hours: number) =>
          sql`UPDATE users SET deleted_at = now() - ${hours}::float8 * interval '1 hour' WHERE id = ${userId}`
        yield* age(gone.userId, 24.1)
        yield* age(late.userId, 23.9)
        yield* swept
        yield* sweepLinks
        yield* sweepFlags
        const left = (userId: string) =>
          Effect.map(
            sql<{ of: string }>`SELECT DISTINCT of FROM (
              SELECT 'directory' AS of, user_id FROM directories UNION ALL SELECT 'file', user_id FROM file_groups
              UNION ALL SELECT 'version', user_id FROM file_versions UNION ALL SELECT 'entry', user_id FROM file_trash
              UNION ALL SELECT 'reference', user_id FROM blob_refs UNION ALL SELECT 'link', user_id FROM share_links
              UNION ALL SELECT 'flag', user_id FROM sync_flags
              UNION ALL SELECT 'bytes', user_id FROM blob_usage WHERE bytes > 0) AS rows
            WHERE user_id = ${userId} ORDER BY of`,
            (rows) => rows.map((row) => row.of)
          )
        assert.deepStrictEqual(yield* left(gone.userId), [])
        assert.deepStrictEqual(yield* left(late.userId), [
          "bytes",
          "directory",
          "entry",
          "file",
          "flag",
          "link",
          "reference",
          "version"
        ])
        assert.deepStrictEqual(yield* faultsOfTree(late.userId), [])
      })
    )

    it.effect("deletes what has been there for 30 days", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        const { ok, trash, userId } = yield* newClient
        const docs = yield* ensured(userId, "docs")
        const [f, g] = [yield* written(docs, "f", "f"), yield* written(docs, "g", "g")]
        yield* ok("DELETE", `files/${f.id}`)
        yield* ok("DELETE", `files/${g.id}`)
        const age = (id: string, days: number) =>
          sql`UPDATE file_trash SET trashed_at = now() - ${days}::float8 * interval '1 day' WHERE item_id = ${id}`
        yield* age(f.groupId, 30.01)
        yield* age(g.groupId, 29.99)
        yield* swept
        assert.deepStrictEqual(
          (yield* trash).items.map(({ itemId }) => itemId),
          [g.groupId]
        )
        assert.deepInclude(yield* ok("GET", "storage"), { usedBytes: 1, trashBytes: 1 })
        assert.deepStrictEqual(yield* faultsOfTree(userId), [])
      })
    )

    it.effect(
      "deletes versions that were not current for 90 days, or as many as the bucket says, but not the newest 10",
      () =>
        Effect.gen(function* () {
          const sql = yield* SqlClient
          const { ok, userId } = yield* newClient
          const left = Effect.fnUntraced(function* (
            bucket: string,
            days: number,
            versionDays?: number | null
          ) {
            const directory = yield* ensured(userId, bucket)
            if (versionDays !== undefined) yield* ok("PATCH", `directories/${directory.id}`, { versionDays })
            for (let version = 1; version <= 13; version++) yield* written(directory, "f", `${version}`)
            yield* sql`UPDATE file_versions v SET superseded_at = now() - ${days}::float8 * interval '1 day'
            FROM file_groups g WHERE g.id = v.group_id AND g.bucket_id = ${directory.id} AND v.superseded_at IS NOT NULL`
            yield* swept
            const { files } = (yield* ok("GET", `directories/${directory.id}`)) as { files: Array<ShownFile> }
            const history = (yield* ok("GET", `files/${files[0]?.id}/versions`)) as {
              versions: Array<{ version: number }>
            }
            return history.versions.map(({ version }) => version)
          })
          const newest = [13, 12, 11, 10, 9, 8, 7, 6, 5, 4]
          assert.deepStrictEqual(yield* left("usual", 90.01), newest)
          assert.deepStrictEqual(yield* left("young", 89.99), [...newest, 3, 2, 1])
          assert.deepStrictEqual(yield* left("short", 7.01, 7), newest)
          assert.deepStrictEqual(yield* left("ever", 5_000, null), [...newest, 3, 2, 1])
          assert.deepStrictEqual(yield* faultsOfTree(userId), [])
        })
    )
  })
})
