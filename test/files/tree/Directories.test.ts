import { assert, describe, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer } from "#test/harness/TestServer.ts"
import {
  expectStatus,
  namesOf,
  newClient,
  sharedTree,
  type ShownDirectory,
  type ShownFile,
  type ShownPage
} from "./TreeClient.ts"
import { ensured, faultsOfTree, written } from "./TreeSteps.ts"

const name =
  "name: expected a name of 1 to 255 bytes of UTF-8, without / and control characters, and not . or .."

layer(sharedTree, { excludeTestServices: true, timeout: 600_000 })("directories", (it) => {
  it.effect("are made, in the root as buckets, and listed with id, name, parentId and isInbox", () =>
    Effect.gen(function* () {
      const { makeDirectory, ok, outcome, send, userId } = yield* newClient
      const made = expectStatus(yield* send("POST", "directories", { name: "docs" }), 201)
      const docs = made.json as ShownDirectory & { createdAt: string; modifiedAt: string }
      const { createdAt, modifiedAt } = docs
      assert.deepStrictEqual(docs as unknown, {
        id: docs.id,
        name: "docs",
        parentId: null,
        path: "docs",
        isInbox: false,
        ownerId: userId,
        permission: "owner",
        encryptionEnabled: false,
        versionDays: 90,
        requiredReplicas: null,
        createdAt,
        modifiedAt
      })
      assert.match(docs.id, /^dir_[0-9A-Za-z]{22}$/)
      assert.match(createdAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
      const inner = yield* makeDirectory("ä b", docs.id)
      assert.deepInclude(inner, { parentId: docs.id, path: "docs/ä b" })
      const listed = (yield* ok("GET", "directories")) as {
        directories: Array<{ path: string; isInbox: boolean }>
      }
      assert.deepStrictEqual(
        listed.directories.map(({ isInbox, path }) => [path, isInbox]),
        [
          ["Inbox", true],
          ["docs", false],
          ["docs/ä b", false]
        ]
      )
      assert.strictEqual(yield* outcome("POST", "directories", { name: "docs" }), "409 name: is taken")
      assert.strictEqual(
        yield* outcome("POST", "directories", { name: "ä b", parentId: docs.id }),
        "409 name: is taken"
      )
      assert.strictEqual(
        yield* outcome("POST", "directories", { name: "x", parentId: "dir_0000000000000000000000" }),
        "404 Directory not found"
      )
    })
  )

  it.effect("are made by one of those who make them at once, and taken for the others", () =>
    Effect.gen(function* () {
      const { makeDirectory, outcome } = yield* newClient
      const { id: parentId } = yield* makeDirectory("docs")
      for (const where of [{}, { parentId }]) {
        for (let round = 0; round < 5; round++) {
          const outcomes = yield* Effect.all(
            Array.from({ length: 6 }, () => outcome("POST", "directories", { name: `d${round}`, ...where })),
            { concurrency: "unbounded" }
          )
          assert.deepStrictEqual(outcomes.toSorted(), [
            "201",
            ...Array.from({ length: 5 }, () => "409 name: is taken")
          ])
        }
      }
    })
  )

  it.effect("are found by their path, the bucket first", () =>
    Effect.gen(function* () {
      const { ok, outcome, userId } = yield* newClient
      yield* ensured(userId, "docs/a/b")
      const chain = (yield* ok("GET", "directories?path=docs/a/b")) as { directories: Array<ShownDirectory> }
      assert.deepStrictEqual(namesOf(chain.directories), ["docs", "a", "b"])
      assert.strictEqual(yield* outcome("GET", "directories?path=docs/b"), "404 Directory not found")
    })
  )

  it.effect("have names of which buckets may have fewer", () =>
    Effect.gen(function* () {
      const { makeDirectory, outcome } = yield* newClient
      const docs = yield* makeDirectory("docs")
      const bucket =
        "name: expected the name of a bucket: 1 to 100 letters, digits, dots, underscores and hyphens, and not . or .."
      for (const bad of ["", "a b", "..", "ä", "a".repeat(101), "a/b"])
        assert.strictEqual(yield* outcome("POST", "directories", { name: bad }), `400 ${bucket}`)
      for (const bad of ["", ".", "..", "a/b", "a\tb", "é".repeat(128)])
        assert.strictEqual(
          yield* outcome("POST", "directories", { name: bad, parentId: docs.id }),
          `400 ${name}`
        )
      assert.match(yield* outcome("POST", "directories", { name: "a\0", parentId: docs.id }), /^400 name: /)
      const surrogate = yield* outcome("POST", "directories", undefined, {
        headers: { "content-type": "application/json" },
        body: `{"name":"\\ud800","parentId":"${docs.id}"}`
      })
      assert.match(surrogate, /^400 name: /)
    })
  )

  describe("what is in one", () => {
    it.effect("is listed page by page: directories, then files, in byte order", () =>
      Effect.gen(function* () {
        const { outcome, page, userId } = yield* newClient
        const docs = yield* ensured(userId, "docs")
        for (const sub of ["b", "a", "é", "Z"]) yield* ensured(userId, `docs/${sub}`)
        for (const file of ["y", "x", "a", "ü"]) yield* written(docs, file, file)
        const whole = yield* page(docs.id)
        assert.deepStrictEqual(namesOf(whole.directories), ["Z", "a", "b", "é"])
        assert.deepStrictEqual(namesOf(whole.files), ["a", "x", "y", "ü"])
        assert.deepInclude(whole.directory, { id: docs.id, path: "docs" })
        assert.isNull(whole.cursor)
        for (const limit of [1, 2, 3, 4, 5, 7, 8]) {
          const names: Array<string> = []
          let cursor: string | null = ""
          while (cursor !== null) {
            const next: ShownPage = yield* page(
              docs.id,
              `?limit=${limit}${cursor === "" ? "" : `&cursor=${cursor}`}`
            )
            assert.isAtMost(next.directories.length + next.files.length, limit)
            names.push(...namesOf(next.directories), ...namesOf(next.files))
            cursor = next.cursor
          }
          assert.deepStrictEqual(names, ["Z", "a", "b", "é", "a", "x", "y", "ü"], `limit ${limit}`)
        }
        const root = yield* page("root")
        assert.deepStrictEqual([root.directory, namesOf(root.directories)], [null, ["docs"]])
        assert.strictEqual(
          yield* outcome("GET", `directories/${docs.id}?limit=0`),
          "400 limit: expected an integer between 1 and 1000"
        )
        assert.match(yield* outcome("GET", `directories/${docs.id}?cursor=x`), /^400 cursor: /)
      })
    )

    it.effect(
      "is on one page where it is there all the while, whatever becomes of others between two pages",
      () =>
        Effect.gen(function* () {
          const { ok, page, userId } = yield* newClient
          const docs = yield* ensured(userId, "docs")
          const put = (name: string) => written(docs, name, name)
          const [b, , , , , l] = yield* Effect.forEach(["b", "d", "f", "h", "j", "l"], put)
          const changes = [
            // Before the last name and behind it; the file of that name; one that was shown, and one that was not.
            Effect.andThen(put("a"), put("e")),
            Effect.flatMap(put("f"), ({ id }) => ok("DELETE", `files/${id}`)),
            Effect.andThen(
              ok("PATCH", `files/${b?.id}`, { name: "k" }),
              ok("PATCH", `files/${l?.id}`, { name: "c" })
            )
          ]
          const pages: Array<ReadonlyArray<string>> = []
          for (let cursor = ""; ;) {
            const next: ShownPage = yield* page(docs.id, `?limit=2${cursor}`)
            pages.push(namesOf(next.files))
            if (next.cursor === null) break
            cursor = `&cursor=${next.cursor}`
            yield* changes.shift() ?? Effect.void
          }
          assert.deepStrictEqual(pages, [["b", "d"], ["e", "f"], ["h", "j"], ["k"]])
          assert.deepStrictEqual(yield* faultsOfTree(userId), [])
        })
    )
  })

  describe("a change", () => {
    it.effect("renames and moves a directory with all that is below it, within and between buckets", () =>
      Effect.gen(function* () {
        const { ok, outcome, page, userId } = yield* newClient
        const b = yield* ensured(userId, "one/a/b")
        yield* ensured(userId, "one/ab")
        const file = yield* written(b, "f.txt", "f")
        const [a, two] = [b.parentId ?? "", yield* ensured(userId, "two/x")]
        const pathOf = Effect.map(page(b.id), ({ directory, files }) => [directory?.path, files[0]?.path])
        assert.deepInclude(yield* ok("PATCH", `directories/${a}`, { name: "A Ä" }), { path: "one/A Ä" })
        assert.deepStrictEqual(yield* pathOf, ["one/A Ä/b", "one/A Ä/b/f.txt"])
        yield* ok("PATCH", `directories/${a}`, { parentId: two.id, name: "a" })
        assert.deepStrictEqual(yield* pathOf, ["two/x/a/b", "two/x/a/b/f.txt"])
        yield* ok("PATCH", `directories/${b.id}`, { parentId: null, name: "three" })
        assert.deepStrictEqual(yield* pathOf, ["three", "three/f.txt"])
        yield* ok("PATCH", `directories/${b.id}`, { parentId: a })
        assert.deepStrictEqual(yield* pathOf, ["two/x/a/three", "two/x/a/three/f.txt"])
        yield* ok("PATCH", `directories/${two.bucketId}`, { name: "2" })
        assert.deepStrictEqual(yield* pathOf, ["2/x/a/three", "2/x/a/three/f.txt"])
        assert.deepInclude((yield* page(b.id)).files[0], { id: file.id, version: 1 })

        const inside = "400 parentId: is the directory itself, or below it"
        assert.strictEqual(yield* outcome("PATCH", `directories/${a}`, { parentId: b.id }), inside)
        assert.strictEqual(yield* outcome("PATCH", `directories/${a}`, { parentId: a }), inside)
        assert.strictEqual(
          yield* outcome("PATCH", `directories/${two.bucketId}`, { name: "one" }),
          "409 name: is taken"
        )
        assert.match(
          yield* outcome("PATCH", `directories/${b.id}`, { parentId: null, name: "a b" }),
          /^400 name: /
        )
        assert.deepStrictEqual(yield* faultsOfTree(userId), [])
      })
    )

    it.effect("is one for all who look meanwhile, and for uploads into it", () =>
      Effect.gen(function* () {
        const { ask } = yield* TestServer
        const { key, ok, send, userId } = yield* newClient
        const [a, other] = [yield* ensured(userId, "one/a"), yield* ensured(userId, "two")]
        for (let n = 0; n < 12; n++) yield* written(a, `seen${n}`, "f")
        const moves = Effect.forEach(
          Array.from({ length: 12 }, (_, n) => (n % 2 === 0 ? other.id : a.bucketId)),
          (parentId) => ok("PATCH", `directories/${a.id}`, { parentId })
        )
        const looks = Effect.forEach(Array.from({ length: 12 }), () =>
          Effect.map(ok("GET", "files?q=seen&limit=100"), (found) => {
            const { files } = found as { readonly files: ReadonlyArray<ShownFile> }
            const places = new Set(files.map(({ path }) => path.slice(0, path.lastIndexOf("/"))))
            assert.deepStrictEqual([files.length, places.size], [12, 1])
          })
        )
        const uploads = Effect.forEach(
          Array.from({ length: 12 }, (_, n) => n),
          (n) => {
            const body = new FormData()
            body.append("directoryId", a.id)
            body.append("files", new Blob([`${n}`]), `sent${n}`)
            return Effect.map(ask("POST", "/api/upload", { key, body }), (answer) =>
              expectStatus(answer, 200)
            )
          }
        )
        yield* Effect.all([moves, looks, uploads], { concurrency: "unbounded" })
        const { files } = (yield* send("GET", `directories/${a.id}`)).json as ShownPage
        assert.lengthOf(files, 24)
        assert.deepStrictEqual(yield* faultsOfTree(userId), [])
      })
    )

    it.effect("that would make it too deep or its paths too long is refused", () =>
      Effect.gen(function* () {
        const { outcome, userId } = yield* newClient
        const deep = yield* ensured(userId, `b/${Array.from({ length: 62 }, () => "d").join("/")}`)
        const two = yield* ensured(userId, "b/x/y")
        assert.strictEqual(
          yield* outcome("PATCH", `directories/${two.parentId}`, { parentId: deep.id }),
          "400 parentId: at most 64 directories below each other"
        )
        assert.strictEqual(yield* outcome("PATCH", `directories/${two.id}`, { parentId: deep.id }), "200")
        const long = yield* ensured(userId, `b/${Array.from({ length: 8 }, () => "n".repeat(250)).join("/")}`)
        const wide = yield* ensured(userId, "b/w")
        yield* written(wide, "f".repeat(200), "")
        assert.strictEqual(
          yield* outcome("PATCH", `directories/${wide.id}`, { parentId: long.id }),
          "400 parentId: a path within a bucket has at most 2048 bytes"
        )
      })
    )

    it.effect("is refused with 412 where If-Match has another ETag than the directory", () =>
      Effect.gen(function* () {
        const { makeDirectory, outcome, send } = yield* newClient
        const docs = yield* makeDirectory("docs")
        const etag = (yield* send("GET", `directories/${docs.id}`)).headers.get("etag") ?? ""
        const change = (ifMatch: string, method = "PATCH", json: object | undefined = { name: "other" }) =>
          outcome(method, `directories/${docs.id}`, json, { headers: { "if-match": ifMatch } })
        assert.match(yield* change('"x"'), /^412 If-Match: the ETag is "\d+"$/)
        assert.strictEqual(yield* change(`"x", ${etag}`), "200")
        assert.match(yield* change(etag), /^412 /)
        assert.match(
          yield* outcome("DELETE", `directories/${docs.id}`, undefined, { headers: { "if-match": etag } }),
          /^412 /
        )
        assert.strictEqual(yield* change("*"), "200")
      })
    )

    it.effect("of versionDays and requiredReplicas is for buckets, and takes the scope full", () =>
      Effect.gen(function* () {
        const { ok, outcome, scoped, userId } = yield* newClient
        const a = yield* ensured(userId, "docs/a")
        const settings = { versionDays: null, requiredReplicas: 2 }
        assert.deepInclude(yield* ok("PATCH", `directories/${a.bucketId}`, settings), settings)
        assert.deepInclude(yield* ok("GET", `directories/${a.id}`), {})
        assert.strictEqual(
          yield* outcome("PATCH", `directories/${a.id}`, { versionDays: 7 }),
          "400 versionDays: is a bucket's"
        )
        const writer = yield* scoped("write", "read")
        assert.strictEqual(
          yield* outcome("PATCH", `directories/${a.bucketId}`, { versionDays: 7 }, writer),
          "403 This takes the scope full"
        )
      })
    )

    it.effect("does not touch the Inbox", () =>
      Effect.gen(function* () {
        const { ok, outcome, makeDirectory } = yield* newClient
        const { directories } = (yield* ok("GET", "directories")) as { directories: Array<ShownDirectory> }
        const inbox = directories[0]?.id ?? ""
        const refused = "409 The Inbox cannot be renamed, moved or deleted"
        assert.strictEqual(yield* outcome("PATCH", `directories/${inbox}`, { name: "x" }), refused)
        assert.strictEqual(yield* outcome("DELETE", `directories/${inbox}`), refused)
        const docs = yield* makeDirectory("docs")
        assert.strictEqual(yield* outcome("PATCH", `directories/${inbox}`, { parentId: docs.id }), refused)
      })
    )
  })

  it.effect("of others, and outside of a key's buckets, are 404 by id and 403 by name", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const mine = yield* newClient
      const other = yield* newClient
      const one = yield* ensured(mine.userId, "one/a")
      const two = yield* ensured(mine.userId, "two")
      assert.strictEqual(yield* other.outcome("GET", `directories/${one.id}`), "404 Directory not found")
      assert.strictEqual(
        yield* other.outcome("PATCH", `directories/${one.id}`, { name: "x" }),
        "404 Directory not found"
      )

      const reader = yield* mine.scoped("read:one")
      const listed = (yield* ask("GET", "/api/directories", reader)).json as {
        directories: Array<ShownDirectory>
      }
      assert.deepStrictEqual(
        listed.directories.map(({ path }) => path),
        ["one", "one/a"]
      )
      assert.strictEqual(yield* mine.outcome("GET", `directories/${one.id}`, undefined, reader), "200")
      assert.strictEqual(
        yield* mine.outcome("GET", `directories/${two.id}`, undefined, reader),
        "404 Directory not found"
      )
      for (const path of ["two", "three"])
        assert.strictEqual(
          yield* mine.outcome("GET", `directories?path=${path}`, undefined, reader),
          `403 This takes the scope read:${path}`
        )
      assert.match(
        yield* mine.outcome("POST", "directories", { name: "x", parentId: one.id }, reader),
        /^403 /
      )

      const writer = yield* mine.scoped("write:one")
      assert.match(yield* mine.outcome("GET", `directories/${one.id}`, undefined, writer), /^403 /)
      assert.strictEqual(
        yield* mine.outcome("POST", "directories", { name: "w", parentId: one.id }, writer),
        "201"
      )
      assert.strictEqual(
        yield* mine.outcome("POST", "directories", { name: "x", parentId: two.id }, writer),
        "404 Directory not found"
      )
      assert.strictEqual(
        yield* mine.outcome("POST", "directories", { name: "three" }, writer),
        "403 This takes the scope write:three"
      )
      // A move needs both ends.
      assert.strictEqual(
        yield* mine.outcome("PATCH", `directories/${one.id}`, { parentId: two.id }, writer),
        "404 Directory not found"
      )
    })
  )
})
