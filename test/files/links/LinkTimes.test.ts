import { assert, describe, it as plainly, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SharedLink } from "#schemas/files/ShareLink.ts"
import { sweepLinks } from "#src/files/links/LinkServices.ts"
import { type Limits, limits } from "#src/Limits.ts"
import { TestServer, textOf } from "#test/harness/TestServer.ts"
import { live, uploaded } from "../transfers/TransferSteps.ts"
import { bodyOf, browser, direct, shared, until, usesOf } from "./LinkSteps.ts"

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour
const password = "correct horse"

layer(
  TestServer.own({
    trustProxy: 1,
    limits: { wrongPasswordsPerMinute: 2, wrongPasswordsPerHour: 3, linksPerUser: 3 }
  }),
  live
)("as time passes, a link", (it) => {
  it.effect(
    "expires, before it is exhausted or asks for its password, and an upload's own after an hour",
    () =>
      Effect.gen(function* () {
        const { makeUser, stopClockAt } = yield* TestServer
        const { key } = yield* makeUser()
        const start = Date.now()
        stopClockAt(start)
        const { file, link } = yield* shared(key, { expiresInMinutes: 0.5, singleUse: true, password })
        assert.strictEqual(link.expiresAt, new Date(start + minute / 2).toISOString())
        const right = { headers: { "x-share-password": password } }
        assert.strictEqual((yield* direct(link.token, right)).status, 200)
        stopClockAt(start + minute / 2 - 1)
        assert.deepStrictEqual((yield* direct(link.token)).json, { error: "Link exhausted" })
        stopClockAt(start + minute / 2)
        for (const asked of [{}, right, { method: "POST" }, { headers: { range: "bytes=1-" } }]) {
          const answer = yield* direct(link.token, asked)
          assert.deepStrictEqual([answer.status, answer.json], [410, { error: "Link expired" }])
        }
        assert.strictEqual((yield* direct(link.token, { method: "HEAD" })).status, 410)
        const page = yield* direct(link.token, { headers: browser })
        assert.strictEqual(page.status, 410)
        assert.include(bodyOf(page), "This link has expired")
        const own = yield* uploaded(["own.txt", "own"], { link: "1" }, { key })
        const token = own.directUrl?.split("/").at(-1) ?? ""
        const at = start + minute / 2
        stopClockAt(at + hour - 1)
        assert.strictEqual(bodyOf(yield* direct(token)), "own")
        stopClockAt(at + hour)
        assert.deepStrictEqual((yield* direct(token)).json, { error: "Link expired" })
        assert.isNull(file.directUrl)
        stopClockAt(undefined)
      })
  )

  it.effect("lets a use go on for an hour from its begin", () =>
    Effect.gen(function* () {
      const { makeUser, stopClockAt } = yield* TestServer
      const { key } = yield* makeUser()
      const start = Date.now()
      stopClockAt(start)
      const { link } = yield* shared(key, { singleUse: true }, "0123456789")
      const clicked = yield* direct(link.token, { method: "POST" })
      const query = clicked.headers.get("location")?.split("?")[1] ?? ""
      stopClockAt(start + hour - 1)
      assert.strictEqual((yield* direct(link.token, { query, headers: { range: "bytes=9-" } })).status, 206)
      assert.strictEqual((yield* direct(link.token, { headers: { range: "bytes=9-" } })).status, 206)
      stopClockAt(start + hour)
      for (const asked of [{ query }, { headers: { range: "bytes=9-" } }])
        assert.deepStrictEqual((yield* direct(link.token, asked)).json, { error: "Link exhausted" })
      stopClockAt(undefined)
    })
  )

  it.effect("gets a use back that a button began and nobody took, and loses what is old", () =>
    Effect.gen(function* () {
      const { ask, makeUser, stopClockAt } = yield* TestServer
      const sql = yield* SqlClient
      const { key } = yield* makeUser()
      const start = Date.now()
      stopClockAt(start)
      const { link } = yield* shared(key, { singleUse: true })
      const { link: taken } = yield* shared(key, { maxRequests: 2, expiresInMinutes: 60 })
      yield* direct(taken.token)
      assert.strictEqual((yield* direct(link.token, { method: "POST" })).status, 303)
      yield* sweepLinks
      assert.strictEqual(yield* usesOf(key, link.token), 1, "its hour is not over")
      const read = Effect.map(
        ask("GET", `/api/share-links/${taken.token}`, { key }),
        ({ json }) => json as SharedLink
      )
      yield* until(Effect.map(read, ({ downloads }) => downloads[0]?.complete === true))
      stopClockAt(start + hour + 1)
      yield* sweepLinks
      assert.strictEqual(yield* usesOf(key, link.token), 0)
      assert.strictEqual(yield* usesOf(key, taken.token), 1, "what was taken stays taken")
      assert.strictEqual((yield* direct(link.token)).status, 200)
      stopClockAt(start + 91 * day)
      yield* sweepLinks
      const { json } = yield* ask("GET", `/api/share-links/${link.token}`, { key })
      assert.deepInclude(json, { uses: 1, downloads: [] }, "downloads are told of for 90 days")
      assert.strictEqual((yield* direct(taken.token)).status, 404, "an expired one is unknown after 90 days")
      const rows = yield* sql<{ n: number }>`SELECT count(*)::int AS n FROM share_uses`
      assert.deepStrictEqual(rows, [{ n: 0 }])
      stopClockAt(undefined)
    })
  )

  it.effect("keeps the use of a download that takes longer than an hour", () =>
    Effect.gen(function* () {
      const { makeUser, stopClockAt } = yield* TestServer
      const sql = yield* SqlClient
      const { key } = yield* makeUser()
      const start = Date.now()
      stopClockAt(start)
      const { link } = yield* shared(key, { singleUse: true })
      assert.strictEqual((yield* direct(link.token, { method: "POST" })).status, 303)
      // A request is sending its bytes.
      yield* sql`UPDATE share_uses SET held = size WHERE held = 0 AND sent = 0`
      stopClockAt(start + 2 * hour)
      yield* sweepLinks
      assert.strictEqual(yield* usesOf(key, link.token), 1)
      stopClockAt(undefined)
    })
  )

  it.effect("is refused for a while after wrong passwords: from one address, and from all of them", () =>
    Effect.gen(function* () {
      const { makeUser } = yield* TestServer
      const { key } = yield* makeUser()
      const { link } = yield* shared(key, { password })
      const { link: other } = yield* shared(key, { password })
      const right = { headers: { "x-share-password": password } }
      const wrong = direct(link.token, { query: "password=wrong" })
      for (let n = 0; n < 3; n++) assert.strictEqual((yield* direct(link.token, right)).status, 200)
      for (let n = 0; n < 2; n++) assert.strictEqual((yield* wrong).status, 401)
      for (const asked of [{ query: "password=wrong" }, right]) {
        const refused = yield* direct(link.token, asked)
        assert.strictEqual(refused.status, 429)
        assert.match(textOf(refused, "error"), /^Too many wrong passwords; try again in \d+ s$/)
        assert.match(refused.headers.get("retry-after") ?? "", /^\d+$/)
      }
      const page = yield* direct(link.token, { headers: { ...browser, "x-share-password": password } })
      assert.strictEqual(page.status, 429)
      assert.strictEqual((yield* direct(other.token, right)).status, 200, "another link is open")
      const from = (address: string) => ({ headers: { ...right.headers, "x-forwarded-for": address } })
      assert.strictEqual((yield* direct(link.token, from("2001:db8::1"))).status, 200, "another address, too")
      const third = { query: "password=wrong", headers: { "x-forwarded-for": "2001:db8::1" } }
      assert.strictEqual((yield* direct(link.token, third)).status, 401)
      assert.strictEqual((yield* direct(link.token, from("203.0.113.7"))).status, 429, "three in all")
    })
  )

  it.effect("is one of so many that a user may have, expired ones aside", () =>
    Effect.gen(function* () {
      const { ask, makeUser, stopClockAt } = yield* TestServer
      const { key } = yield* makeUser()
      const start = Date.now()
      stopClockAt(start)
      const { file } = yield* shared(key, { expiresInMinutes: 1 })
      const make = () => ask("POST", "/api/share-links", { key, json: { fileId: file.fileId } })
      for (let n = 0; n < 2; n++) assert.strictEqual((yield* make()).status, 200)
      yield* uploaded(["own.txt", "own"], { link: "1" }, { key })
      const refused = yield* make()
      assert.deepStrictEqual([refused.status, refused.json], [409, { error: "A user has at most 3 links" }])
      stopClockAt(start + minute)
      assert.strictEqual((yield* make()).status, 200)
      stopClockAt(undefined)
    })
  )

  it.effect("gives a use back where the bytes cannot be read", () =>
    Effect.gen(function* () {
      const { makeUser } = yield* TestServer
      const sql = yield* SqlClient
      const { key } = yield* makeUser()
      const { file, link } = yield* shared(key, { singleUse: true }, "damaged bytes")
      const mark = (damaged: boolean) =>
        sql`UPDATE blobs SET damaged = ${damaged} WHERE encode(sha256, 'hex') = ${file.fileHash}`
      yield* mark(true)
      assert.strictEqual((yield* direct(link.token)).status, 503)
      const page = yield* direct(link.token, { query: "download=1", headers: { accept: "*/*" } })
      assert.strictEqual(page.status, 503)
      yield* until(Effect.map(usesOf(key, link.token), (uses) => uses === 0))
      yield* mark(false)
      assert.strictEqual(bodyOf(yield* direct(link.token)), "damaged bytes")
    })
  )
})

describe("the numbers of links", () => {
  plainly("are those of the contract", () => {
    assert.deepInclude<Limits>(limits, {
      linksPerUser: 10_000,
      usesPerLink: 100,
      linkUseKeptMillis: 90 * day,
      linkUseMillis: hour,
      uploadLinkMillis: hour,
      wrongPasswordsPerMinute: 10,
      wrongPasswordsPerHour: 100,
      passwordsAtOnce: 2,
      filesRatePerHour: 1_000
    })
  })
})
