import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer, textOf } from "#test/harness/TestServer.ts"
import { formOf, live, uploaded } from "../transfers/TransferSteps.ts"

/** The cookie of a session of this key. */
const cookieOf = (key: string) =>
  Effect.flatMap(TestServer, ({ ask }) =>
    Effect.map(
      ask("POST", "/api/session", { key }),
      ({ headers }) => headers.get("set-cookie")?.split(";")[0] ?? assert.fail("no cookie")
    )
  )

layer(TestServer.shared, live)("access to shared files", (it) => {
  it.effect("is given by a session's cookie, for lists, bytes, uploads and links", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      const { key } = yield* makeUser()
      const cookie = yield* cookieOf(key)
      const by = { key: "", headers: { cookie, "sec-fetch-site": "same-origin" } }
      const sent = yield* ask("POST", "/api/upload", { ...by, body: formOf([["a.txt", "a"]]) })
      assert.strictEqual(sent.status, 200)
      const [file] = (sent.json as { files: ReadonlyArray<{ fileId: string; directoryId: string }> }).files
      for (const [method, path, json] of [
        ["GET", "/api/directories"],
        ["GET", `/api/files/${file?.fileId}`],
        ["GET", `/api/files/${file?.fileId}/versions`],
        ["GET", `/api/download/${file?.directoryId}`],
        ["GET", "/api/sync/manifest"],
        ["GET", "/api/share-links"],
        ["POST", "/api/share-links", { fileId: file?.fileId }]
      ] as const) {
        const answer = yield* ask(method, path, { ...by, ...(json !== undefined && { json }) })
        assert.strictEqual(answer.status, 200, path)
      }
    })
  )

  it.effect("is refused to changes by pages of other origins with the cookie, and to no reading", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      const { key } = yield* makeUser()
      const file = yield* uploaded(["a.txt", "a"], {}, { key })
      const cookie = yield* cookieOf(key)
      for (const page of [
        { "sec-fetch-site": "cross-site" },
        { "sec-fetch-site": "same-site" },
        { origin: "https://elsewhere.example" }
      ]) {
        const by = { key: "", headers: { cookie, ...page } }
        for (const [method, path, body] of [
          ["POST", "/api/share-links", { json: { fileId: file.fileId } }],
          ["POST", "/api/directories", { json: { name: "made" } }],
          ["POST", "/api/upload", { body: formOf([["b.txt", "b"]]) }],
          ["POST", "/api/cli/upload", { body: formOf([["b.txt", "b"]]) }],
          ["PUT", "/api/upload/uploads/b.txt", { body: "b" }],
          ["DELETE", `/api/files/${file.fileId}`, {}],
          ["POST", "/api/uploads", {}],
          ["DELETE", "/api/trash", {}]
        ] as const) {
          const answer = yield* ask(method, path, { ...by, ...body })
          assert.deepStrictEqual(
            [answer.status, answer.json],
            [403, { error: "Pages of other origins may not do this" }],
            `${method} ${path}`
          )
        }
        assert.strictEqual((yield* ask("GET", `/api/files/${file.fileId}`, by)).status, 200)
      }
      assert.strictEqual((yield* ask("GET", `/api/files/${file.fileId}/versions`, { key })).status, 200)
    })
  )

  it.effect("ends with the key of the session", () =>
    Effect.gen(function* () {
      const { ask, makeKey, makeUser } = yield* TestServer
      const { key } = yield* makeUser()
      const file = yield* uploaded(["a.txt", "a"], {}, { key })
      const narrow = yield* makeKey({ scopes: ["read"] }, key)
      const cookie = yield* cookieOf(narrow.key)
      const by = { key: "", headers: { cookie, "sec-fetch-site": "same-origin" } }
      assert.strictEqual((yield* ask("GET", `/api/files/${file.fileId}`, by)).status, 200)
      const upload = yield* ask("POST", "/api/upload", { ...by, body: formOf([["b.txt", "b"]]) })
      assert.strictEqual(upload.status, 403, "a session has the scopes of its key")
      yield* ask("DELETE", `/api/v1/keys/${narrow.id}`, { key })
      const after = yield* ask("GET", `/api/files/${file.fileId}`, by)
      assert.deepStrictEqual([after.status, after.bytes.length], [401, 0])
    })
  )

  it.effect("is described by a document of the room, without a key", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const { json, status } = yield* ask("GET", "/api/openapi.json", { key: "" })
      assert.strictEqual(status, 200)
      const { components, openapi, paths } = json as {
        openapi: string
        paths: Readonly<Record<string, object>>
        components: { schemas: Readonly<Record<string, object>> }
      }
      assert.match(openapi, /^3\.1/)
      const names = Object.keys(paths)
      assert.includeMembers(names, [
        "/api/cli/upload",
        "/api/upload",
        "/api/files/{id}",
        "/api/files/{id}/versions",
        "/api/download/{dirId}",
        "/api/share-links",
        "/api/sync/manifest",
        "/api/sync/subscriptions",
        "/api/devices",
        "/api/send",
        "/api/directories",
        "/api/cli/auth/init",
        "/direct/{token}"
      ])
      assert.sameMembers(
        names.filter((name) => name.startsWith("/api/v1")),
        ["/api/v1/health", "/api/v1/stats", "/api/v1/users"]
      )
      assert.deepStrictEqual(Object.keys(paths["/api/v1/users"] ?? {}), ["get"])
      const text = JSON.stringify(json)
      for (const [, name = ""] of text.matchAll(/"#\/components\/schemas\/([^"]+)"/g))
        assert.property(components.schemas, decodeURIComponent(name))
      assert.notProperty(components.schemas, "ChatCompletion")
    })
  )
})

