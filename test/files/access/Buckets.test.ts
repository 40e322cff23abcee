import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer } from "#test/harness/TestServer.ts"
import { namesOf, newClient, sharedTree, type ShownDirectory } from "../tree/TreeClient.ts"
import { ensured, faultsOfTree, written } from "../tree/TreeSteps.ts"

const fileGone = "404 File not found"
const directoryGone = "404 Directory not found"
const takes = (scope: string) => `403 This takes the scope ${scope}`

/** A user with the buckets `one` and `two`, a file in each, and keys of theirs by their scopes. */
const makeBuckets = Effect.gen(function* () {
  const { ask } = yield* TestServer
  const client = yield* newClient
  const [one, two] = [yield* ensured(client.userId, "one/a"), yield* ensured(client.userId, "two/b")]
  const [f, g] = [yield* written(one, "f", "in one"), yield* written(two, "g", "in two")]
  const by = (...scopes: ReadonlyArray<string>) =>
    Effect.map(client.scoped(...scopes), (asked) => ({
      outcome: (method: string, path: string, json?: object) => client.outcome(method, path, json, asked),
      /** the status of an answer of bytes */
      bytes: (path: string) => Effect.map(ask("GET", `/api/${path}`, asked), ({ status }) => status)
    }))
  return { ...client, one, two, f, g, by }
})

layer(sharedTree, { excludeTestServices: true })("a key of some buckets", (it) => {
  it.effect("goes by the names that they have now, also where their files were in memory", () =>
    Effect.gen(function* () {
      const { by, f, ok, one, userId } = yield* makeBuckets
      const [reader, other] = [yield* by("read:one"), yield* by("read:three")]
      const seen = (key: typeof reader) =>
        Effect.all([
          key.bytes(`files/${f.id}`),
          key.bytes(`download/${one.id}`),
          key.bytes(`files/${f.groupId}`)
        ])
      assert.deepStrictEqual(yield* seen(reader), [200, 200, 200])
      assert.deepStrictEqual(yield* seen(other), [404, 404, 404])
      yield* ok("PATCH", `directories/${one.bucketId}`, { name: "three" })
      assert.deepStrictEqual(yield* seen(reader), [404, 404, 404])
      assert.deepStrictEqual(yield* seen(other), [200, 200, 200])
      // Another bucket of the old name is another one.
      yield* ensured(userId, "one")
      assert.deepStrictEqual(yield* seen(reader), [404, 404, 404])
      assert.deepStrictEqual(yield* faultsOfTree(userId), [])
    })
  )

  it.effect("does not reach buckets whose names differ in case, or go on", () =>
    Effect.gen(function* () {
      const { by, f } = yield* makeBuckets
      for (const scope of ["read:One", "read:ONE", "read:one2", "read:on", "read:one."])
        assert.strictEqual(yield* (yield* by(scope)).bytes(`files/${f.id}`), 404, scope)
    })
  )

  it.effect("makes and renames no bucket of another name, whether there is one or not", () =>
    Effect.gen(function* () {
      const { by, one } = yield* makeBuckets
      const { outcome } = yield* by("write:one")
      for (const name of ["two", "three"]) {
        assert.strictEqual(yield* outcome("POST", "directories", { name }), takes(`write:${name}`))
        assert.strictEqual(
          yield* outcome("PATCH", `directories/${one.bucketId}`, { name }),
          takes(`write:${name}`)
        )
        assert.strictEqual(
          yield* outcome("PATCH", `directories/${one.id}`, { parentId: null, name }),
          takes(`write:${name}`)
        )
      }
      const both = yield* by("write:one", "write:two", "write:three")
      assert.strictEqual(
        yield* both.outcome("PATCH", `directories/${one.bucketId}`, { name: "two" }),
        "409 name: is taken"
      )
      assert.strictEqual(
        yield* both.outcome("PATCH", `directories/${one.id}`, { parentId: null, name: "three" }),
        "200"
      )
    })
  )

  it.effect("moves with write at both ends, and copies with read at the one and write at the other", () =>
    Effect.gen(function* () {
      const { by, f, g, one, two } = yield* makeBuckets
      const move = { directoryId: two.id }
      for (const [scopes, moved, copied] of [
        [["write:one"], directoryGone, fileGone],
        [["write:two"], fileGone, fileGone],
        [["read:one", "write:one"], directoryGone, directoryGone],
        [["read:two", "write:two"], fileGone, fileGone],
        [["read:one", "write:two"], fileGone, "201"],
        [["write:one", "write:two"], "200", fileGone]
      ] as const) {
        const { outcome } = yield* by(...scopes)
        assert.strictEqual(yield* outcome("POST", `files/${f.id}/copy`, move), copied, scopes.join())
        assert.strictEqual(
          yield* outcome("PATCH", `files/${f.id}`, { ...move, onConflict: "rename" }),
          moved,
          scopes.join()
        )
      }
      const { outcome } = yield* by("write:one")
      assert.strictEqual(yield* outcome("PATCH", `files/${g.id}`, { directoryId: one.id }), fileGone)
      assert.strictEqual(yield* outcome("DELETE", `files/${g.id}`), fileGone)
      assert.strictEqual(yield* outcome("DELETE", `directories/${two.id}`), directoryGone)
      assert.strictEqual(yield* outcome("PATCH", `directories/${two.id}`, { name: "x" }), directoryGone)
    })
  )

  it.effect("sees the Inbox where it may read it, and makes none where not", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const { scoped, userId } = yield* makeBuckets
      const listed = (scope: string) =>
        Effect.gen(function* () {
          const { json } = yield* ask("GET", "/api/directories", yield* scoped(scope))
          return namesOf((json as { readonly directories: ReadonlyArray<ShownDirectory> }).directories)
        })
      assert.deepStrictEqual(yield* listed("read:one"), ["one", "a"])
      assert.deepStrictEqual(yield* listed("read:Inbox"), ["Inbox"])
      assert.deepStrictEqual(yield* listed("read:inbox"), [])
      assert.deepStrictEqual(yield* listed("read"), ["Inbox", "one", "a", "two", "b"])
      assert.deepStrictEqual(yield* faultsOfTree(userId), [])
    })
  )

  it.effect("that becomes a part of another has its settings, and its own when it is one again", () =>
    Effect.gen(function* () {
      const { by, f, ok, one, two, userId } = yield* makeBuckets
      const days = (id: string) =>
        Effect.map(
          ok("GET", `directories/${id}`),
          (shown) =>
            (shown as { readonly directory: { readonly versionDays: number | null } }).directory.versionDays
        )
      yield* ok("PATCH", `directories/${one.bucketId}`, { versionDays: 7 })
      assert.strictEqual(yield* days(one.id), 7)
      yield* ok("PATCH", `directories/${one.bucketId}`, { parentId: two.id })
      assert.strictEqual(yield* days(one.id), 90)
      assert.strictEqual(yield* (yield* by("read:one")).bytes(`files/${f.id}`), 404)
      assert.strictEqual(yield* (yield* by("read:two")).bytes(`files/${f.id}`), 200)
      yield* ok("PATCH", `directories/${one.id}`, { parentId: null, name: "new" })
      assert.strictEqual(yield* days(one.id), 90)
      yield* ok("PATCH", `directories/${one.bucketId}`, { parentId: null })
      assert.strictEqual(yield* days(one.bucketId), 7)
      assert.deepStrictEqual(yield* faultsOfTree(userId), [])
    })
  )
})
