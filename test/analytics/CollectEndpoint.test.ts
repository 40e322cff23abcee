import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { LogFull, LogUnavailable } from "#streams/kernel/DurableLog.ts"
import { secret, siteRow, startIngest } from "./IngestProbe.ts"
import { chrome, googlebot, noon, site } from "./Senders.ts"

const day = 86_400_000
const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

describe("POST /api/v1/collect", () => {
  it.effect("takes one event or an array, and answers per event once they are on disk (rule 1)", () =>
    Effect.gen(function* () {
      const probe = yield* startIngest
      const one = yield* probe.collect({ url: "/a", userAgent: chrome })
      assert.strictEqual(one.status, 202)
      assert.deepStrictEqual(one.json, { accepted: 1, results: [{ index: 0, stored: true }] })
      const many = yield* probe.collect([{ url: "/b" }, { url: "no" }, { url: "/c", name: "signup" }])
      assert.strictEqual(many.status, 202)
      assert.deepStrictEqual(many.json, {
        accepted: 2,
        results: [
          { index: 0, stored: true },
          {
            index: 1,
            stored: false,
            error: "url: expected an absolute http(s) URL or a path starting with /"
          },
          { index: 2, stored: true }
        ]
      })
      const stored = yield* probe.stored
      assert.deepStrictEqual(
        stored.map(({ kind, name, path }) => [kind, name, path]),
        [
          ["pageview", "", "/a"],
          ["pageview", "", "/b"],
          ["event", "signup", "/c"]
        ]
      )
      assert.strictEqual(probe.realtime.snapshot(site.id, noon).pageviews, 2)
    })
  )

  it.effect("answers 400 when every event has an error, each with its own (rule 1)", () =>
    Effect.gen(function* () {
      const probe = yield* startIngest
      const { json, status } = yield* probe.collect([{}, { url: "/", timestamp: noon + 1 }, 7])
      assert.strictEqual(status, 400)
      assert.deepStrictEqual(json, {
        error: "No event was accepted",
        accepted: 0,
        results: [
          { index: 0, stored: false, error: "url: is required" },
          { index: 1, stored: false, error: "timestamp: must not be in the future" },
          { index: 2, stored: false, error: "body: expected a JSON object" }
        ]
      })
      assert.deepStrictEqual(probe.dropped, { invalid: 3 })
    })
  )

  it.effect("answers 400 to a body that is not JSON, not UTF-8, empty or an empty array", () =>
    Effect.gen(function* () {
      const probe = yield* startIngest
      const cases = [
        ["", "body: expected JSON"],
        ['[{"url":"/"}', "body: expected JSON"],
        [new Uint8Array([0xff, 0xfe]), "body: expected UTF-8"],
        ["[]", "body: expected 1 to 100 events"],
        ["[".repeat(4_000_000), "body: nested deeper than 64"]
      ] as const
      for (const [body, error] of cases) {
        assert.deepInclude(yield* probe.collect(body), { status: 400, text: JSON.stringify({ error }) })
      }
    })
  )

  it.effect("answers 401 to a bad or missing site secret before it reads the body (rule 1)", () =>
    Effect.gen(function* () {
      const probe = yield* startIngest
      const wrong = [
        {},
        { authorization: secret },
        { authorization: `Basic ${secret}` },
        bearer(`ssk_${"b".repeat(40)}`),
        bearer(`${secret}x`),
        bearer("sk_0123456789012345678901234567890123456789")
      ]
      for (const headers of wrong) {
        const refused = yield* probe.collect("not json", headers)
        assert.deepStrictEqual(
          { status: refused.status, json: refused.json },
          { status: 401, json: { error: "Invalid or missing site secret" } }
        )
        assert.strictEqual(refused.headers["www-authenticate"], "Bearer")
      }
      assert.strictEqual(
        (yield* probe.collect({ url: "/" }, { authorization: `bEARER ${secret}` })).status,
        202
      )
    })
  )

  it.effect("answers 413 to more than 100 events and stores none of them; takes 100 (rule 1)", () =>
    Effect.gen(function* () {
      const probe = yield* startIngest
      const events = (count: number) => Array.from({ length: count }, () => ({ url: "/" }))
      assert.deepInclude((yield* probe.collect(events(101))).json, { error: "At most 100 events in a call" })
      assert.strictEqual((yield* probe.collect(events(101))).status, 413)
      assert.strictEqual((yield* probe.stored).length, 0)
      assert.deepInclude((yield* probe.collect(events(100))).json, { accepted: 100 })
      assert.strictEqual((yield* probe.stored).length, 100)
    })
  )

  it.effect("takes bodies of at most 8 MiB", () =>
    Effect.gen(function* () {
      const probe = yield* startIngest
      const [, route] = probe.routes
      assert.deepStrictEqual([route?.path, route?.maxBodyBytes], ["/api/v1/collect", 8 * 1024 * 1024])
      const padded = { url: "/", padding: "x".repeat(8 * 1024 * 1024 - 100) }
      assert.strictEqual((yield* probe.collect(padded)).status, 202)
    })
  )

  it.effect("stores 100 events with every field at its limit in one append", () =>
    Effect.gen(function* () {
      const probe = yield* startIngest
      const props = Object.fromEntries(
        Array.from({ length: 30 }, (_, index) => [`${index}`.padEnd(64, "€"), "€".repeat(256)])
      )
      const utm = ["source", "medium", "campaign", "term", "content"].map(
        (name) => `utm_${name}=${"u".repeat(256)}`
      )
      const url = `https://${"h".repeat(253)}/${"p".repeat(2200)}?${utm.join("&")}`
      const event = {
        url: url.padEnd(4096, "q"),
        name: "€".repeat(120),
        ip: "2001:db8:1111:2222:3333:4444:5555:6666",
        userAgent: "u".repeat(1024),
        referrer: `https://${"r".repeat(253)}/`.padEnd(4096, "r"),
        country: "DE",
        visitor: "v".repeat(128),
        props,
        timestamp: new Date(noon - 7 * day).toISOString()
      }
      const events = Array.from({ length: 100 }, (_, index) => ({ ...event, id: `${index}`.padEnd(64, "i") }))
      assert.isBelow(JSON.stringify(events).length, 8 * 1024 * 1024)
      assert.deepInclude((yield* probe.collect(events)).json, { accepted: 100 })
      const stored = yield* probe.stored
      assert.strictEqual(stored.length, 100)
      assert.strictEqual(stored[99]?.propsValues[29]?.length, 256)
    })
  )

  it.effect(
    "skips bots silently, by the event's User-Agent and not the caller's, unless visitor is passed (rule 2)",
    () =>
      Effect.gen(function* () {
        const probe = yield* startIngest
        const events = [
          { url: "/", userAgent: googlebot },
          { url: "/", userAgent: googlebot, visitor: "v" }
        ]
        const { json, status } = yield* probe.collect(events, { ...bearer(secret), "user-agent": googlebot })
        assert.strictEqual(status, 202)
        assert.deepStrictEqual(json, {
          accepted: 1,
          results: [
            { index: 0, stored: false, reason: "bot" },
            { index: 1, stored: true }
          ]
        })
        const onlyBots = yield* probe.collect({ url: "/", userAgent: googlebot })
        assert.deepInclude(onlyBots, { status: 202 })
        assert.deepInclude(onlyBots.json, { accepted: 0 })
        assert.deepStrictEqual(probe.dropped, { bot: 2 })
      })
  )

  it.effect("skips spam referrers, says so and counts them", () =>
    Effect.gen(function* () {
      const probe = yield* startIngest
      const { json, status } = yield* probe.collect({ url: "/", referrer: "http://semalt.com/" })
      assert.strictEqual(status, 202)
      assert.deepStrictEqual(json, {
        accepted: 0,
        results: [{ index: 0, stored: false, reason: "spam" }]
      })
      assert.deepStrictEqual(probe.dropped, { spam: 1 })
    })
  )

  it.effect(
    "answers 429 with Retry-After over the site's rate, asked for all events of the call (rule 1)",
    () =>
      Effect.gen(function* () {
        const probe = yield* startIngest
        probe.waitSeconds = 2
        const { headers, json, status } = yield* probe.collect([{ url: "/" }, { url: "/" }])
        assert.deepStrictEqual({ status, json }, { status: 429, json: { error: "Rate limit exceeded" } })
        assert.strictEqual(headers["retry-after"], "2")
        assert.deepStrictEqual(probe.rateAsked, [site.id, 2])
        assert.deepStrictEqual(probe.dropped, { rate: 2 })
      })
  )

  it.effect(
    "asks the rate for a large body before it is read, and reads none of more members than events have",
    () =>
      Effect.gen(function* () {
        const probe = yield* startIngest
        const padded = [{ url: "/", name: "n".repeat(100_000) }, { url: "/" }]
        yield* probe.collect(padded)
        assert.deepStrictEqual(probe.rateAsked, [site.id, 25])
        probe.waitSeconds = 2
        assert.strictEqual((yield* probe.collect("[".repeat(100_000))).status, 429)
        assert.deepStrictEqual(probe.dropped, { invalid: 1, rate: 25 })
        probe.waitSeconds = 0
        const members = Array.from({ length: 10_001 }, (_, index) => `"k${index}":1`).join()
        const refused = yield* probe.collect(`{"url":"/",${members}}`)
        assert.deepStrictEqual(
          [refused.status, refused.json],
          [400, { error: "body: more than 10000 members" }]
        )
        const values = yield* probe.collect(`[${"1,".repeat(20_001)}1]`)
        assert.deepStrictEqual(values.json, { error: "body: more than 20000 values" })
      })
  )

  it.effect("stores events without the properties that are none, and counts those events", () =>
    Effect.gen(function* () {
      const probe = yield* startIngest
      const { json, status } = yield* probe.collect([
        { url: "/", name: "buy", props: { plan: "x".repeat(257), seats: 2 } },
        { url: "/", name: "buy", props: { plan: null } },
        { url: "/", country: "T1", ip: "", id: "" },
        { url: "/", id: "" }
      ])
      assert.deepStrictEqual([status, json?.["accepted"]], [202, 4])
      const page = { s: siteRow.id, k: "event", n: "buy", u: "https://example.org/" }
      assert.strictEqual((yield* probe.event({ ...page, p: { list: [] } })).status, 202)
      assert.strictEqual((yield* probe.event({ ...page, p: { plan: null } })).status, 202)
      assert.deepStrictEqual(probe.dropped, { property: 2 })
      assert.deepStrictEqual(
        (yield* probe.stored).map(({ propsKeys }) => propsKeys.join()),
        ["seats", "", "", "", "", ""]
      )
    })
  )

  it.effect("counts events over 7 days old as late, other faults as invalid", () =>
    Effect.gen(function* () {
      const probe = yield* startIngest
      yield* probe.collect([
        { url: "/", timestamp: noon - 7 * day - 1 },
        { url: "/", country: "DEU" },
        { url: "/" }
      ])
      assert.deepStrictEqual(probe.dropped, { late: 1, invalid: 1 })
    })
  )

  it.effect(
    "answers 429, 507 or 503 for the whole call when the log does not take it; a repeat is then stored",
    () =>
      Effect.gen(function* () {
        const probe = yield* startIngest
        const events = [
          { url: "/", id: "a" },
          { url: "/", id: "b" }
        ]
        const refusals = [
          [new LogFull({ retryAfterSeconds: 5 }), 429],
          [new LogUnavailable({ reason: "disk_full", cause: "test" }), 507],
          [new LogUnavailable({ reason: "io", cause: "test" }), 503]
        ] as const
        for (const [refusal, status] of refusals) {
          probe.refusal = refusal
          assert.strictEqual((yield* probe.collect(events)).status, status)
        }
        probe.refusal = undefined
        probe.failure = new LogUnavailable({ reason: "io", cause: "test" })
        assert.strictEqual((yield* probe.collect(events)).status, 503)
        probe.failure = undefined
        assert.deepInclude((yield* probe.collect(events)).json, { accepted: 2 })
      })
  )

  it.effect(
    "counts what it drops of a call only once the log has taken the call, which comes again if not",
    () =>
      Effect.gen(function* () {
        const probe = yield* startIngest
        const events = [
          { url: "/", id: "a" },
          { url: "/", id: "a" },
          { url: "/", userAgent: googlebot },
          { url: "bad" }
        ]
        probe.refusal = new LogFull({ retryAfterSeconds: 5 })
        yield* probe.collect(events)
        probe.refusal = undefined
        probe.failure = new LogUnavailable({ reason: "io", cause: "test" })
        yield* probe.collect(events)
        assert.deepStrictEqual(probe.dropped, {})
        probe.failure = undefined
        yield* probe.collect(events)
        assert.deepStrictEqual(probe.dropped, { duplicate: 1, bot: 1, invalid: 1 })
      })
  )
})

