import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { newId } from "#src/infra/crypto/Tokens.ts"
import { askBy, signIn } from "#test/accounts/sessions/SignedIn.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { makeTree } from "./SyncedTree.ts"

const live = { excludeTestServices: true } as const
const path = "/api/sync/manifest"

layer(TestServer.shared, live)("the manifest", (it) => {
  it.effect("has the flagged directories with all that is below them, and the files there", () =>
    Effect.gen(function* () {
      const { directory, file, flagged, manifest, userId, version } = yield* makeTree
      const bucket = yield* directory(undefined, "Work")
      const plans = yield* directory(bucket, "plans")
      const deep = yield* directory(plans, "deep")
      const first = yield* file(deep, "a.txt")
      const current = yield* version(first.groupId, "a.txt", 2)
      yield* file(bucket, "not here")
      yield* directory(bucket, "plans too")
      yield* flagged("directory", plans.id)
      const { cursor, directories, files, generatedAt } = yield* manifest()
      const own = { ownerId: userId, permission: "owner", encryptionEnabled: false }
      assert.deepStrictEqual<ReadonlyArray<object>>(directories, [
        { id: plans.id, name: "plans", parentId: bucket.id, ...own },
        { id: deep.id, name: "deep", parentId: plans.id, ...own }
      ])
      assert.deepStrictEqual<ReadonlyArray<object>>(files, [
        {
          versionGroupId: first.groupId,
          currentFileId: current.id,
          version: 2,
          fileHash: current.fileHash,
          fileSize: 2,
          mimeType: "text/plain",
          originalName: "a.txt",
          directoryId: deep.id,
          isEncrypted: false,
          encryptionKeyId: null,
          ownerId: userId,
          permission: "owner",
          modifiedAt: "2026-01-02T03:04:05.000Z"
        }
      ])
      assert.approximately(Date.parse(generatedAt), Date.now(), 60_000)
      assert.match(Buffer.from(cursor, "base64url").toString(), /^1\.\d+\.\d+$/)
    })
  )

  it.effect("is empty where nothing is flagged", () =>
    Effect.gen(function* () {
      const { directory, file, manifest } = yield* makeTree
      yield* file(yield* directory(undefined, "Work"), "a.txt")
      const { directories, files } = yield* manifest()
      assert.deepStrictEqual([directories, files], [[], []])
    })
  )

  it.effect("has a flagged file alone, once, and by the file's own flag before the directory's", () =>
    Effect.gen(function* () {
      const { device, directory, file, flagged, names } = yield* makeTree
      const laptop = yield* device("Laptop")
      const bucket = yield* directory(undefined, "Work")
      const [alone, twice] = [yield* file(bucket, "alone"), yield* file(bucket, "twice")]
      yield* flagged("file", alone.groupId)
      assert.deepStrictEqual(yield* names(), ["alone"])
      yield* flagged("directory", bucket.id)
      yield* flagged("file", twice.groupId, { scope: "selected", deviceIds: [laptop] })
      assert.deepStrictEqual(yield* names(), ["Work/", "alone"])
      assert.deepStrictEqual(yield* names(laptop), ["Work/", "alone", "twice"])
      yield* flagged("directory", bucket.id, { scope: "selected", deviceIds: [laptop] })
      assert.deepStrictEqual(yield* names(), ["alone"])
    })
  )

  it.effect("is filtered by X-Device-Id; without it, what is for all devices", () =>
    Effect.gen(function* () {
      const { ask, device, directory, file, flagged, key, names } = yield* makeTree
      const [one, two] = [yield* device("One"), yield* device("Two")]
      const all = yield* directory(undefined, "All")
      const some = yield* directory(undefined, "Some")
      const back = yield* directory(some, "back")
      yield* file(all, "all.txt")
      yield* file(some, "some.txt")
      yield* file(back, "back.txt")
      yield* flagged("directory", all.id)
      yield* flagged("directory", some.id, { scope: "selected", deviceIds: [one] })
      yield* flagged("directory", back.id, { scope: "all" })
      assert.deepStrictEqual(yield* names(), ["All/", "all.txt", "back.txt", "back/"])
      assert.deepStrictEqual(yield* names(two), ["All/", "all.txt", "back.txt", "back/"])
      assert.deepStrictEqual(yield* names(one), ["All/", "Some/", "all.txt", "back.txt", "back/", "some.txt"])
      const unknown = yield* ask("GET", path, { key, headers: { "x-device-id": newId("dev") } })
      assert.deepStrictEqual([unknown.status, unknown.json], [404, { error: "Device not found" }])
    })
  )

  it.effect("has nothing of the Inbox and of the trash, wherever it was flagged before", () =>
    Effect.gen(function* () {
      const { directory, file, flagged, names, sql } = yield* makeTree
      const bucket = yield* directory(undefined, "Work")
      const gone = yield* directory(bucket, "gone")
      const moved = yield* file(bucket, "moved")
      const { groupId } = yield* file(bucket, "kept")
      yield* file(gone, "gone.txt")
      yield* flagged("directory", bucket.id)
      yield* flagged("file", moved.groupId)
      assert.deepStrictEqual(yield* names(), ["Work/", "gone.txt", "gone/", "kept", "moved"])
      const inbox = yield* directory(undefined, "Inbox", "inbox")
      yield* sql`UPDATE file_groups SET bucket_id = ${inbox.id}, directory_id = ${inbox.id} WHERE id = ${moved.groupId}`
      yield* sql`UPDATE directories SET trash_id = 't' WHERE id = ${gone.id}`
      yield* sql`UPDATE file_groups SET trash_id = 't' WHERE directory_id = ${gone.id}`
      assert.deepStrictEqual(yield* names(), ["Work/", "kept"])
      yield* sql`UPDATE file_groups SET name = 'renamed', path = 'renamed' WHERE id = ${groupId}`
      assert.deepStrictEqual(yield* names(), ["Work/", "renamed"])
    })
  )

  it.effect("keeps its ETag while its lists stay, and is 304 to those who have it", () =>
    Effect.gen(function* () {
      const { ask, directory, file, flagged, key, version } = yield* makeTree
      const bucket = yield* directory(undefined, "Work")
      const { groupId } = yield* file(bucket, "a.txt")
      yield* flagged("directory", bucket.id)
      const one = yield* ask("GET", path, { key })
      const etag = one.headers.get("etag") ?? ""
      assert.match(etag, /^W\/"[\w-]{22}"$/)
      assert.strictEqual(one.headers.get("cache-control"), "private, no-cache")
      assert.strictEqual(one.headers.get("content-length"), String(one.bytes.length))
      const asked = { key, headers: { "if-none-match": etag } }
      const same = yield* ask("GET", path, asked)
      assert.deepStrictEqual([same.status, same.bytes.length, same.headers.get("etag")], [304, 0, etag])
      yield* version(groupId, "a.txt", 2)
      const other = yield* ask("GET", path, asked)
      assert.strictEqual(other.status, 200)
      assert.notStrictEqual(other.headers.get("etag"), etag)
    })
  )

  it.effect("takes the scope read: that of a bucket shows the bucket alone; sessions will do", () =>
    Effect.gen(function* () {
      const { ask, directory, file, flagged, key, names } = yield* makeTree
      const { makeKey } = yield* TestServer
      const [photos, work] = [yield* directory(undefined, "photos"), yield* directory(undefined, "work")]
      const { groupId } = yield* file(work, "work.txt")
      yield* file(photos, "photo.jpg")
      yield* flagged("directory", photos.id)
      yield* flagged("file", groupId)
      const by = (scopes: ReadonlyArray<string>) => makeKey({ scopes }, key)
      const all = ["photo.jpg", "photos/", "work.txt"]
      assert.deepStrictEqual(yield* names(undefined, { key: (yield* by(["read"])).key }), all)
      assert.deepStrictEqual(
        yield* names(undefined, { key: (yield* by(["read:photos"])).key }),
        all.slice(0, 2)
      )
      assert.deepStrictEqual(yield* names(undefined, { key: (yield* by(["read:none"])).key }), [])
      for (const scope of ["write", "write:photos"])
        assert.strictEqual((yield* ask("GET", path, { key: (yield* by([scope])).key })).status, 403, scope)
      assert.strictEqual((yield* askBy(yield* signIn(key), "GET", path)).status, 200)
      const none = yield* ask("GET", path, { key: "" })
      assert.deepStrictEqual([none.status, none.json], [401, { error: "Invalid or missing API key" }])
    })
  )

  it.effect("shows one state: a file that is moved meanwhile is in it once", () =>
    Effect.gen(function* () {
      const { ask, directory, file, flagged, key, manifest } = yield* makeTree
      const bucket = yield* directory(undefined, "Work")
      const [first, last] = [yield* directory(bucket, "a"), yield* directory(bucket, "z")]
      const { groupId } = yield* file(first, "moved.txt")
      yield* flagged("directory", first.id)
      yield* flagged("directory", last.id)
      const move = (directoryId: string) =>
        Effect.tap(
          ask("PATCH", `/api/files/${groupId}`, { key, json: { directoryId } }),
          ({ json, status }) => Effect.sync(() => assert.strictEqual(status, 200, JSON.stringify(json)))
        )
      const moves = Effect.forEach(
        Array.from({ length: 20 }, (_, index) => (index % 2 === 0 ? last.id : first.id)),
        move
      )
      const reads = Effect.forEach(Array.from({ length: 20 }), () => manifest())
      const [read] = yield* Effect.all([reads, moves], { concurrency: "unbounded" })
      for (const { files } of read)
        assert.deepStrictEqual(
          files.map(({ versionGroupId }) => versionGroupId),
          [groupId]
        )
    })
  )

  it.effect("is read in pages that end where directories do, in byte order of paths of any script", () =>
    Effect.gen(function* () {
      const { directory, file, flagged, names } = yield* makeTree
      const bucket = yield* directory(undefined, "Work")
      const one = yield* directory(bucket, "a b")
      const beside = yield* directory(bucket, "a b!")
      const other = yield* directory(bucket, "a")
      const last = yield* directory(one, "\u{10ffff}\uffff")
      for (const place of [one, beside, other, last]) yield* file(place, `file of ${place.path}`)
      yield* flagged("directory", one.id)
      assert.deepStrictEqual(yield* names(), [
        "a b/",
        "file of a b/",
        "file of a b/\u{10ffff}\uffff/",
        "\u{10ffff}\uffff/"
      ])
    })
  )
})

