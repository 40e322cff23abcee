import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { SharedLink } from "#schemas/files/ShareLink.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { live, uploaded } from "../transfers/TransferSteps.ts"
import { bodyOf, browser, direct, shared, until, usesOf } from "./LinkSteps.ts"

const password = "correct horse"
const form = (text: string) => ({
  method: "POST",
  headers: { "content-type": "application/x-www-form-urlencoded" },
  body: new URLSearchParams({ password: text }).toString()
})

layer(TestServer.shared, live)("what a link answers", (it) => {
  it.effect("is JSON to programs and a page to people, for tokens that there are not", () =>
    Effect.gen(function* () {
      for (const token of ["4fJ2mQ0sXb7RkT1zYw8aLc", "short", "..%2f", "%00", "a".repeat(300)]) {
        const program = yield* direct(token)
        assert.deepStrictEqual([program.status, program.json], [404, { error: "Link not found" }], token)
        const person = yield* direct(token, { headers: browser })
        assert.strictEqual(person.status, 404)
        assert.include(bodyOf(person), "Nothing is shared here")
      }
    })
  )

  it.effect("goes by order: exhausted before the password, which is checked before a use counts", () =>
    Effect.gen(function* () {
      const { makeUser } = yield* TestServer
      const { key } = yield* makeUser()
      const { link } = yield* shared(key, { singleUse: true, password })
      const without = yield* direct(link.token)
      assert.deepStrictEqual([without.status, without.json], [401, { error: "Password required" }])
      for (const asked of [
        { query: "password=wrong" },
        { headers: { "x-share-password": "wrong" } },
        form("wrong")
      ]) {
        const wrong = yield* direct(link.token, asked)
        assert.deepStrictEqual([wrong.status, wrong.json], [401, { error: "Wrong password" }])
      }
      assert.strictEqual((yield* direct(link.token, { method: "HEAD" })).status, 401)
      assert.strictEqual(yield* usesOf(key, link.token), 0)
      const right = yield* direct(link.token, { headers: { "x-share-password": password } })
      assert.deepStrictEqual([right.status, bodyOf(right)], [200, "the bytes"])
      assert.strictEqual(right.headers.get("cross-origin-resource-policy"), "cross-origin")
      for (const query of ["", "password=wrong", `password=${encodeURIComponent(password)}`]) {
        const after = yield* direct(link.token, { query })
        assert.deepStrictEqual([after.status, after.json], [410, { error: "Link exhausted" }])
      }
    })
  )

  it.effect("takes the password from the query, a form and JSON, in any letters", () =>
    Effect.gen(function* () {
      const { makeUser } = yield* TestServer
      const { key } = yield* makeUser()
      const composed = "Grüße & 日本"
      const { link } = yield* shared(key, { password: composed.normalize("NFC") })
      const decomposed = composed.normalize("NFD")
      const queried = yield* direct(link.token, { query: `password=${encodeURIComponent(decomposed)}` })
      assert.strictEqual(bodyOf(queried), "the bytes")
      for (const asked of [
        form(decomposed),
        {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ password: composed })
        }
      ]) {
        const answer = yield* direct(link.token, asked)
        assert.strictEqual(answer.status, 303)
        const query = answer.headers.get("location")?.split("?")[1] ?? ""
        const bytes = yield* direct(link.token, { query })
        assert.deepStrictEqual([bytes.status, bodyOf(bytes)], [200, "the bytes"], "the ticket is enough")
      }
    })
  )

  it.effect("is a form to a browser without the password, which tells nothing of the file", () =>
    Effect.gen(function* () {
      const { makeUser } = yield* TestServer
      const { key } = yield* makeUser()
      const { link } = yield* shared(key, { password }, "the bytes", "secret name.txt")
      const asked = yield* direct(link.token, { headers: browser })
      assert.strictEqual(asked.status, 401)
      assert.include(bodyOf(asked), '<form method="post">')
      assert.notInclude(bodyOf(asked), "secret name")
      const { body, method } = form("wrong")
      const headers = { ...browser, "content-type": "application/x-www-form-urlencoded" }
      const wrong = yield* direct(link.token, { method, body, headers })
      assert.strictEqual(wrong.status, 401)
      assert.include(bodyOf(wrong), "Wrong password.")
    })
  )

  it.effect("is the page of a capped link to previewers and prefetches, which use nothing up", () =>
    Effect.gen(function* () {
      const { makeUser } = yield* TestServer
      const { key } = yield* makeUser()
      const { link } = yield* shared(key, { singleUse: true }, "the bytes", "<b>&'.html")
      for (const headers of [
        browser,
        { "user-agent": "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)" },
        { "user-agent": "WhatsApp/2.23.20.0" },
        { purpose: "prefetch" },
        { "sec-purpose": "prefetch;prerender" }
      ]) {
        const page = yield* direct(link.token, { headers })
        assert.strictEqual(page.status, 200)
        assert.strictEqual(page.headers.get("content-type"), "text/html; charset=utf-8")
        assert.include(bodyOf(page), "&lt;b&gt;&amp;'.html")
        assert.notInclude(bodyOf(page), "<b>&")
        assert.include(page.headers.get("content-security-policy"), "default-src 'none'")
        assert.strictEqual(page.headers.get("referrer-policy"), "no-referrer")
        assert.strictEqual(page.headers.get("cache-control"), "private, no-store")
      }
      assert.strictEqual((yield* direct(link.token, { method: "HEAD", headers: browser })).status, 200)
      assert.strictEqual(yield* usesOf(key, link.token), 0)
      const program = yield* direct(link.token)
      assert.deepStrictEqual([program.status, bodyOf(program)], [200, "the bytes"])
      assert.include(program.headers.get("content-security-policy"), "sandbox", "HTML never runs")
    })
  )

  it.effect("gives an archive of a directory, with its length and ranges", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      const { key } = yield* makeUser()
      const file = yield* uploaded(["a.txt", "a"], { dir: "holiday" }, { key })
      const { json } = yield* ask("POST", "/api/share-links", {
        key,
        json: { directoryId: file.directoryId, maxRequests: 1 }
      })
      const { token } = json as { readonly token: string }
      const page = yield* direct(token, { headers: browser })
      assert.include(bodyOf(page), "holiday.tgz")
      const archive = yield* direct(token)
      assert.deepStrictEqual(
        [archive.status, archive.headers.get("content-type"), archive.headers.get("content-disposition")],
        [200, "application/x-gzip", 'attachment; filename="holiday.tgz"']
      )
      assert.strictEqual(archive.headers.get("content-length"), String(archive.bytes.length))
      const rest = yield* direct(token, { headers: { range: "bytes=10-" } })
      assert.strictEqual(rest.status, 206, "a range from the same address goes on with the use")
      assert.deepStrictEqual(Buffer.from(rest.bytes), Buffer.from(archive.bytes.subarray(10)))
    })
  )

  it.effect("goes on with a use by ranges, for twice its size and no more", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      const { key } = yield* makeUser()
      const { link } = yield* shared(key, { singleUse: true }, "0123456789")
      const first = yield* direct(link.token, { headers: { range: "bytes=0-" } })
      assert.deepStrictEqual([first.status, bodyOf(first)], [206, "0123456789"])
      const settled = until(
        Effect.map(
          ask("GET", `/api/share-links/${link.token}`, { key }),
          ({ json }) => ((json as SharedLink).downloads[0]?.bytes ?? 0) >= 10
        )
      )
      yield* settled
      const second = yield* direct(link.token, { headers: { range: "bytes=4-" } })
      assert.deepStrictEqual([second.status, bodyOf(second)], [206, "456789"])
      const third = yield* direct(link.token, { headers: { range: "bytes=4-" } })
      assert.deepStrictEqual([third.status, third.json], [410, { error: "Link exhausted" }])
      const short = yield* direct(link.token, { headers: { range: "bytes=9-" } })
      assert.deepStrictEqual([short.status, bodyOf(short)], [206, "9"])
      assert.strictEqual((yield* direct(link.token)).status, 410)
      assert.strictEqual(yield* usesOf(key, link.token), 1)
    })
  )

  it.effect("counts as many bytes as it sends, also with an If-Range that is no date of HTTP", () =>
    Effect.gen(function* () {
      const { makeUser } = yield* TestServer
      const { key } = yield* makeUser()
      const { link } = yield* shared(key, { singleUse: true }, "0123456789")
      const headers = { range: "bytes=0-0", "if-range": new Date(0).toISOString() }
      const statuses = yield* Effect.forEach([1, 2, 3, 4], () =>
        Effect.map(direct(link.token, { headers }), ({ status }) => status)
      )
      assert.deepStrictEqual(statuses, [200, 200, 410, 410])
    })
  )

  it.effect("counts nothing where it has no bytes to send: 304, 416", () =>
    Effect.gen(function* () {
      const { makeUser } = yield* TestServer
      const { key } = yield* makeUser()
      const { link } = yield* shared(key, { maxRequests: 2 }, "0123456789")
      const etag = (yield* direct(link.token, { method: "HEAD" })).headers.get("etag") ?? ""
      assert.strictEqual((yield* direct(link.token, { headers: { "if-none-match": etag } })).status, 304)
      assert.strictEqual((yield* direct(link.token, { headers: { range: "bytes=50-" } })).status, 416)
      assert.strictEqual(yield* usesOf(key, link.token), 0)
    })
  )

  it.effect("is attached where it is asked to be, and for a ticket of a capped link", () =>
    Effect.gen(function* () {
      const { makeUser } = yield* TestServer
      const { key } = yield* makeUser()
      const { link } = yield* shared(key)
      for (const [query, disposition] of [
        ["", "inline"],
        ["download=0", "inline"],
        ["download=1", "attachment"],
        ["ticket=4fJ2mQ0sXb7RkT1zYw8aLc", "inline"]
      ] as const) {
        const answer = yield* direct(link.token, { query })
        assert.strictEqual(answer.headers.get("content-disposition"), `${disposition}; filename="report.txt"`)
      }
      const posted = yield* direct(link.token, { method: "POST", query: "download=1" })
      assert.match(posted.headers.get("location") ?? "", /&download=1$/)
    })
  )

  it.effect("refuses other methods, and bodies that are no password", () =>
    Effect.gen(function* () {
      const { makeUser } = yield* TestServer
      const { key } = yield* makeUser()
      const { link } = yield* shared(key, { singleUse: true })
      const put = yield* direct(link.token, { method: "PUT" })
      assert.strictEqual(put.status, 405)
      assert.strictEqual(put.headers.get("allow"), "GET, POST, HEAD, OPTIONS")
      const json = { "content-type": "application/json" }
      for (const [body, message] of [
        ["{", "The body is not valid JSON"],
        ['{"password": 1}', "password: expected text"]
      ] as const) {
        const answer = yield* direct(link.token, { method: "POST", headers: json, body })
        assert.deepStrictEqual([answer.status, answer.json], [400, { error: message }])
      }
      const long = yield* direct(link.token, { method: "POST", headers: json, body: "x".repeat(20_000) })
      assert.strictEqual(long.status, 413)
      assert.strictEqual(yield* usesOf(key, link.token), 0)
    })
  )

  it.effect("is in no log line with its token or password", () =>
    Effect.gen(function* () {
      const { logged, makeUser } = yield* TestServer
      const { key } = yield* makeUser()
      const { link } = yield* shared(key, { password })
      yield* direct(link.token, { query: "password=unusual-text" })
      yield* direct(link.token, { query: `password=${encodeURIComponent(password)}` })
      const lines = logged().join("\n")
      assert.notInclude(lines, link.token)
      assert.notInclude(lines, "unusual-text")
      assert.notInclude(lines, "correct")
    })
  )
})
