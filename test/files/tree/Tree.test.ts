import { assert, describe, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { Tree } from "#src/files/tree/Tree.ts"
import { Versions } from "#src/files/tree/Versions.ts"
import { type Entry, Walk } from "#src/files/tree/Walk.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import { newUser, tagOf } from "#test/infra/blobs/BlobSteps.ts"
import { ensured, faultsOfTree, messageOf, plain, treeLayer, written } from "./TreeSteps.ts"

const small = { limits: { walkEntriesAtOnce: 3, directoriesPerUser: 40 } }

layer(treeLayer.pipe(Layer.provideMerge(TestStores.layerWith(small))), { excludeTestServices: true })(
  "a tree",
  (it) => {
    describe("directories", () => {
      it.effect("are made where they are missing, of one user each", () =>
        Effect.gen(function* () {
          const { bucket, directory, ensure } = yield* Tree
          const [one, other] = [yield* newUser, yield* newUser]
          const deep = yield* ensured(one, "docs/a/b")
          assert.deepInclude(deep, { name: "b", path: "a/b/", bucketName: "docs", versionDays: 90 })
          assert.strictEqual((yield* ensured(one, "docs/a/b")).id, deep.id)
          const docs = yield* bucket(one, "docs")
          assert.deepInclude(docs, { id: deep.bucketId, parentId: null, path: "", name: "docs" })
          const below = yield* ensure(one, docs, ["a", "c"])
          assert.deepInclude(below, { path: "a/c/", parentId: deep.parentId })
          assert.isUndefined(yield* bucket(other, "docs"))
          assert.strictEqual(yield* tagOf(directory(other, deep.id)), "NotFound")
          assert.notStrictEqual((yield* ensured(other, "docs/a/b")).id, deep.id)
        })
      )

      it.effect("of one path are one, however many are made at once", () =>
        Effect.gen(function* () {
          const user = yield* newUser
          const made = yield* Effect.all(
            Array.from({ length: 8 }, () => ensured(user, "x/y/z")),
            { concurrency: "unbounded" }
          )
          assert.strictEqual(new Set(made.map(({ id }) => id)).size, 1)
        })
      )

      it.effect("have names of 1 to 255 bytes in NFC, of any script, without / and control characters", () =>
        Effect.gen(function* () {
          const { ensure } = yield* Tree
          const user = yield* newUser
          const docs = yield* ensured(user, "docs")
          const kept = ["a".repeat(255), "日本語", "שלום", "e\u0301", "👩‍👩‍👧", "CON", "a\\b", " ", "...", "%2F"]
          for (const name of kept) {
            const made = yield* ensure(user, docs, [name])
            assert.strictEqual(made.name, name.normalize("NFC"))
          }
          assert.strictEqual((yield* ensure(user, docs, ["\u00e9"])).name, "\u00e9")
          const refused = [
            "",
            ".",
            "..",
            "a/b",
            "a\0",
            "a\n",
            "\u0085",
            "\ud800",
            "é".repeat(128),
            "a".repeat(256)
          ]
          for (const name of refused)
            assert.match(
              yield* messageOf(ensure(user, docs, [name])),
              /^path: expected a name of 1 to 255 bytes/
            )
          for (const name of ["", ".", "..", "a b", "ä", "a".repeat(101)])
            assert.match(
              yield* messageOf(ensure(user, undefined, [name])),
              /^path: expected the name of a bucket/
            )
        })
      )

      it.effect("are 64 levels deep at most, and a path 2048 bytes long", () =>
        Effect.gen(function* () {
          const user = yield* newUser
          const names = (count: number, name = "d") => Array.from({ length: count }, () => name).join("/")
          assert.strictEqual(
            yield* messageOf(ensured(user, names(65))),
            "path: at most 64 directories below each other"
          )
          assert.strictEqual(
            yield* messageOf(ensured(user, `b/${names(9, "n".repeat(250))}`)),
            "path: a path within a bucket has at most 2048 bytes"
          )
          const long = yield* ensured(user, `b/${names(8, "n".repeat(250))}`)
          assert.strictEqual(yield* tagOf(written(long, "f".repeat(41), "")), "BadRequest")
          assert.strictEqual((yield* written(long, "f".repeat(40), "")).path.length, 2_048)
        })
      )

      it.effect("are as many as a user may have", () =>
        Effect.gen(function* () {
          const user = yield* newUser
          const made = (path: string) => ensured(user, path)
          yield* Effect.forEach(
            Array.from({ length: 39 }, (_, index) => `b/d${index}`),
            made
          )
          assert.strictEqual(yield* messageOf(made("b/more")), "A user has at most 40 directories")
          assert.strictEqual((yield* made("b/d3")).name, "d3")
        })
      )
    })

    describe("versions", () => {
      it.effect("follow each other without gap or twin, the last one current", () =>
        Effect.gen(function* () {
          const { currentOf, find, history } = yield* Versions
          const user = yield* newUser
          const docs = yield* ensured(user, "docs")
          const all = yield* Effect.forEach(
            Array.from({ length: 12 }, (_, index) => `text ${index}`),
            (text) => written(docs, "a.txt", text),
            { concurrency: "unbounded" }
          )
          const [first] = all
          assert.deepStrictEqual(
            all.map(({ version }) => version).toSorted((one, next) => one - next),
            Array.from({ length: 12 }, (_, index) => index + 1)
          )
          const versions = yield* history(first?.id ?? "")
          assert.deepStrictEqual(
            versions.map(({ version }) => version),
            [12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1]
          )
          assert.deepStrictEqual(
            versions.map(({ isCurrent }) => isCurrent),
            [true, ...Array(11).fill(false)]
          )
          assert.deepStrictEqual(yield* currentOf(first?.groupId ?? ""), versions[0])
          assert.deepStrictEqual(yield* find(first?.groupId ?? ""), versions[0])
          assert.deepStrictEqual(yield* history(first?.groupId ?? ""), versions)
          const last = all.find(({ version }) => version === 12)
          assert.deepStrictEqual(yield* find(last?.id ?? ""), last)
          assert.strictEqual(yield* tagOf(find("fv_0000000000000000000000")), "NotFound")
          assert.strictEqual(yield* tagOf(find("fg_0000000000000000000000")), "NotFound")
          assert.deepStrictEqual(yield* faultsOfTree(user), [])
        })
      )

      it.effect("are written if another one is current only where the caller says so", () =>
        Effect.gen(function* () {
          const user = yield* newUser
          const docs = yield* ensured(user, "docs")
          const write = (ifVersion: string) => written(docs, "b.txt", "b", { ifVersion })
          assert.strictEqual(yield* messageOf(write("fv_1")), "ifVersion: there is no file of this name")
          const first = yield* write("none")
          assert.strictEqual(yield* messageOf(write("none")), `ifVersion: the current version is ${first.id}`)
          const second = yield* write(first.id)
          assert.strictEqual(
            yield* messageOf(write(first.id)),
            `ifVersion: the current version is ${second.id}`
          )
          const racing = yield* Effect.all(
            Array.from({ length: 6 }, () => Effect.result(write(second.id))),
            { concurrency: "unbounded" }
          )
          assert.strictEqual(racing.filter(({ _tag }) => _tag === "Success").length, 1)
          assert.deepStrictEqual(yield* faultsOfTree(user), [])
        })
      )

      it.effect("of several files in one transaction do not wait for each other in a circle", () =>
        Effect.gen(function* () {
          const sql = yield* SqlClient
          const { writeAll } = yield* Versions
          const user = yield* newUser
          const docs = yield* ensured(user, "docs")
          const { sha256, sizeBytes } = yield* written(docs, "seed", "seed")
          const form = (names: ReadonlyArray<string>) =>
            sql.withTransaction(
              writeAll(
                user,
                "test",
                names.map((name) => ({ ...plain, directory: docs, name, blob: { sha256, sizeBytes } }))
              )
            )
          const names = ["a", "b", "c", "d"]
          yield* Effect.all(
            Array.from({ length: 12 }, (_, index) => form(index % 2 === 0 ? names : names.toReversed())),
            { concurrency: "unbounded" }
          )
          assert.deepStrictEqual(yield* faultsOfTree(user), [])
        })
      )

      it.effect("go nowhere where the directory is in the trash", () =>
        Effect.gen(function* () {
          const sql = yield* SqlClient
          const user = yield* newUser
          const docs = yield* ensured(user, "docs/a")
          yield* sql`UPDATE directories SET trash_id = 't' WHERE id = ${docs.id}`
          assert.strictEqual(yield* messageOf(written(docs, "c", "c")), "The directory was deleted meanwhile")
        })
      )
    })

    describe("a walk", () => {
      const pathsOf = (entries: ReadonlyArray<Entry>) => entries.map(({ path }) => path)

      it.effect("goes through all below a directory in byte order, whatever the size of its pages", () =>
        Effect.gen(function* () {
          const { below, buckets, page, snapshot } = yield* Walk
          const user = yield* newUser
          yield* Effect.forEach(["w/a/b", "w/a-b", "w/a/b/c", "w/é", "w/a0", "w2"], (path) =>
            ensured(user, path)
          )
          const [root, a] = [yield* ensured(user, "w"), yield* ensured(user, "w/a")]
          yield* written(root, "\u{ffee}", "1")
          yield* written(root, "\u{1f600}", "2")
          yield* written(root, "a", "a file beside the directory of its name")
          yield* written(a, "b", "old")
          yield* written(a, "b", "new")
          const expected = ["a", "a-b/", "a/", "a/b", "a/b/", "a/b/c/", "a0/", "é/", "\u{ffee}", "\u{1f600}"]
          const seen: Array<Entry> = []
          yield* snapshot(below(root, (entries) => Effect.sync(() => seen.push(...entries))))
          assert.deepStrictEqual(pathsOf(seen), expected)
          assert.deepInclude(seen[3], { kind: "file" })
          assert.strictEqual(seen[3]?.kind === "file" ? seen[3].file.version : 0, 2)
          assert.deepStrictEqual(pathsOf(yield* page(a, undefined, 10)), ["a/b", "a/b/", "a/b/c/"])
          assert.deepStrictEqual(pathsOf(yield* page(a, "a/b", 1)), ["a/b/"])
          assert.deepStrictEqual(
            (yield* buckets(user)).map(({ name }) => name),
            ["w", "w2"]
          )
        })
      )

      it.effect("sees one snapshot", () =>
        Effect.gen(function* () {
          const { below, snapshot } = yield* Walk
          const user = yield* newUser
          const docs = yield* ensured(user, "docs")
          const run = Effect.runPromiseWith(yield* Effect.context<never>())
          for (const name of ["a", "b", "c", "d"]) yield* written(docs, name, name)
          const versions = yield* Versions
          const { sha256, sizeBytes } = yield* written(docs, "seed", "seed")
          const again = { ...plain, directory: docs, name: "d", blob: { sha256, sizeBytes } }
          const late = versions.write(user, "test", again)
          const seen: Array<Entry> = []
          yield* snapshot(
            below(docs, (entries) =>
              Effect.gen(function* () {
                if (seen.length === 0) yield* Effect.promise(() => run(late))
                seen.push(...entries)
              })
            )
          )
          const d = seen.find(({ path }) => path === "d")
          assert.strictEqual(d?.kind === "file" ? d.file.version : 0, 1)
        })
      )
    })
  }
)
