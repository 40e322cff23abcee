import { assert, describe, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { TestServer } from "#test/harness/TestServer.ts"
import { sha256Of } from "#test/infra/blobs/BlobSteps.ts"
import { namesOf, newClient, sharedTree, type ShownFile } from "./TreeClient.ts"
import { ensured, faultsOfTree, written } from "./TreeSteps.ts"

interface ShownHistory {
  readonly fileId: string
  readonly versionGroupId: string
  readonly versions: ReadonlyArray<{
    readonly id: string
    readonly version: number
    readonly isCurrent: boolean
    readonly fileHash: string
  }>
}

const hashOf = (text: string): string => sha256Of(Buffer.from(text))

layer(sharedTree, { excludeTestServices: true, timeout: 60_000 })("files", (it) => {
  describe("the history of a file", () => {
    it.effect("has all versions, newest first, by any version's id", () =>
      Effect.gen(function* () {
        const { ok, outcome, userId } = yield* newClient
        const docs = yield* ensured(userId, "docs")
        const old = yield* written(docs, "a.txt", "old")
        const now = yield* written(docs, "a.txt", "new!", { isEncrypted: true, encryptionKeyId: "ek_1" })
        const history = (yield* ok("GET", `files/${old.id}/versions`)) as ShownHistory & {
          versions: Array<{ createdAt: string }>
        }
        const [first, second] = history.versions
        assert.deepStrictEqual(history as unknown, {
          fileId: old.id,
          versionGroupId: old.groupId,
          name: "a.txt",
          path: "docs/a.txt",
          directoryId: docs.id,
          versions: [
            {
              id: now.id,
              version: 2,
              originalName: "a.txt",
              mimeType: "text/plain",
              fileSize: 4,
              isEncrypted: true,
              encryptionKeyId: "ek_1",
              isCurrent: true,
              fileHash: hashOf("new!"),
              url: `/api/files/${now.id}`,
              modifiedAt: "2026-01-02T03:04:05.678Z",
              createdAt: first?.createdAt
            },
            {
              id: old.id,
              version: 1,
              originalName: "a.txt",
              mimeType: "text/plain",
              fileSize: 3,
              isEncrypted: false,
              encryptionKeyId: null,
              isCurrent: false,
              fileHash: hashOf("old"),
              url: `/api/files/${old.id}`,
              modifiedAt: "2026-01-02T03:04:05.678Z",
              createdAt: second?.createdAt
            }
          ]
        })
        const same = (yield* ok("GET", `files/${now.id}/versions`)) as ShownHistory
        assert.deepStrictEqual(same.versions, history.versions)
        const byGroup = (yield* ok("GET", `files/${old.groupId}/versions`)) as ShownHistory
        assert.strictEqual(byGroup.fileId, now.id)
        const other = yield* newClient
        assert.strictEqual(yield* other.outcome("GET", `files/${old.id}/versions`), "404 File not found")
        assert.strictEqual(yield* outcome("GET", "files/fv_x/versions"), "404 File not found")
      })
    )

    it.effect("loses a version that is deleted, but not the current one", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        const { ok, outcome, scoped, userId } = yield* newClient
        const docs = yield* ensured(userId, "docs")
        const old = yield* written(docs, "a.txt", "12345")
        const now = yield* written(docs, "a.txt", "678")
        const path = `files/${now.id}/versions`
        const writer = yield* scoped("write", "read")
        assert.match(yield* outcome("DELETE", `${path}/${old.id}`, undefined, writer), /^403 /)
        assert.strictEqual(
          yield* outcome("DELETE", `${path}/${now.id}`),
          "409 The current version cannot be deleted"
        )
        assert.strictEqual(yield* outcome("DELETE", `${path}/fv_other`), "404 File not found")
        assert.deepStrictEqual(yield* ok("DELETE", `${path}/${old.id}`), { deleted: true })
        const left = (yield* ok("GET", path)) as ShownHistory
        assert.deepStrictEqual(
          left.versions.map(({ version }) => version),
          [2]
        )
        assert.deepStrictEqual(yield* ok("GET", "storage"), { usedBytes: 3, trashBytes: 0, quotaBytes: null })
        assert.strictEqual((yield* written(docs, "a.txt", "9")).version, 3)
        const refs = yield* sql`SELECT 1 FROM blob_refs WHERE ref = ${`version ${old.id}`}`
        assert.deepStrictEqual(refs, [])
      })
    )

    it.effect("gets an old version again as a new current one", () =>
      Effect.gen(function* () {
        const { ok, userId } = yield* newClient
        const docs = yield* ensured(userId, "docs")
        const old = yield* written(docs, "a.txt", "old")
        const now = yield* written(docs, "a.txt", "new")
        const again = (yield* ok("POST", `files/${old.id}/restore`)) as ShownFile
        assert.deepInclude(again, {
          version: 3,
          fileHash: hashOf("old"),
          versionGroupId: old.groupId,
          name: "a.txt"
        })
        assert.notInclude([old.id, now.id], again.id)
        assert.deepStrictEqual(yield* ok("POST", `files/${again.id}/restore`), again)
        const history = (yield* ok("GET", `files/${old.id}/versions`)) as ShownHistory
        assert.deepStrictEqual(
          history.versions.map(({ isCurrent, version }) => [version, isCurrent]),
          [
            [3, true],
            [2, false],
            [1, false]
          ]
        )
        assert.deepStrictEqual(yield* faultsOfTree(userId), [])
      })
    )
  })

  describe("a search", () => {
    it.effect("finds parts of names in any case and script, page by page", () =>
      Effect.gen(function* () {
        const { ok, outcome, scoped, userId } = yield* newClient
        const a = yield* ensured(userId, "one/a")
        const b = yield* ensured(userId, "two")
        for (const name of ["Résumé.pdf", "RESUME 2.pdf", "50%_x.txt", "ﬁne.txt"])
          yield* written(a, name, name)
        for (const name of ["my résumé", "other"]) yield* written(b, name, name)
        const find = Effect.fnUntraced(function* (q: string, more = "") {
          const found = yield* ok("GET", `files?q=${encodeURIComponent(q)}${more}`)
          return found as { files: ReadonlyArray<ShownFile>; cursor: string | null }
        })
        assert.deepStrictEqual(namesOf((yield* find("RÉSUMÉ")).files), ["Résumé.pdf", "my résumé"])
        assert.deepStrictEqual(namesOf((yield* find("resume")).files), ["RESUME 2.pdf"])
        assert.deepStrictEqual(namesOf((yield* find("%_")).files), ["50%_x.txt"])
        assert.deepStrictEqual(namesOf((yield* find("FINE")).files), ["ﬁne.txt"])
        const all: Array<string> = []
        let cursor: string | null = ""
        while (cursor !== null) {
          const next = yield* ok("GET", `files?limit=2${cursor === "" ? "" : `&cursor=${cursor}`}`)
          const { cursor: after, files } = next as { files: ReadonlyArray<ShownFile>; cursor: string | null }
          all.push(...files.map(({ path }) => path))
          cursor = after
        }
        assert.deepStrictEqual(all, [
          "one/a/50%_x.txt",
          "one/a/RESUME 2.pdf",
          "one/a/Résumé.pdf",
          "one/a/ﬁne.txt",
          "two/my résumé",
          "two/other"
        ])
        const reader = yield* scoped("read:two")
        const { ask } = yield* TestServer
        const seen = (yield* ask("GET", "/api/files?q=r", reader)).json as { files: ReadonlyArray<ShownFile> }
        assert.deepStrictEqual(namesOf(seen.files), ["my résumé", "other"])
        assert.match(yield* outcome("GET", "files?q=r", undefined, yield* scoped("write")), /^403 /)
        assert.match(yield* outcome("GET", "files?q="), /^400 q: /)
        const at = (path: string) => ok("GET", `files?path=${encodeURIComponent(path)}`)
        assert.deepStrictEqual(namesOf(((yield* at("two/my résumé")) as typeof seen).files), ["my résumé"])
        assert.deepStrictEqual(yield* at("two/my"), { files: [], cursor: null })
        assert.match(yield* outcome("GET", "files?path=one/x", undefined, reader), /^403 /)
      })
    )
  })

  describe("a change", () => {
    it.effect("renames and moves a file with its versions", () =>
      Effect.gen(function* () {
        const { ok, outcome, page, userId } = yield* newClient
        const [one, two] = [yield* ensured(userId, "one/a"), yield* ensured(userId, "two")]
        const old = yield* written(one, "f.txt", "old")
        const now = yield* written(one, "f.txt", "new")
        const moved = yield* ok("PATCH", `files/${old.id}`, { name: "g.txt", directoryId: two.id })
        assert.deepInclude(moved, {
          id: now.id,
          version: 2,
          path: "two/g.txt",
          originalName: "f.txt",
          directoryId: two.id
        })
        assert.deepStrictEqual(namesOf((yield* page(one.id)).files), [])
        assert.deepStrictEqual(yield* ok("PATCH", `files/${now.id}`, { name: "g.txt" }), moved)
        assert.match(yield* outcome("PATCH", `files/${now.id}`, { name: "a/b" }), /^400 name: /)
        assert.strictEqual(
          yield* outcome("PATCH", `files/${now.id}`, { directoryId: "dir_0000000000000000000000" }),
          "404 Directory not found"
        )
        assert.match(yield* outcome("PATCH", `files/${now.id}`, { nam: "x" }), /^400 nam: is not known here/)
        assert.deepStrictEqual(yield* faultsOfTree(userId), [])
      })
    )

    it.effect("fails, replaces or takes another name where the name is taken", () =>
      Effect.gen(function* () {
        const { ok, outcome, page, trash, userId } = yield* newClient
        const docs = yield* ensured(userId, "docs")
        const [a, b, c] = [
          yield* written(docs, "a.tar.gz", "a"),
          yield* written(docs, "b", "b"),
          yield* written(docs, "c", "c")
        ]
        yield* ensured(userId, "docs/d")
        assert.strictEqual(
          yield* outcome("PATCH", `files/${b.id}`, { name: "a.tar.gz" }),
          "409 name: is taken"
        )
        const renamed = { name: "a.tar.gz", onConflict: "rename" }
        assert.deepInclude(yield* ok("PATCH", `files/${b.id}`, renamed), { name: "a.tar (1).gz" })
        assert.deepInclude(yield* ok("PATCH", `files/${c.id}`, renamed), { name: "a.tar (2).gz" })
        yield* ok("PATCH", `files/${c.id}`, { name: "a.tar.gz", onConflict: "replace" })
        assert.deepStrictEqual(namesOf((yield* page(docs.id)).files), ["a.tar (1).gz", "a.tar.gz"])
        assert.deepStrictEqual(
          (yield* trash).items.map(({ itemId }) => itemId),
          [a.groupId]
        )
        // A file and a directory may share a name.
        assert.deepInclude(yield* ok("PATCH", `files/${c.id}`, { name: "d" }), { path: "docs/d" })
        assert.deepStrictEqual(yield* faultsOfTree(userId), [])
      })
    )

    it.effect("copies a version to a place of its own", () =>
      Effect.gen(function* () {
        const { ok, outcome, scoped, userId } = yield* newClient
        const [one, two] = [yield* ensured(userId, "one"), yield* ensured(userId, "two")]
        const old = yield* written(one, "f.txt", "old")
        const now = yield* written(one, "f.txt", "new")
        const copy = (json: object) => ok("POST", `files/${now.id}/copy`, json) as Effect.Effect<ShownFile>
        const copied = yield* copy({ directoryId: two.id })
        assert.deepInclude(copied, { path: "two/f.txt", version: 1, fileHash: hashOf("new") })
        assert.notStrictEqual(copied.versionGroupId, now.groupId)
        assert.strictEqual(yield* outcome("POST", `files/${now.id}/copy`, {}), "409 name: is taken")
        assert.deepInclude(yield* copy({ onConflict: "rename" }), { path: "one/f (1).txt" })
        const replaced = yield* ok("POST", `files/${old.id}/copy`, {
          directoryId: two.id,
          onConflict: "replace"
        })
        assert.deepInclude(replaced, {
          version: 2,
          versionGroupId: copied.versionGroupId,
          fileHash: hashOf("old")
        })
        assert.deepInclude(yield* ok("GET", "storage"), { usedBytes: 15 })
        // It takes the right to read here, and to write there.
        const writer = yield* scoped("write:one", "write:two", "read:two")
        assert.strictEqual(
          yield* outcome("POST", `files/${now.id}/copy`, { directoryId: two.id }, writer),
          "404 File not found"
        )
        assert.deepStrictEqual(yield* faultsOfTree(userId), [])
      })
    )

    it.effect("is refused with 412 where If-Match has another ETag than the current version", () =>
      Effect.gen(function* () {
        const { outcome, userId } = yield* newClient
        const docs = yield* ensured(userId, "docs")
        const old = yield* written(docs, "f", "old")
        yield* written(docs, "f", "new")
        const guarded = (method: string, path: string, tag: string, json?: object) =>
          outcome(method, `files/${old.id}${path}`, json, { headers: { "if-match": `"${hashOf(tag)}"` } })
        const refused = `412 If-Match: the ETag is "${hashOf("new")}"`
        assert.strictEqual(yield* guarded("PATCH", "", "old", { name: "g" }), refused)
        assert.strictEqual(yield* guarded("DELETE", "", "old"), refused)
        assert.strictEqual(yield* guarded("POST", "/restore", "old"), refused)
        assert.strictEqual(
          yield* guarded("POST", "/copy", "new", { name: "h" }),
          `412 If-Match: the ETag is "${hashOf("old")}"`
        )
        assert.strictEqual(yield* guarded("PATCH", "", "new", { name: "g" }), "200")
        assert.strictEqual(yield* guarded("POST", "/restore", "new"), "200")
        assert.strictEqual(yield* guarded("DELETE", "", "old"), "200")
      })
    )
  })
})