layer(TestServer.own({ limits: { filesRatePerHour: 3, ratePerMinute: 40, rateBurst: 40 } }), live)(
  "the hour's meter",
  (it) => {
    it.effect("counts a key's requests, says the text of the contract, and leaves other rooms alone", () =>
      Effect.gen(function* () {
        const { ask, makeUser } = yield* TestServer
        const { key } = yield* makeUser()
        const list = () => ask("GET", "/api/directories", { key })
        for (const left of [2, 1, 0]) {
          const { headers, status } = yield* list()
          assert.strictEqual(status, 200)
          assert.strictEqual(headers.get("ratelimit-limit"), "3")
          assert.strictEqual(headers.get("ratelimit-remaining"), String(left))
        }
        const refused = yield* list()
        assert.strictEqual(refused.status, 429)
        assert.strictEqual(textOf(refused, "error"), "Rate limit exceeded (3 requests per hour)")
        assert.isAtLeast(Number(refused.headers.get("retry-after")), 3_500)
        assert.strictEqual(refused.headers.get("x-should-retry"), "false")
        const bytes = yield* ask("GET", "/api/files/fv_4fJ2mQ0sXb7RkT1zYw8aLc", { key })
        assert.deepStrictEqual([bytes.status, bytes.bytes.length], [429, 0], "raw routes count, too")
        assert.strictEqual((yield* ask("GET", "/api/v1/health", { key })).status, 200)
        const { key: other } = yield* makeUser()
        assert.strictEqual((yield* ask("GET", "/api/directories", { key: other })).status, 200)
      })
    )

    it.effect("gives way to a key's own rate, and to the common one of sessions", () =>
      Effect.gen(function* () {
        const { ask, makeKey, makeUser } = yield* TestServer
        const { key } = yield* makeUser()
        const own = yield* makeKey({ rate_limit_per_minute: 30 }, key)
        const byKey = yield* ask("GET", "/api/directories", { key: own.key })
        assert.strictEqual(byKey.headers.get("ratelimit-limit"), "30")
        const cookie = yield* cookieOf(key)
        for (let n = 0; n < 5; n++) {
          const bySession = yield* ask("GET", "/api/directories", { key: "", headers: { cookie } })
          assert.deepStrictEqual([bySession.status, bySession.headers.get("ratelimit-limit")], [200, "40"])
        }
      })
    )

    it.effect("counts neither share links nor the parts of resumable uploads", () =>
      Effect.gen(function* () {
        const { ask, makeUser, url } = yield* TestServer
        const { key } = yield* makeUser()
        const file = yield* uploaded(["a.txt", "a"], { link: "1" }, { key })
        for (let n = 0; n < 5; n++)
          assert.strictEqual((yield* Effect.promise(() => fetch(file.directUrl ?? url))).status, 200)
        const tus = { "tus-resumable": "1.0.0" }
        const made = yield* ask("POST", "/api/uploads", {
          key,
          headers: { ...tus, "upload-length": "1", "upload-metadata": "filename YS50eHQ=" }
        })
        assert.strictEqual(made.status, 201)
        const path = new URL(made.headers.get("location") ?? "", url).pathname
        for (let n = 0; n < 5; n++) {
          const head = yield* ask("HEAD", path, { key, headers: tus })
          assert.strictEqual(head.status, 200)
          assert.isNull(head.headers.get("ratelimit-limit"))
        }
      })
    )
  }
)
