import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { ShareLink } from "#schemas/files/ShareLink.ts"
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
})
