import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { ShareLink, SharedLink } from "#schemas/files/ShareLink.ts"
import { TestServer, textOf } from "#test/harness/TestServer.ts"
import { live, uploaded } from "../transfers/TransferSteps.ts"
import { bodyOf, browser, direct, shared, until, usesOf } from "./LinkSteps.ts"

layer(TestServer.shared, live)("share links", (it) => {
  it.effect("have the fields of the contract, and lead to the bytes without a key", () =>
    Effect.gen(function* () {
      const { makeUser, url } = yield* TestServer
      const { key } = yield* makeUser()
      const { link } = yield* shared(key)
      assert.match(link.token, /^[0-9A-Za-z]{22}$/)
      assert.strictEqual(link.url, `${url}/direct/${link.token}`)
      assert.deepInclude(link, {
        expiresAt: null,
        singleUse: false,
        passwordProtected: false,
        maxRequests: null,
        uses: 0,
        pinned: false,
        label: null,
        name: "report.txt"
      })
      const answer = yield* direct(link.token)
      assert.strictEqual(answer.status, 200)
      assert.strictEqual(bodyOf(answer), "the bytes")
      assert.strictEqual(answer.headers.get("content-disposition"), 'inline; filename="report.txt"')
      assert.strictEqual(answer.headers.get("x-content-type-options"), "nosniff")
      const page = yield* direct(link.token, { headers: browser })
      assert.strictEqual(bodyOf(page), "the bytes", "without a cap a browser gets the bytes at once")
    })
  )

  it.effect("of a single use work once, for programs at once and for people by the button", () =>
    Effect.gen(function* () {
      const { makeUser } = yield* TestServer
      const { key } = yield* makeUser()
      const { link } = yield* shared(key, { singleUse: true })
      assert.isTrue(link.singleUse)
      const page = yield* direct(link.token, { headers: browser })
      assert.strictEqual(page.status, 200)
      assert.include(bodyOf(page), "report.txt")
      assert.strictEqual(yield* usesOf(key, link.token), 0)
      const clicked = yield* direct(link.token, { method: "POST", headers: browser })
      assert.strictEqual(clicked.status, 303, bodyOf(clicked))
      const location = clicked.headers.get("location") ?? ""
      assert.match(location, new RegExp(`^/direct/${link.token}\\?ticket=[0-9A-Za-z]{22}$`))
      const query = location.split("?")[1] ?? ""
      const bytes = yield* direct(link.token, { query, headers: browser })
      assert.deepStrictEqual([bytes.status, bodyOf(bytes)], [200, "the bytes"])
      assert.strictEqual(bytes.headers.get("content-disposition"), 'attachment; filename="report.txt"')
      const again = yield* direct(link.token)
      assert.deepStrictEqual([again.status, again.json], [410, { error: "Link exhausted" }])
      const shown = yield* direct(link.token, { headers: browser })
      assert.strictEqual(shown.status, 410)
      assert.include(bodyOf(shown), "This link is used up")
    })
  )

  it.effect("take fields as the contract has them, null as absent, and name the one at fault", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      const { key } = yield* makeUser()
      const { file } = yield* shared(key)
      const fileId = file.fileId
      const make = (json: object) => ask("POST", "/api/share-links", { key, json })
      const made = (json: object) => Effect.map(make(json), (answer) => answer.json as ShareLink)
      const before = Date.now()
      assert.deepInclude(yield* made({ fileId, singleUse: true, maxRequests: 3 }), {
        singleUse: false,
        maxRequests: 3
      })
      assert.deepInclude(yield* made({ fileId, singleUse: true, maxRequests: null }), { maxRequests: 1 })
      assert.deepInclude(yield* made({ fileId, maxRequests: 1 }), { singleUse: true })
      assert.deepInclude(yield* made({ fileId, singleUse: false, maxRequests: 1_000_000 }), {
        maxRequests: 1_000_000
      })
      const quarter = yield* made({ fileId, expiresInMinutes: 0.25 })
      const expiresAt = Date.parse(quarter.expiresAt ?? "")
      assert.isAtLeast(expiresAt, before + 15_000)
      assert.isAtMost(expiresAt, Date.now() + 15_000)
      for (const name of ["password", "label", "expiresInMinutes", "directoryId", "pinned", "singleUse"])
        assert.deepInclude(yield* made({ fileId, [name]: null }), {
          passwordProtected: false,
          label: null,
          expiresAt: null,
          directoryId: null,
          pinned: false
        })
      assert.deepInclude(yield* made({ fileId, password: "p".repeat(256), label: "for Ada" }), {
        passwordProtected: true,
        label: "for Ada"
      })
      for (const [json, field] of [
        [{}, "fileId"],
        [{ fileId, directoryId: file.directoryId }, "directoryId"],
        [{ fileId, maxRequests: 0 }, "maxRequests"],
        [{ fileId, maxRequests: 1_000_001 }, "maxRequests"],
        [{ fileId, maxRequests: 1.5 }, "maxRequests"],
        [{ fileId, expiresInMinutes: 0 }, "expiresInMinutes"],
        [{ fileId, expiresInMinutes: -1 }, "expiresInMinutes"],
        [{ fileId, expiresInMinutes: 1e12 }, "expiresInMinutes"],
        [{ fileId, password: "" }, "password"],
        [{ fileId, password: "p".repeat(257) }, "password"],
        [{ fileId, label: "two\nlines" }, "label"],
        [{ fileId, singleUse: "yes" }, "singleUse"],
        [{ fileId: "fil_1" }, "fileId"],
        [{ directoryId: file.directoryId, pinned: true }, "pinned"]
      ] as const) {
        const answer = yield* make(json)
        assert.strictEqual(answer.status, 400, JSON.stringify(json))
        assert.match(textOf(answer, "error"), new RegExp(`^${field}: `), JSON.stringify(json))
      }
    })
  )

  it.effect("lead to what is one's own alone, and are listed, read and revoked by their owner alone", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      const { key } = yield* makeUser()
      const { key: stranger } = yield* makeUser()
      const { file, link } = yield* shared(key, { label: "one" })
      const { link: second } = yield* shared(key, { label: "two" }, "other bytes", "other.txt")
      for (const [json, message] of [
        [{ fileId: file.fileId }, "File not found"],
        [{ directoryId: file.directoryId }, "Directory not found"]
      ] as const) {
        const answer = yield* ask("POST", "/api/share-links", { key: stranger, json })
        assert.deepStrictEqual([answer.status, answer.json], [404, { error: message }])
      }
      const list = (query = "", by = key) =>
        Effect.map(ask("GET", `/api/share-links${query}`, { key: by }), ({ json }) => {
          const { cursor, links } = json as { cursor: string | null; links: ReadonlyArray<ShareLink> }
          return { cursor, labels: links.map(({ label }) => label), tokens: links.map(({ token }) => token) }
        })
      assert.deepStrictEqual((yield* list()).labels, ["two", "one"])
      assert.deepStrictEqual((yield* list()).tokens, [second.token, link.token])
      assert.deepStrictEqual((yield* list("", stranger)).labels, [])
      assert.deepStrictEqual((yield* list(`?fileId=${file.fileId}`)).labels, ["one"])
      const byDirectory = yield* ask("POST", "/api/share-links", {
        key,
        json: { directoryId: file.directoryId, label: "three" }
      })
      assert.deepInclude(byDirectory.json, { name: "uploads", fileId: null, directoryId: file.directoryId })
      assert.deepStrictEqual((yield* list(`?directoryId=${file.directoryId}`)).labels, ["three"])
      const first = yield* list("?limit=2")
      assert.deepStrictEqual(first.labels, ["three", "two"])
      assert.deepStrictEqual((yield* list(`?limit=2&cursor=${first.cursor}`)).labels, ["one"])
      assert.isNull((yield* list(`?limit=2&cursor=${first.cursor}`)).cursor)
      assert.strictEqual((yield* ask("GET", "/api/share-links?cursor=x", { key })).status, 400)
      for (const method of ["GET", "DELETE"])
        for (const [path, by] of [
          [link.token, stranger],
          ["4fJ2mQ0sXb7RkT1zYw8aLc", key],
          ["short", key]
        ] as const) {
          const answer = yield* ask(method, `/api/share-links/${path}`, { key: by })
          assert.deepStrictEqual([answer.status, answer.json], [404, { error: "Link not found" }])
        }
      const revoked = yield* ask("DELETE", `/api/share-links/${link.token}`, { key })
      assert.deepStrictEqual([revoked.status, revoked.json], [200, { success: true }])
      const after = yield* direct(link.token)
      assert.deepStrictEqual([after.status, after.json], [404, { error: "Link not found" }])
      assert.strictEqual((yield* direct(second.token)).status, 200)
    })
  )

  it.effect("mean the file at its current version, a pinned one and an upload's own the version", () =>
    Effect.gen(function* () {
      const { ask, makeKey, makeUser } = yield* TestServer
      const { key } = yield* makeUser()
      const upload = (text: string) => uploaded(["notes.txt", text], { link: "1" }, { key })
      const first = yield* upload("first")
      const make = (json: object) =>
        Effect.map(
          ask("POST", "/api/share-links", { key, json: { fileId: first.fileId, ...json } }),
          ({ json }) => (json as ShareLink).token
        )
      const current = yield* make({})
      const pinned = yield* make({ pinned: true })
      const own = first.directUrl?.split("/").at(-1) ?? ""
      assert.match(own, /^[0-9A-Za-z]{22}$/)
      yield* upload("second")
      assert.strictEqual(bodyOf(yield* direct(current)), "second")
      assert.strictEqual(bodyOf(yield* direct(pinned)), "first")
      assert.strictEqual(bodyOf(yield* direct(own)), "first")
      const { json } = yield* ask("GET", "/api/share-links", { key })
      assert.lengthOf((json as { links: ReadonlyArray<ShareLink> }).links, 2, "an upload's own is in no list")
      const { key: another } = yield* makeUser()
      const { key: writes } = yield* makeKey({ scopes: ["read", "write"] }, key)
      for (const method of ["GET", "DELETE"]) {
        const path = `/api/share-links/${own}`
        assert.strictEqual((yield* ask(method, path, { key: another })).status, 404)
        assert.strictEqual((yield* ask(method, path, { key: writes })).status, 403)
      }
      const mine = yield* ask("GET", `/api/share-links/${own}`, { key })
      assert.deepInclude(mine.json, { token: own, pinned: true, maxRequests: null, uses: 1 })
      const moved = yield* ask("PATCH", `/api/files/${first.fileId}`, { key, json: { name: "moved.txt" } })
      assert.strictEqual(moved.status, 200)
      assert.include((yield* direct(current)).headers.get("content-disposition"), "moved.txt")
      assert.strictEqual((yield* ask("DELETE", `/api/files/${first.fileId}`, { key })).status, 200)
      for (const token of [current, pinned, own])
        assert.strictEqual((yield* direct(token)).status, 404, "its file is in the trash")
      assert.strictEqual((yield* ask("POST", `/api/files/${first.fileId}/restore`, { key })).status, 200)
      assert.strictEqual(bodyOf(yield* direct(current)), "second")
      assert.strictEqual((yield* ask("DELETE", `/api/share-links/${own}`, { key })).status, 200)
      assert.strictEqual((yield* direct(own)).status, 404)
    })
  )

  it.effect("tell their owner of the downloads, and count nothing that HEAD, 304 and 416 ask", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      const { key } = yield* makeUser()
      const { link } = yield* shared(key, { maxRequests: 3 })
      const read = Effect.map(
        ask("GET", `/api/share-links/${link.token}`, { key }),
        ({ json }) => json as SharedLink
      )
      const head = yield* direct(link.token, { method: "HEAD" })
      assert.deepStrictEqual([head.status, head.headers.get("content-length")], [200, "9"])
      const whole = yield* direct(link.token, { headers: { "user-agent": "example/1" } })
      const etag = whole.headers.get("etag") ?? ""
      assert.strictEqual((yield* direct(link.token, { headers: { "if-none-match": etag } })).status, 304)
      yield* until(Effect.map(read, ({ downloads, uses }) => uses === 1 && downloads[0]?.complete === true))
      const { downloads, uses } = yield* read
      assert.strictEqual(uses, 1)
      assert.lengthOf(downloads, 1)
      assert.deepInclude(downloads[0], { bytes: 9, complete: true, address: "127.0.0.1", agent: "example/1" })
      // From this address there is a use that it would belong to.
      assert.strictEqual((yield* direct(link.token, { headers: { range: "bytes=9-" } })).status, 416)
      assert.strictEqual((yield* read).uses, 1)
    })
  )

  it.effect("are made, listed and revoked with the scope full alone", () =>
    Effect.gen(function* () {
      const { ask, makeKey, makeUser } = yield* TestServer
      const { key } = yield* makeUser()
      const { file, link } = yield* shared(key)
      const { key: narrow } = yield* makeKey({ scopes: ["read", "write", "replicate"] }, key)
      for (const [method, path] of [
        ["POST", ""],
        ["GET", ""],
        ["GET", `/${link.token}`],
        ["DELETE", `/${link.token}`]
      ] as const) {
        const body = method === "POST" ? { json: { fileId: file.fileId } } : {}
        const answer = yield* ask(method, `/api/share-links${path}`, { key: narrow, ...body })
        assert.deepStrictEqual([answer.status, answer.json], [403, { error: "This takes the scope full" }])
      }
    })
  )
})
