import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { LogFull, LogUnavailable } from "#streams/kernel/DurableLog.ts"
import { startIngest } from "./IngestProbe.ts"
import { googlebot, noon, site } from "./Senders.ts"

const hit = { s: site.id, k: "pageview", u: "https://example.org/" }

describe("POST /api/event", () => {
  it.effect("answers 202 with an empty body once the event is on disk, and shows it in realtime", () =>
    Effect.gen(function* () {
      const probe = yield* startIngest
      const answer = yield* probe.event({ ...hit, u: "https://example.org/a?b", pv: "p1" })
      assert.deepStrictEqual(answer, { status: 202, headers: {}, text: "", json: undefined })
      assert.strictEqual(probe.log.durableOffset(), 1)
      const [event] = yield* probe.stored
      assert.deepInclude(event, {
        site: site.id,
        kind: "pageview",
        path: "/a",
        pv: "p1",
        ts: noon,
        received: noon
      })
      assert.deepInclude(probe.realtime.snapshot(site.id, noon), { visitors: 1, pageviews: 1 })
    })
  )

  it.effect(
    "is open to every origin and content type, without authentication, for bodies of at most 64 KiB",
    () =>
      Effect.gen(function* () {
        const [route] = (yield* startIngest).routes
        const { cors, headers, maxBodyBytes, method, path } = route ?? {}
        assert.deepStrictEqual([method, path, cors, maxBodyBytes], ["POST", "/api/event", "open", 65_536])
        assert.isFalse(headers?.includes("authorization"))
        assert.isFalse(headers?.includes("content-type"))
      })
  )

  it.effect("answers 400 with the field in a flat error, and counts it for the site that it named", () =>
    Effect.gen(function* () {
      const probe = yield* startIngest
      const wrong: ReadonlyArray<readonly [unknown, string]> = [
        ["", "body: expected JSON"],
        ['{"s":', "body: expected JSON"],
        [new Uint8Array([0x22, 0xff, 0x22]), "body: expected UTF-8"],
        [[hit], "body: expected a JSON object"],
        [{ k: "pageview" }, "s: is required"],
        [{ ...hit, k: "click" }, "k: expected pageview, event or engage"],
        [{ ...hit, u: "example.org" }, "u: expected an absolute http(s) URL"],
        [{ ...hit, u: undefined }, "u: is required"],
        [{ ...hit, n: "x".repeat(121) }, "n: expected text of 1 to 120 characters"]
      ]
      for (const [body, error] of wrong) {
        const { json, status } = yield* probe.event(body)
        assert.deepStrictEqual({ status, json }, { status: 400, json: { error } })
      }
      assert.deepStrictEqual(probe.dropped, { invalid: 4 })
      assert.deepStrictEqual(yield* probe.stored, [])
    })
  )

  it.effect("answers 404 for an unknown site", () =>
    Effect.gen(function* () {
      const probe = yield* startIngest
      const { json, status } = yield* probe.event({ ...hit, s: "st_0000000000000000000009" })
      assert.deepStrictEqual({ status, json }, { status: 404, json: { error: "Unknown site" } })
    })
  )

  it.effect(
    "answers 202 to hits that it ignores: other hostnames, bots and spam referrers; all are counted",
    () =>
      Effect.gen(function* () {
        const probe = yield* startIngest
        for (const ignored of [
          yield* probe.event({ ...hit, u: "https://elsewhere.example/" }),
          yield* probe.event(hit, { "user-agent": googlebot }),
          yield* probe.event({ ...hit, r: "http://semalt.com/" })
        ]) {
          assert.deepInclude(ignored, { status: 202, text: "" })
        }
        assert.deepStrictEqual(probe.dropped, { hostname: 1, bot: 1, spam: 1 })
        assert.deepStrictEqual(yield* probe.stored, [])
      })
  )

  it.effect("answers 429 with Retry-After to a visitor over the rate, asked by site and visitor", () =>
    Effect.gen(function* () {
      const probe = yield* startIngest
      yield* probe.event(hit)
      const [event] = yield* probe.stored
      assert.deepStrictEqual(probe.rateAsked, [site.id, event?.visitor ?? 0n])
      probe.waitSeconds = 7
      const { headers, json, status } = yield* probe.event(hit)
      assert.deepStrictEqual({ status, json }, { status: 429, json: { error: "Rate limit exceeded" } })
      assert.strictEqual(headers["retry-after"], "7")
      assert.deepStrictEqual(probe.dropped, { rate: 1 })
      assert.strictEqual((yield* probe.stored).length, 1)
    })
  )

  it.effect(
    "answers 429 when the log is full, 507 when the disk is, 503 when it fails, all with Retry-After",
    () =>
      Effect.gen(function* () {
        const probe = yield* startIngest
        const unavailable = (reason: "disk_full" | "io" | "closed") =>
          new LogUnavailable({ reason, cause: "test" })
        const cases = [
          [new LogFull({ retryAfterSeconds: 5 }), 429, "5"],
          [unavailable("disk_full"), 507, "1"],
          [unavailable("io"), 503, "1"],
          [unavailable("closed"), 503, "1"]
        ] as const
        for (const [refusal, status, retryAfter] of cases) {
          probe.refusal = refusal
          const answer = yield* probe.event(hit)
          assert.strictEqual(answer.status, status)
          assert.strictEqual(answer.headers["retry-after"], retryAfter)
          assert.isString(answer.json?.error)
        }
        probe.refusal = undefined
        probe.failure = unavailable("io")
        assert.strictEqual((yield* probe.event(hit)).status, 503)
        assert.strictEqual(probe.realtime.snapshot(site.id, noon).pageviews, 0)
      })
  )

  it.effect("reads the country from the CDN headers in their order, else from the time zone", () =>
    Effect.gen(function* () {
      const probe = yield* startIngest
      const cdn = {
        "cf-ipcountry": "FR",
        "cloudfront-viewer-country": "ES",
        "x-vercel-ip-country": "PT",
        "fastly-geo-country": "IT"
      }
      const names = Object.keys(cdn)
      for (let skipped = 0; skipped <= names.length; skipped++) {
        yield* probe.event(
          { ...hit, tz: "Europe/Berlin" },
          Object.fromEntries(Object.entries(cdn).slice(skipped))
        )
      }
      const countries = (yield* probe.stored).map(({ country }) => country)
      assert.deepStrictEqual(countries, ["FR", "ES", "PT", "IT", "DE"])
    })
  )

  it.effect("believes no country header of a sender that is no trusted proxy", () =>
    Effect.gen(function* () {
      const probe = yield* startIngest
      yield* probe.event({ ...hit, tz: "Europe/Berlin" }, { "cf-ipcountry": "KP" }, "192.0.2.1", false)
      assert.deepStrictEqual(
        (yield* probe.stored).map(({ country }) => country),
        ["DE"]
      )
    })
  )

  it.effect("answers 429 where an address sends too much to a site, before it looks at the visitor", () =>
    Effect.gen(function* () {
      const probe = yield* startIngest
      probe.addressWaitSeconds = 7
      const refused = yield* probe.event(hit, { "user-agent": "Made/Up" }, "203.0.113.77")
      assert.deepStrictEqual([refused.status, refused.headers["retry-after"]], [429, "7"])
      assert.deepStrictEqual(probe.addressesAsked, [`${site.id} 203.0.113.77`])
      assert.deepStrictEqual(probe.rateAsked, [])
      assert.deepStrictEqual(probe.dropped, { rate: 1 })
    })
  )

  it.effect("takes hits without an address or User-Agent, and never writes the address", () =>
    Effect.gen(function* () {
      const probe = yield* startIngest
      assert.strictEqual((yield* probe.event(hit, { "user-agent": "" }, "")).status, 202)
      assert.strictEqual((yield* probe.event(hit, {}, "203.0.113.77")).status, 202)
      assert.strictEqual((yield* probe.event(hit, {}, "::ffff:203.0.113.77")).status, 202)
      const [, four, six] = yield* probe.stored
      assert.strictEqual(four?.visitor, six?.visitor)
    })
  )
})
