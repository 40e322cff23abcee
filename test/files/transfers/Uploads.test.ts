import { assert, describe, layer } from "@effect/vitest"
import { Effect } from "effect"
import { filesLimits } from "#src/files/Limits.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import {
  formOf,
  get,
  items,
  live,
  sha256Of,
  textIn,
  told,
  upload,
  uploaded,
  uploadedAll
} from "./TransferSteps.ts"

const aUser = Effect.flatMap(TestServer, ({ makeUser }) => makeUser())

/** How many files and directories the user has. */
const countsOf = (key: string) =>
  Effect.gen(function* () {
    const { ask } = yield* TestServer
    const { json } = yield* ask("GET", "/api/storage", { key })
    return (json as { readonly usedBytes: number }).usedBytes
  })

layer(TestServer.shared, live)("uploads of shared files", (it) => {
  it.effect("are answered with the fields of an item, and read back byte for byte", () =>
    Effect.gen(function* () {
      const { ask, url } = yield* TestServer
      const { key } = yield* aUser
      const body = formOf([["hello.txt", "hello", "text/plain"]])
      const answer = yield* ask("POST", "/api/cli/upload", { key, body })
      assert.strictEqual(answer.status, 200)
      const [item] = items(answer)
      assert.isDefined(item)
      const { directoryId, directUrl, fileId, versionGroupId, ...rest } = item
      assert.deepStrictEqual(rest, {
        name: "hello.txt",
        size: 5,
        version: 1,
        fileHash: sha256Of("hello"),
        mimeType: "text/plain",
        isEncrypted: false
      })
      assert.match(fileId, /^fv_[0-9A-Za-z]{22}$/)
      assert.match(versionGroupId, /^fg_[0-9A-Za-z]{22}$/)
      assert.match(directoryId, /^dir_[0-9A-Za-z]{22}$/)
      const [origin, token] = (directUrl ?? "").split("/direct/")
      assert.strictEqual(origin, url)
      assert.match(token ?? "", /^[0-9A-Za-z]{22}$/)
      assert.strictEqual(textIn(yield* get(fileId, key)), "hello")
    })
  )

  it.effect("have a link in /api/upload with link=1 alone", () =>
    Effect.gen(function* () {
      const { key } = yield* aUser
      assert.isNull((yield* uploaded(["a.txt", "a"], {}, { key })).directUrl)
      assert.isNull((yield* uploaded(["a.txt", "a"], { link: "0" }, { key })).directUrl)
      assert.match((yield* uploaded(["a.txt", "a"], { link: "1" }, { key })).directUrl ?? "", /\/direct\//)
    })
  )

  it.effect("take their fields in any order, also behind the files", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const { key } = yield* aUser
      const body = new FormData()
      body.append("file", new Blob(["one"]), "1")
      body.append("path", "x/one.txt")
      body.append("files", new Blob(["two"]), "2")
      body.append("path", "x/two.txt")
      body.append("sha256", sha256Of("one"))
      body.append("sha256", sha256Of("two").toUpperCase())
      body.append("dir", "behind")
      const made = items(yield* ask("POST", "/api/upload", { key, body }))
      assert.deepStrictEqual(
        made.map(({ fileHash, name }) => [name, fileHash]),
        [
          ["one.txt", sha256Of("one")],
          ["two.txt", sha256Of("two")]
        ]
      )
      assert.strictEqual(made[0]?.directoryId, made[1]?.directoryId)
    })
  )

  describe("go", () => {
    it.effect("into the bucket dir, by default uploads, which is made where there is none", () =>
      Effect.gen(function* () {
        const { ask } = yield* TestServer
        const { key } = yield* aUser
        const first = yield* uploaded(["a", "a"], {}, { key })
        const named = yield* uploaded(["a", "a"], { dir: "uploads" }, { key })
        assert.strictEqual(named.directoryId, first.directoryId)
        const other = yield* uploaded(["a", "a"], { dir: "Other.dir_-1" }, { key })
        assert.notStrictEqual(other.directoryId, first.directoryId)
        for (const dir of ["a/b", "ä", "a b", "..", ".", "x".repeat(101)]) {
          const [status, error] = told(
            yield* ask("POST", "/api/cli/upload", { key, body: formOf([["a", "a"]], { dir }) })
          )
          assert.strictEqual(status, 400, dir)
          assert.match(String(error), /^dir: expected the name of a bucket/)
        }
      })
    )

    it.effect("into a directory by its id; 404 where it is none of the user's, 400 beside dir", () =>
      Effect.gen(function* () {
        const { key } = yield* aUser
        const stranger = yield* aUser
        const { directoryId } = yield* uploaded(["a.txt", "a"], { path: "deep/er/a.txt" }, { key })
        const made = yield* uploaded(["b.txt", "b"], { directoryId }, { key })
        assert.strictEqual(made.directoryId, directoryId)
        for (const [by, id] of [
          [stranger.key, directoryId],
          [key, "dir_0000000000000000000000"],
          [key, "nothing\u0000"]
        ] as const)
          assert.deepStrictEqual(told(yield* upload([["c", "c"]], { directoryId: id }, { key: by })), [
            404,
            "Directory not found"
          ])
        assert.deepStrictEqual(told(yield* upload([["c", "c"]], { directoryId, dir: "a" }, { key })), [
          400,
          "directoryId: expected this or dir, not both"
        ])
      })
    )

    it.effect("to their paths, which make directories, else to their filenames", () =>
      Effect.gen(function* () {
        const { key } = yield* aUser
        const names = [
          "plain.txt",
          "имя файла.txt",
          "ملف.txt",
          "文件.txt",
          "🙂.txt",
          "con",
          'a:b?c*d\\e"f<g>h|i',
          " leading and trailing ",
          "%2F%00",
          "x".repeat(255),
          "й".repeat(127)
        ]
        for (const name of names) {
          const made = yield* uploaded(["sent", name], { path: `tree/${name}/${name}` }, { key })
          assert.strictEqual(made.name, name)
          assert.strictEqual(textIn(yield* get(made.fileId, key)), name)
        }
        // Kept in NFC.
        const made = yield* uploaded(["sent", "x"], { path: "e\u0301/o\u0308" }, { key })
        assert.strictEqual(made.name, "\u00f6")
        assert.strictEqual((yield* uploaded(["sent", "x"], { path: "\u00e9/\u00f6" }, { key })).version, 2)
        const plain = yield* uploaded(["some name.pdf", "x"], {}, { key })
        assert.deepStrictEqual([plain.name, plain.mimeType], ["some name.pdf", "application/pdf"])
      })
    )

    it.effect("nowhere with a path that is none: 400 names it, and nothing is stored", () =>
      Effect.gen(function* () {
        const { key } = yield* aUser
        const paths = [
          "/a",
          "a/",
          "a//b",
          "..",
          "a/../b",
          ".",
          "a\u0000b",
          "a\nb",
          "x".repeat(256),
          "й".repeat(128)
        ]
        for (const path of paths) {
          const [status, error] = told(yield* upload([["a", "a"]], { path }, { key }))
          assert.strictEqual(status, 400, JSON.stringify(path))
          assert.match(String(error), /^path: expected a name/)
        }
        const deep = Array.from({ length: 65 }, () => "d").join("/")
        assert.match(
          String(told(yield* upload([["a", "a"]], { path: deep }, { key }))[1]),
          /^path: at most 64/
        )
        const two = yield* upload(
          [
            ["a", "a"],
            ["b", "b"]
          ],
          { path: ["fine", "not/../fine"] },
          { key }
        )
        assert.match(String(told(two)[1]), /^path\[1\]: expected a name/)
        assert.strictEqual(yield* countsOf(key), 0)
      })
    )
  })

  describe("of a name that is there", () => {
    it.effect("are the next version, without gap or twin, also at once", () =>
      Effect.gen(function* () {
        const { key } = yield* aUser
        const first = yield* uploaded(["a.txt", "one"], {}, { key })
        const made = yield* Effect.all(
          Array.from({ length: 8 }, (_, n) => uploaded(["a.txt", `version ${n}`], {}, { key })),
          { concurrency: "unbounded" }
        )
        assert.deepStrictEqual(
          made.map(({ version }) => version).toSorted((a, b) => a - b),
          [2, 3, 4, 5, 6, 7, 8, 9]
        )
        assert.deepStrictEqual(new Set(made.map((_) => _.versionGroupId)), new Set([first.versionGroupId]))
        assert.strictEqual(textIn(yield* get(first.fileId, key)), "one")
        const last = made.find(({ version }) => version === 9)
        assert.strictEqual(
          textIn(yield* get(first.versionGroupId, key)),
          textIn(yield* get(last?.fileId ?? "", key))
        )
      })
    )

    it.effect("are two versions where one form has two", () =>
      Effect.gen(function* () {
        const { key } = yield* aUser
        const made = yield* uploadedAll(
          [
            ["a", "same"],
            ["a", "same"]
          ],
          {},
          { key }
        )
        assert.deepStrictEqual(
          made.map(({ version }) => version),
          [1, 2]
        )
      })
    )

    it.effect("are 409 where ifVersion is another one, or none, and the text has the current one", () =>
      Effect.gen(function* () {
        const { key } = yield* aUser
        const first = yield* uploaded(["a", "1"], { ifVersion: "none" }, { key })
        const current = [409, `ifVersion: the current version is ${first.fileId}`] as const
        assert.deepStrictEqual(told(yield* upload([["a", "2"]], { ifVersion: "none" }, { key })), current)
        const second = yield* uploaded(["a", "2"], { ifVersion: first.fileId }, { key })
        assert.strictEqual(second.version, 2)
        assert.deepStrictEqual(told(yield* upload([["a", "3"]], { ifVersion: first.fileId }, { key })), [
          409,
          `ifVersion: the current version is ${second.fileId}`
        ])
        assert.deepStrictEqual(told(yield* upload([["b", "3"]], { ifVersion: first.fileId }, { key })), [
          409,
          "ifVersion: there is no file of this name"
        ])
        // All or nothing: the first of two would have been fine.
        const both = yield* upload(
          [
            ["c", "c"],
            ["a", "3"]
          ],
          { ifVersion: ["none", "none"] },
          { key }
        )
        assert.strictEqual(both.status, 409)
        assert.strictEqual((yield* uploaded(["c", "c"], { ifVersion: "none" }, { key })).version, 1)
      })
    )
  })

  it.effect("with another hash than sha256 are 422, and nothing is stored", () =>
    Effect.gen(function* () {
      const { key } = yield* aUser
      const wrong = yield* upload(
        [
          ["a", "a"],
          ["b", "b"]
        ],
        { sha256: [sha256Of("a"), sha256Of("a")] },
        { key }
      )
      assert.deepStrictEqual(told(wrong), [
        422,
        `sha256[1]: the bytes that came have the SHA-256 ${sha256Of("b")}`
      ])
      assert.strictEqual(yield* countsOf(key), 0)
      assert.deepStrictEqual(told(yield* upload([["a", "a"]], { sha256: "abc" }, { key })), [
        400,
        "sha256: expected 64 hexadecimal digits"
      ])
    })
  )

  it.effect("keep modifiedAt, and the type of the part unless it says nothing", () =>
    Effect.gen(function* () {
      const { key } = yield* aUser
      const made = yield* uploadedAll(
        [
          ["a.html", "x", "text/markdown"],
          ["b.html", "x", "application/octet-stream"],
          ["c.unknown", "x", ""],
          ["d", "x", "no type\u00e4"],
          ["html", "x", ""]
        ],
        { modifiedAt: ["2001-02-03T04:05:06.789Z", "1999-07-20T22:17:40+02:00"] },
        { key }
      )
      assert.deepStrictEqual(
        made.map(({ mimeType }) => mimeType),
        ["text/markdown", "text/html", ...Array.from({ length: 3 }, () => "application/octet-stream")]
      )
      const times = yield* Effect.forEach(made.slice(0, 2), ({ fileId }) =>
        Effect.map(get(fileId, key), ({ headers }) => headers.get("last-modified"))
      )
      assert.deepStrictEqual(times, ["Sat, 03 Feb 2001 04:05:06 GMT", "Tue, 20 Jul 1999 20:17:40 GMT"])
      for (const modifiedAt of ["yesterday", "2026-02-30T00:00:00Z", "1790000000"])
        assert.match(String(told(yield* upload([["a", "a"]], { modifiedAt }, { key }))[1]), /^modifiedAt: /)
    })
  )

  it.effect("with clientEncrypted are kept as sent, and served as bytes with the id of their key", () =>
    Effect.gen(function* () {
      const { key } = yield* aUser
      const fields = { clientEncrypted: "true", encryptionKeyId: "ek_any" }
      const made = yield* uploaded(["page.html", "<p>", "text/html"], fields, { key })
      assert.isTrue(made.isEncrypted)
      const { headers } = yield* get(made.fileId, key)
      assert.deepStrictEqual(
        [headers.get("content-type"), headers.get("x-encryption-key-id")],
        ["application/octet-stream", "ek_any"]
      )
      for (const [name, value] of [
        ["clientEncrypted", "perhaps"],
        ["encryptionKeyId", "a b"],
        ["link", "2"]
      ] as const)
        assert.match(
          String(told(yield* upload([["a", "a"]], { [name]: value }, { key }))[1]),
          new RegExp(`^${name}: `)
        )
      assert.strictEqual((yield* upload([["a", "a"]], { encryptionKeyId: "ek_any" }, { key })).status, 400)
    })
  )

  describe("are 400, and store nothing,", () => {
    it.effect("without a form, a file, or a file in a field of files", () =>
      Effect.gen(function* () {
        const { ask } = yield* TestServer
        const { key } = yield* aUser
        const post = (body: FormData | string, headers: Readonly<Record<string, string>> = {}) =>
          Effect.map(ask("POST", "/api/upload", { key, body, headers }), told)
        assert.deepStrictEqual(yield* post("a"), [400, "body: expected multipart/form-data"])
        assert.deepStrictEqual(yield* post("a", { "content-type": "multipart/form-data" }), [
          400,
          "body: the form is cut off or malformed"
        ])
        assert.deepStrictEqual(yield* post(formOf([], { dir: "a" })), [
          400,
          "files: expected at least one file"
        ])
        assert.deepStrictEqual(yield* post(formOf([], { files: "text" })), [
          400,
          "files: expected a file: a part with a filename"
        ])
        const elsewhere = formOf([["a", "a"]])
        elsewhere.append("attachment", new Blob(["b"]), "b")
        assert.deepStrictEqual(yield* post(elsewhere), [400, "attachment: files go into the field files"])
        assert.strictEqual(yield* countsOf(key), 0)
      })
    )

    it.effect("with a field of the form given twice, or more values than files", () =>
      Effect.gen(function* () {
        const { key } = yield* aUser
        for (const name of ["dir", "directoryId", "clientEncrypted", "encryptionKeyId", "link"])
          assert.deepStrictEqual(told(yield* upload([["a", "a"]], { [name]: ["", ""] }, { key })), [
            400,
            `${name}: given twice`
          ])
        for (const name of ["path", "modifiedAt", "sha256", "ifVersion"])
          assert.deepStrictEqual(told(yield* upload([["a", "a"]], { [name]: ["", ""] }, { key })), [
            400,
            `${name}: given more often than there are files`
          ])
        assert.strictEqual(yield* countsOf(key), 0)
      })
    )
  })

  it.effect("ignore fields that are not known, and inputs without a file", () =>
    Effect.gen(function* () {
      const { key } = yield* aUser
      const { ask } = yield* TestServer
      const made = yield* uploadedAll([["a", "a"]], { submit: "Send", constructor: "x" }, { key })
      assert.strictEqual(made.length, 1)
      const empty =
        'Content-Disposition: form-data; name="files"; filename=""\r\nContent-Type: application/octet-stream'
      const full = 'Content-Disposition: form-data; name="files"; filename="b"'
      const body = `--b\r\n${empty}\r\n\r\n\r\n--b\r\n${full}\r\n\r\nb\r\n--b--\r\n`
      const headers = { "content-type": "multipart/form-data; boundary=b" }
      const answer = yield* ask("POST", "/api/upload", { key, body, headers })
      assert.deepStrictEqual(
        items(answer).map(({ name }) => name),
        ["b"]
      )
    })
  )

  it.effect("need write, in the bucket that a scope names; by its name 403, by an id 404", () =>
    Effect.gen(function* () {
      const { makeKey } = yield* TestServer
      const { key } = yield* aUser
      const scoped = (...scopes: ReadonlyArray<string>) =>
        Effect.map(makeKey({ scopes }, key), (made) => made.key)
      const { directoryId, fileId } = yield* uploaded(["a", "a"], { dir: "other" }, { key })
      const mine = yield* scoped("write:mine")
      const made = yield* uploaded(["a", "a"], { dir: "mine" }, { key: mine })
      assert.strictEqual(
        (yield* uploaded(["b", "b"], { directoryId: made.directoryId }, { key: mine })).version,
        1
      )
      for (const dir of ["other", "nowhere", ""])
        assert.deepStrictEqual(told(yield* upload([["a", "a"]], { dir }, { key: mine })), [
          403,
          `This takes the scope write:${dir === "" ? "uploads" : dir}`
        ])
      assert.deepStrictEqual(told(yield* upload([["a", "a"]], { directoryId }, { key: mine })), [
        404,
        "Directory not found"
      ])
      assert.strictEqual((yield* upload([["a", "a"]], {}, { key: yield* scoped("read") })).status, 403)
      // What was written cannot be read back with it.
      for (const by of [mine, yield* scoped("write")])
        assert.strictEqual((yield* get(made.fileId, by)).status, 403)
      const reader = yield* scoped("read:mine")
      assert.deepStrictEqual(
        [(yield* get(made.fileId, reader)).status, (yield* get(fileId, reader)).status],
        [200, 404]
      )
      assert.strictEqual((yield* get(fileId, yield* scoped("read"))).status, 200)
    })
  )

  it.effect("are at most 1,000 files a form, and 6,000 parts", () =>
    Effect.sync(() =>
      assert.deepStrictEqual([filesLimits.filesPerUpload, filesLimits.partsPerUpload], [1_000, 6_000])
    )
  )
})