describe("the id of a collected event", () => {
  it.effect("makes a repeat within 24 hours a duplicate: 202, counted, stored once", () =>
    Effect.gen(function* () {
      const probe = yield* startIngest
      const event = { url: "/", id: "order-1" }
      assert.deepInclude((yield* probe.collect(event)).json, { accepted: 1 })
      probe.now = noon + day
      const repeat = yield* probe.collect([event])
      assert.strictEqual(repeat.status, 202)
      assert.deepStrictEqual(repeat.json, {
        accepted: 0,
        results: [{ index: 0, stored: false, reason: "duplicate" }]
      })
      assert.deepStrictEqual(probe.dropped, { duplicate: 1 })
      assert.strictEqual((yield* probe.stored).length, 1)
      probe.now = noon + day + 1
      assert.deepInclude((yield* probe.collect(event)).json, { accepted: 1 })
    })
  )

  it.effect("is looked for within the call too, and only between events that are stored", () =>
    Effect.gen(function* () {
      const probe = yield* startIngest
      const { json } = yield* probe.collect([
        { url: "bad", id: "x" },
        { url: "/", id: "x", userAgent: googlebot },
        { url: "/", id: "x" },
        { url: "/", id: "x" },
        { url: "/" },
        { url: "/", id: null }
      ])
      assert.deepStrictEqual(json?.accepted, 3)
      assert.deepStrictEqual(probe.dropped, { invalid: 1, bot: 1, duplicate: 1 })
    })
  )

  it.effect("of an event on its way to the disk is waited for: two at once store one", () =>
    Effect.gen(function* () {
      const probe = yield* startIngest
      const event = { url: "/", id: "twice" }
      const [first, second] = yield* Effect.all([probe.collect(event), probe.collect(event)], {
        concurrency: "unbounded"
      })
      assert.deepInclude(first?.json, { accepted: 1 })
      assert.deepStrictEqual(second?.json?.results, [{ index: 0, stored: false, reason: "duplicate" }])
      assert.strictEqual((yield* probe.stored).length, 1)
    })
  )

  it.effect("of an event whose writing fails is told to the one that repeats it", () =>
    Effect.gen(function* () {
      const probe = yield* startIngest
      const event = { url: "/", id: "fails" }
      probe.failure = new LogUnavailable({ reason: "io", cause: "test" })
      const first = yield* Effect.forkChild(probe.collect(event), { startImmediately: true })
      probe.failure = undefined
      const second = yield* probe.collect([event, { url: "/other" }])
      assert.strictEqual((yield* Fiber.join(first)).status, 503)
      assert.strictEqual(second.status, 202)
      assert.deepStrictEqual(second.json?.results, [
        {
          index: 0,
          stored: false,
          error: "id: the event that this one repeats could not be stored; send it again"
        },
        { index: 1, stored: true }
      ])
      assert.deepStrictEqual(probe.dropped, {})
    })
  )
})