layer(TestServer.own({ limits: { walkEntriesAtOnce: 3, manifestEntries: 20 } }), live)(
  "a long manifest",
  (it) => {
    it.effect("has every entry once, over several pages, and no more entries than the limit", () =>
      Effect.gen(function* () {
        const { ask, directory, file, flagged, key, names } = yield* makeTree
        const bucket = yield* directory(undefined, "Work")
        const expected: Array<string> = ["Work/"]
        for (let count = 0; count < 5; count++) {
          const made = yield* directory(bucket, `d${count}`)
          expected.push(`d${count}/`)
          for (const name of [`f${count}`, `g${count}`]) {
            yield* file(made, name)
            expected.push(name)
          }
        }
        const alone = yield* directory(undefined, "Alone")
        for (let count = 0; count < 4; count++) {
          const { groupId } = yield* file(alone, `alone${count}`)
          yield* flagged("file", groupId)
          expected.push(`alone${count}`)
        }
        yield* flagged("directory", bucket.id)
        assert.deepStrictEqual(yield* names(), expected.sort())
        yield* file(bucket, "one too many")
        const refused = yield* ask("GET", "/api/sync/manifest", { key })
        assert.deepStrictEqual(
          [refused.status, refused.json],
          [409, { error: "More than 20 directories and files are synchronised; flag fewer" }]
        )
      })
    )
  }
)