const small = {
  limits: {
    filesPerUpload: 3,
    partsPerUpload: 12,
    uploadFieldBytes: 100,
    uploadFieldsBytes: 250,
    sharedFileBytes: 10_000
  },
  filesQuotaBytes: 100_000
}

layer(TestServer.own(small), live)("limits of uploads of shared files", (it) => {
  it.effect("are of files, parts, fields and bytes; beyond them nothing is stored", () =>
    Effect.gen(function* () {
      const { key } = yield* aUser
      const many = (count: number) => Array.from({ length: count }, (_, n) => [`f${n}`, "x"] as const)
      assert.strictEqual((yield* uploadedAll(many(3), {}, { key })).length, 3)
      const refused = [
        [many(4), {}, 400, "files: at most 3 at once"],
        [many(1), { other: Array.from({ length: 12 }, () => "") }, 400, "body: more than 12 parts"],
        [many(1), { other: "x".repeat(101) }, 413, "other: at most 100 bytes"],
        [
          many(1),
          { other: Array.from({ length: 3 }, () => "x".repeat(90)) },
          413,
          "body: at most 250 bytes of fields"
        ],
        [[["long", "x".repeat(10_001)]], {}, 413, "files: at most 10000 bytes"]
      ] as const
      for (const [files, fields, status, error] of refused)
        assert.deepStrictEqual(told(yield* upload(files, fields, { key })), [status, error])
      assert.strictEqual(yield* countsOf(key), 3)
      assert.strictEqual((yield* uploaded(["long", "x".repeat(10_000)], {}, { key })).size, 10_000)
    })
  )

  it.effect("are of all bytes of a user: 507 with the quota, of which nothing is lost", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const { id, key } = yield* aUser
      yield* ask("PATCH", `/api/v1/admin/users/${id}`, { json: { storage_quota_bytes: 15_000 } })
      yield* uploaded(["a", "a".repeat(9_000)], {}, { key })
      const full = [507, "Quota of 15000 bytes reached"] as const
      assert.deepStrictEqual(told(yield* upload([["b", "b".repeat(6_001)]], {}, { key })), full)
      assert.deepStrictEqual(
        told(
          yield* upload(
            [
              ["b", "b".repeat(3_000)],
              ["c", "c".repeat(3_001)]
            ],
            {},
            { key }
          )
        ),
        full
      )
      assert.strictEqual(yield* countsOf(key), 9_000)
      // Exactly as much fits.
      yield* uploaded(["b", "b".repeat(6_000)], {}, { key })
      assert.deepStrictEqual(told(yield* upload([["c", "c"]], {}, { key })), full)
      assert.strictEqual((yield* upload([["c", ""]], {}, { key })).status, 200)
    })
  )
})
