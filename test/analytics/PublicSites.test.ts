import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer, textOf } from "#test/harness/TestServer.ts"
import { makeSite, rowsOf, statusAndBody } from "./SiteProbe.ts"
import { threeVisits } from "./SiteVisits.ts"

const live = { excludeTestServices: true } as const

const notFound = [404, { error: "Site not found" }] as const

/** The reads of a public site that need no key. */
const publicReads = ["stats", "breakdown?dimension=page", "realtime"]

/** A public site of a person who meets no rate limit. */
const makePublicSite = Effect.gen(function* () {
  const { makeKey } = yield* TestServer
  const { key } = yield* makeKey({ rate_limit_per_minute: 1_000_000 })
  return { key, site: yield* makeSite({ public: true }, key) }
})

layer(TestServer.own(), live)("a public site", (it) => {
  it.effect("answers everybody, without a key, what it answers its owner", () =>
    Effect.gen(function* () {
      const { stopClockAt } = yield* TestServer
      const { site } = yield* makePublicSite
      yield* site.collect(threeVisits)
      yield* Effect.addFinalizer(() => Effect.sync(() => stopClockAt(undefined)))
      stopClockAt(Date.now())
      for (const rest of [
        ...publicReads,
        "stats?period=7d&event=signup&timezone=Asia/Kolkata",
        "breakdown?dimension=prop:plan&period=today&limit=1&device=mobile",
        "breakdown?dimension=source&format=csv"
      ]) {
        const shown = yield* site.readPublic(rest)
        assert.strictEqual(shown.status, 200, rest)
        const owners = yield* site.read(rest)
        assert.deepStrictEqual(
          Buffer.from(shown.bytes).toString(),
          Buffer.from(owners.bytes).toString(),
          rest
        )
      }
      assert.deepStrictEqual(rowsOf(yield* site.readPublic("breakdown?dimension=event")), [
        ["signup", 2, 0, 3],
        ["scroll", 1, 0, 5]
      ])
    })
  )

  it.effect("shows what was collected just now", () =>
    Effect.gen(function* () {
      const { site } = yield* makePublicSite
      for (const views of [1, 2]) {
        yield* site.collect([{ url: "/", visitor: "v" }])
        assert.deepStrictEqual(rowsOf(yield* site.readPublic("breakdown?dimension=page")), [
          ["/", 1, views, views]
        ])
      }
    })
  )

  it.effect(
    "is 404 from the moment that its owner makes it private, deletes it, or before it is public",
    () =>
      Effect.gen(function* () {
        const { ask } = yield* TestServer
        const { key, site } = yield* makePublicSite
        const change = (json: object) => ask("PATCH", `/api/v1/sites/${site.id}`, { key, json })
        const shown = Effect.forEach(publicReads, (rest) => Effect.map(site.readPublic(rest), statusAndBody))
        const allHidden = publicReads.map(() => notFound)
        yield* change({ public: false })
        assert.deepStrictEqual(yield* shown, allHidden)
        yield* change({ public: true })
        assert.deepStrictEqual(
          (yield* shown).map(([status]) => status),
          [200, 200, 200]
        )
        yield* ask("DELETE", `/api/v1/sites/${site.id}`, { key })
        assert.deepStrictEqual(yield* shown, allHidden)
        const never = yield* makeSite()
        for (const rest of publicReads) {
          assert.deepStrictEqual(statusAndBody(yield* never.readPublic(rest)), notFound, rest)
          const unknown = yield* ask("GET", `/api/v1/public/sites/st_${"0".repeat(22)}/${rest}`, { key: "" })
          assert.deepStrictEqual(statusAndBody(unknown), notFound, rest)
        }
      })
  )

  it.effect("shows neither its drops nor its events, and is changed by nobody else", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const { site } = yield* makePublicSite
      for (const rest of ["drops", "export", "import", ""]) {
        assert.deepStrictEqual(
          statusAndBody(yield* site.readPublic(rest)),
          [404, { error: "Not found" }],
          rest
        )
      }
      assert.strictEqual(
        (yield* ask("DELETE", `/api/v1/public/sites/${site.id}/stats`, { key: "" })).status,
        405
      )
      assert.strictEqual(
        (yield* site.read("stats", { key: "" })).status,
        401,
        "the owner's address asks for a key"
      )
    })
  )
})

layer(TestServer.own({ trustProxy: 1, limits: { ratePerMinute: 3, rateBurst: 3 } }), live)(
  "the rate of public sites",
  (it) => {
    it.effect(
      "is counted for each reader's address: over it comes 429 with Retry-After, for that reader alone",
      () =>
        Effect.gen(function* () {
          const { ask } = yield* TestServer
          const { key, site } = yield* makePublicSite
          const other = yield* makeSite({ public: true }, key)
          const readFrom = (address: string, { id } = site, rest = "stats") =>
            ask("GET", `/api/v1/public/sites/${id}/${rest}`, {
              key: "",
              headers: { "x-forwarded-for": address }
            })
          for (const rest of publicReads) {
            assert.strictEqual((yield* readFrom("203.0.113.7", site, rest)).status, 200, rest)
          }
          for (const [asked, rest] of [
            ...publicReads.map((rest) => [site, rest] as const),
            [other, "stats"] as const
          ]) {
            const refused = yield* readFrom("203.0.113.7", asked, rest)
            assert.strictEqual(refused.status, 429, rest)
            const seconds = Number(refused.headers.get("retry-after"))
            assert.isTrue(Number.isInteger(seconds) && seconds >= 1 && seconds <= 60, String(seconds))
            const text = `Public sites are asked for too often from your address; try again in ${seconds} s`
            assert.strictEqual(textOf(refused, "error"), text)
          }
          assert.strictEqual((yield* readFrom("203.0.113.8")).status, 200, "another reader has their own")
          for (const host of [1, 2, 3]) {
            assert.strictEqual((yield* readFrom(`2001:db8:1:2::${host}`)).status, 200)
          }
          assert.strictEqual((yield* readFrom("2001:db8:1:2::4")).status, 429, "a /64 is one reader")
          assert.strictEqual((yield* site.read("stats")).status, 200)
        })
    )

    it.effect("is not spent by sites that are not public, which are 404 however often", () =>
      Effect.gen(function* () {
        const { makeKey } = yield* TestServer
        const { key } = yield* makeKey({ rate_limit_per_minute: 1_000_000 })
        const site = yield* makeSite({}, key)
        for (let times = 0; times < 5; times++) {
          assert.deepStrictEqual(statusAndBody(yield* site.readPublic("stats")), notFound)
        }
      })
    )
  }
)
