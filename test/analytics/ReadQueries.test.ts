import { assert, describe, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer, textOf } from "#test/harness/TestServer.ts"
import { makeSite, rowsOf, type SiteProbe, statusAndBody } from "./SiteProbe.ts"
import { threeVisits } from "./SiteVisits.ts"

const live = { excludeTestServices: true } as const

const ask = (site: SiteProbe, rest: string) => Effect.map(site.read(rest), bodyOf)

/** Stops the server's clock until the test is over. */
const stopClock = (instant: string) =>
  Effect.gen(function* () {
    const { stopClockAt } = yield* TestServer
    yield* Effect.addFinalizer(() => Effect.sync(() => stopClockAt(undefined)))
    stopClockAt(Date.parse(instant))
  })

interface Figures {
  readonly period: string
  readonly from: string
  readonly to: string
  readonly granularity: string
  readonly filters: Readonly<Record<string, string>>
  readonly site: { readonly timezone: string }
  readonly summary: Readonly<Record<string, number>>
  readonly previous: Readonly<Record<string, number>>
  readonly timeseries: ReadonlyArray<{ readonly bucket: string; readonly pageviews: number }>
}

const bodyOf = ({ json, status }: { readonly json: unknown; readonly status: number }): Figures => {
  assert.strictEqual(status, 200, JSON.stringify(json))
  return json as Figures
}

const bucketsOf = ({ timeseries }: Figures): ReadonlyArray<string> => timeseries.map(({ bucket }) => bucket)

const summaryNames = "visitors visits pageviews events viewsPerVisit bounceRate avgDurationSec".split(" ")

/** A page view of an import. */
const viewAt = (instant: string, visitor = "v"): string =>
  JSON.stringify({ url: "/", visitor, timestamp: instant })

/** Both reads that take a period and filters. */
const reads = ["stats?", "breakdown?dimension=page&"] as const

/** Each filter: a value that selects one or two of `threeVisits`, and how many visits it and `(none)` select. */
const filterCases: ReadonlyArray<readonly [name: string, value: string, visits: number, none: number]> = [
  ["page", "/pricing", 1, 0],
  ["page", "/p*", 2, 0],
  ["source", "Google", 1, 1],
  ["country", "DE", 1, 1],
  ["browser", "Chrome", 1, 1],
  ["os", "iOS", 1, 1],
  ["device", "mobile", 1, 1],
  ["campaign", "spring", 1, 2],
  ["event", "signup", 2, 0],
  ["event", "s*o*", 1, 0],
  ["entry", "/", 2, 0],
  ["exit", "/po*", 1, 0],
  ["hostname", "blog.example.com", 1, 0],
  ["referrer", "https://google.com/search", 1, 2],
  ["channel", "Email", 1, 0],
  ["medium", "email", 1, 2],
  ["term", "boots", 1, 2],
  ["content", "top", 1, 2]
]

layer(TestServer.own(), live)("reads of a site", (it) => {
  describe("filters", () => {
    it.effect(
      "each select visits by a value and by (none), and are told in the answer as they were given",
      () =>
        Effect.gen(function* () {
          const site = yield* makeSite()
          yield* site.collect(threeVisits)
          for (const [name, value, visits, none] of filterCases) {
            const asked = (text: string) => `${name}=${encodeURIComponent(text)}`
            const selected = yield* ask(site, `stats?${asked(value)}`)
            assert.deepStrictEqual(
              [selected.filters, selected.summary["visits"]],
              [{ [name]: value }, visits]
            )
            const unknown = yield* ask(site, `stats?${asked("(none)")}`)
            assert.deepStrictEqual([unknown.filters, unknown.summary["visits"]], [{ [name]: "(none)" }, none])
            const rows = yield* ask(site, `breakdown?dimension=source&${asked(value)}`)
            assert.deepStrictEqual(rows.filters, { [name]: value })
          }
        })
    )

    it.effect("take a country and a source in either case, and * for nothing else than any text", () =>
      Effect.gen(function* () {
        const site = yield* makeSite()
        yield* site.collect(threeVisits)
        const visits = (query: string) =>
          Effect.map(ask(site, `stats?${query}`), ({ summary }) => summary["visits"])
        assert.strictEqual(yield* visits("country=de"), 1)
        assert.strictEqual(yield* visits("source=gOOgle"), 1)
        for (const query of [
          "page=%2Fpri.ing",
          "page=%2Fpri_ing",
          "page=*%25",
          "campaign=a|b",
          "page=%2Fpricing|x",
          "event=sign%25",
          "source=G*"
        ]) {
          assert.strictEqual(yield* visits(query), 0, query)
        }
      })
    )

    it.effect("take paths, host names and referrers as they are shown and as they are in a URL", () =>
      Effect.gen(function* () {
        const site = yield* makeSite({ domain: "bücher.example" })
        yield* site.collect([
          {
            url: "https://lesen.bücher.example/جوائز 1",
            referrer: "https://www.köln.example/straße",
            visitor: "v"
          },
          { url: "/%D8%AC%D9%88%D8%A7%D8%A6%D8%B2%202", visitor: "w" }
        ])
        assert.sameDeepMembers(
          rowsOf(yield* site.read("breakdown?dimension=page")).map(([value]) => value),
          ["/جوائز 1", "/جوائز 2"]
        )
        for (const [filter, visits] of [
          [{ page: "/جوائز 1" }, 1],
          [{ page: "/%D8%AC%D9%88%D8%A7%D8%A6%D8%B2%201" }, 1],
          [{ entry: "/%d8%ac*" }, 2],
          [{ exit: "/جوائز*" }, 2],
          [{ hostname: "lesen.bücher.example" }, 1],
          [{ hostname: "lesen.xn--bcher-kva.example" }, 1],
          [{ source: "köln.example" }, 1],
          [{ source: "xn--kln-sna.example" }, 1],
          [{ referrer: "https://köln.example/straße" }, 1],
          [{ referrer: "https://xn--kln-sna.example/stra%C3%9Fe" }, 1]
        ] as const) {
          const { filters, summary } = yield* ask(site, `stats?${new URLSearchParams(filter).toString()}`)
          assert.deepStrictEqual([filters, summary["visits"]], [filter, visits])
        }
      })
    )

    it.effect("take patterns of any shape, and texts that mean something elsewhere", () =>
      Effect.gen(function* () {
        const site = yield* makeSite()
        const odd = '/it\'s \\ "100%"_{a:String}[](?i)ö😀'
        yield* site.collect([{ url: "/", name: odd, visitor: "v" }, ...threeVisits])
        const visits = (event: string) =>
          Effect.map(
            ask(site, `stats?event=${encodeURIComponent(event)}`),
            ({ summary }) => summary["visits"]
          )
        for (const event of [
          odd,
          `${odd.slice(0, 9)}*`,
          `*${odd.slice(-3)}`,
          `${odd.slice(0, 5)}*${odd.slice(-5)}`
        ]) {
          assert.strictEqual(yield* visits(event), 1, event)
        }
        assert.strictEqual(yield* visits("*".repeat(2048)), 4, "all have events")
        for (const event of [
          "*a".repeat(1024),
          "\\",
          "\\*",
          "(?i)SIGNUP",
          "[a-z]*",
          "{a:String}",
          "' OR 1=1 --"
        ]) {
          assert.strictEqual(yield* visits(event), 0, event)
        }
      })
    )

    it.effect("hold together", () =>
      Effect.gen(function* () {
        const site = yield* makeSite()
        yield* site.collect(threeVisits)
        const { filters, summary } = yield* ask(site, "stats?event=signup&device=mobile&page=%2F")
        assert.deepStrictEqual(filters, { event: "signup", device: "mobile", page: "/" })
        assert.deepInclude(summary, { visits: 1, visitors: 1, pageviews: 1, events: 2 })
        const both = yield* ask(site, "stats?event=signup&hostname=blog.example.com")
        assert.strictEqual(both.summary["visits"], 0)
      })
    )

    it.effect("with a goal keep whole visits that fired it: their page views and other dimensions too", () =>
      Effect.gen(function* () {
        const site = yield* makeSite()
        yield* site.collect(threeVisits)
        assert.deepStrictEqual(rowsOf(yield* site.read("breakdown?dimension=page&event=signup")), [
          ["/", 2, 2, 2],
          ["/pricing", 1, 1, 1]
        ])
      })
    )
  })

  describe("a query", () => {
    it.effect("with a known parameter that is invalid is 400 and names it, in every read that takes it", () =>
      Effect.gen(function* () {
        const site = yield* makeSite({ public: true })
        const long = "x".repeat(2049)
        const cases: ReadonlyArray<readonly [field: string, query: string]> = [
          ["period", "period=1d"],
          ["period", "period="],
          ["period", "period=7d&period=30d"],
          ["timezone", "timezone="],
          ["timezone", "timezone=Mars/Base"],
          ["timezone", "timezone=%2B01:00"],
          ["from", "from=yesterday"],
          ["from", "from=2026-02-30&period=custom&to=2026-03-01"],
          ["to", "to=2026-1-1"],
          ["to", "to=2026-01-01T00:00:00Z"],
          ["format", "format=xml"],
          ["device", "device=fridge"],
          ["country", "country=DEU"],
          ["country", "country=1"],
          ["page", `page=${long}`],
          ["source", "source="],
          ["source", "source=a&source=b"],
          ["source", "source=!Google"],
          ["source", "source=Google|Bing"],
          ["campaign", "campaign=!spring"],
          ["event", "event=!signup"],
          ["page", "page=!%2F"],
          ["page", "page=pricing"],
          ["page", "page=%2Fa|%2Fb"],
          ["entry", "entry=!%2F"],
          ["exit", "exit=%2F|*x"],
          ["country", "country=!DE"],
          ["device", "device=mobile|tablet"],
          ["prop:plan", "prop:plan=pro"],
          ["prop:plan", "prop%3Aplan=pro&period=7d"],
          ["goal", "goal=signup"],
          ["utm_source", "utm_source=list"],
          ["utm_campaign", "utm_campaign=spring"],
          ["event", "event=a%0Ab"]
        ]
        for (const [field, query] of cases) {
          for (const rest of reads) {
            for (const refused of [
              yield* site.read(`${rest}${query}`),
              yield* site.readPublic(`${rest}${query}`)
            ]) {
              assert.strictEqual(refused.status, 400, `${rest}${query}`)
              assert.isTrue(textOf(refused, "error").startsWith(`${field}: `), textOf(refused, "error"))
            }
          }
        }
        for (const [field, query] of cases.slice(0, 10)) {
          const refused = yield* site.read(`export?${query}`)
          assert.strictEqual(refused.status, 400, query)
          assert.isTrue(textOf(refused, "error").startsWith(`${field}: `), query)
        }
      })
    )

    it.effect("may have parameters that nobody knows: they are ignored", () =>
      Effect.gen(function* () {
        const site = yield* makeSite()
        for (const rest of [...reads, "realtime?", "drops?", "export?"]) {
          const answer = yield* site.read(`${rest}unknown=1&user_id=x&Period=1d&__proto__=1&filter[page]=%2F`)
          assert.strictEqual(answer.status, 200, rest)
        }
        assert.deepStrictEqual((yield* ask(site, "stats?unknown=1")).filters, {})
      })
    )
  })

  describe("a period", () => {
    it.effect(
      "has complete buckets of its granularity, with the site's offset; figures without visits are 0",
      () =>
        Effect.gen(function* () {
          // A month after clocks went forward in Berlin.
          yield* stopClock("2026-04-28T07:10:00.250Z")
          const site = yield* makeSite({ timezone: "Europe/Berlin" })
          for (const [period, granularity, first, last, buckets] of [
            ["today", "hour", "2026-04-28T00:00:00+02:00", "2026-04-28T09:00:00+02:00", 10],
            ["24h", "hour", "2026-04-27T10:00:00+02:00", "2026-04-28T09:00:00+02:00", 24],
            ["7d", "day", "2026-04-22T00:00:00+02:00", "2026-04-28T00:00:00+02:00", 7],
            ["30d", "day", "2026-03-30T00:00:00+02:00", "2026-04-28T00:00:00+02:00", 30],
            ["90d", "day", "2026-01-29T00:00:00+01:00", "2026-04-28T00:00:00+02:00", 90],
            ["12mo", "month", "2025-05-01T00:00:00+02:00", "2026-04-01T00:00:00+02:00", 12]
          ] as const) {
            const found = yield* ask(site, `stats?period=${period}`)
            const shown = bucketsOf(found)
            assert.deepStrictEqual(
              [found.period, found.granularity, shown[0], shown.at(-1), shown.length],
              [period, granularity, first, last, buckets]
            )
            assert.strictEqual(found.from, new Date(first).toISOString())
            assert.strictEqual(found.to, "2026-04-28T07:10:00.250Z", "now")
            for (const figures of [found.summary, found.previous, ...found.timeseries]) {
              const numbers = Object.values(figures).filter((figure) => typeof figure === "number")
              assert.isTrue(numbers.length >= 3 && numbers.every((figure) => figure === 0), period)
            }
            assert.deepStrictEqual(Object.keys(found.summary), summaryNames)
          }
        })
    )

    it.effect("is compared with the same elapsed length one period earlier", () =>
      Effect.gen(function* () {
        yield* stopClock("2026-11-21T10:00:00Z")
        const site = yield* makeSite()
        yield* site.importLines("a", [
          viewAt("2026-11-21T09:00:00Z", "today"),
          viewAt("2026-11-20T09:59:59Z", "before"),
          viewAt("2026-11-20T10:00:00Z", "later that day")
        ])
        const { previous, summary } = yield* ask(site, "stats?period=today")
        assert.deepStrictEqual([summary["visitors"], previous["visitors"]], [1, 1])
      })
    )

    it.effect("is meant in the zone that timezone= names, instead of the site's", () =>
      Effect.gen(function* () {
        yield* stopClock("2026-11-21T20:10:00Z")
        const site = yield* makeSite({ timezone: "Europe/Berlin" })
        yield* site.importLines("a", [
          viewAt("2026-11-21T19:00:00Z", "b"),
          viewAt("2026-11-21T12:00:00Z", "a")
        ])
        const today = (zone: string) => ask(site, `stats?period=today${zone}`)
        const berlin = yield* today("")
        const kolkata = yield* today("&timezone=Asia/Kolkata")
        assert.deepStrictEqual([berlin.site.timezone, berlin.summary["pageviews"]], ["Europe/Berlin", 2])
        assert.deepStrictEqual([kolkata.site.timezone, kolkata.summary["pageviews"]], ["Asia/Kolkata", 1])
        assert.deepStrictEqual(bucketsOf(kolkata), ["2026-11-22T00:00:00+05:30", "2026-11-22T01:00:00+05:30"])
        const rows = yield* site.read("breakdown?dimension=page&period=today&timezone=asia/kolkata")
        assert.deepStrictEqual(rowsOf(rows), [["/", 1, 1, 1]])
      })
    )
  })

  describe("period=custom", () => {
    const stopped = Effect.gen(function* () {
      yield* stopClock("2026-11-21T10:20:30Z")
      return yield* makeSite({ timezone: "Europe/Berlin" })
    })

    it.effect(
      "takes the days from and to, both included: hours of one day, days of up to 92, else months",
      () =>
        Effect.gen(function* () {
          const site = yield* stopped
          yield* site.importLines("a", [
            viewAt("2026-10-23T21:59:59.999Z", "the day before"),
            viewAt("2026-10-23T22:00:00Z", "first"),
            viewAt("2026-10-25T22:59:59.999Z", "last"),
            viewAt("2026-10-25T23:00:00Z", "the day after")
          ])
          const custom = (from: string, to: string) => ask(site, `stats?period=custom&from=${from}&to=${to}`)
          const three = yield* custom("2026-10-24", "2026-10-26")
          assert.deepStrictEqual(
            [three.period, three.granularity, three.from, three.to],
            ["custom", "day", "2026-10-23T22:00:00.000Z", "2026-10-26T23:00:00.000Z"]
          )
          const two = yield* custom("2026-10-24", "2026-10-25")
          assert.deepStrictEqual([two.summary["visitors"], two.previous["visitors"]], [2, 1])
          assert.deepStrictEqual(bucketsOf(two), ["2026-10-24T00:00:00+02:00", "2026-10-25T00:00:00+02:00"])
          const one = yield* custom("2026-10-25", "2026-10-25")
          assert.deepStrictEqual([one.granularity, one.timeseries.length], ["hour", 25], "clocks went back")
          assert.strictEqual((yield* custom("2026-07-24", "2026-10-23")).timeseries.length, 92)
          const months = yield* custom("2026-07-23", "2026-10-23")
          assert.deepStrictEqual(
            [months.granularity, ...bucketsOf(months)],
            [
              "month",
              "2026-07-23T00:00:00+02:00",
              "2026-08-01T00:00:00+02:00",
              "2026-09-01T00:00:00+02:00",
              "2026-10-01T00:00:00+02:00"
            ]
          )
        })
    )

    it.effect(
      "ends now where it reaches into the future; wholly in the future it is 400 and names from",
      () =>
        Effect.gen(function* () {
          const site = yield* stopped
          const found = yield* ask(site, "stats?period=custom&from=2026-11-20&to=2026-12-24")
          assert.strictEqual(found.to, "2026-11-21T10:20:30.000Z")
          assert.deepStrictEqual(bucketsOf(found), ["2026-11-20T00:00:00+01:00", "2026-11-21T00:00:00+01:00"])
          for (const [from, to] of [
            ["2026-11-22", "2026-11-22"],
            ["9999-12-31", "9999-12-31"]
          ] as const) {
            const future = yield* site.read(`stats?period=custom&from=${from}&to=${to}`)
            assert.deepStrictEqual(
              [future.status, textOf(future, "error")],
              [400, "from: must not be in the future"]
            )
          }
          const begun = yield* site.read(
            "stats?period=custom&from=2026-11-22&to=2026-11-22&timezone=Pacific/Kiritimati"
          )
          assert.strictEqual(begun.status, 200, "it is the 22nd there already")
        })
    )

    it.effect("requires both from and to, in order, at most 10 years apart: 400 names which", () =>
      Effect.gen(function* () {
        const site = yield* stopped
        for (const [query, field] of [
          ["", "from"],
          ["&to=2026-11-01", "from"],
          ["&from=2026-11-01", "to"],
          ["&from=2026-11-02&to=2026-11-01", "to"],
          ["&from=2016-11-20&to=2026-11-21", "to"],
          ["&from=1970-01-01&to=9999-12-31", "to"]
        ] as const) {
          for (const rest of [...reads, "export?"]) {
            const refused = yield* site.read(`${rest}period=custom${query}`)
            assert.strictEqual(refused.status, 400, `${rest}${query}`)
            assert.isTrue(textOf(refused, "error").startsWith(`${field}: `), textOf(refused, "error"))
          }
        }
        const longest = yield* ask(site, "stats?period=custom&from=2016-11-21&to=2026-11-21")
        assert.strictEqual(longest.timeseries.length, 121)
      })
    )

    it.effect("reaches back to 1970, the first day that can be stored, and no further", () =>
      Effect.gen(function* () {
        const site = yield* stopped
        yield* site.importLines("old", [viewAt("1970-01-01T00:00:00Z"), viewAt("1970-01-02T00:00:00Z")])
        for (const zone of ["UTC", "America/Los_Angeles"]) {
          const period = `period=custom&from=1970-01-01&to=1970-01-03&timezone=${zone}`
          const found = yield* ask(site, `stats?${period}`)
          const expected = zone === "America/Los_Angeles" ? 1 : 2
          assert.strictEqual(found.summary["pageviews"], expected, zone)
          const [row] = rowsOf(yield* site.read(`breakdown?dimension=page&${period}`))
          assert.deepStrictEqual(row, ["/", expected, expected, expected], zone)
          for (const dimension of ["country", "event", "entry", "prop:x"]) {
            rowsOf(yield* site.read(`breakdown?dimension=${dimension}&${period}`))
          }
          for (const filter of ["country=(none)", "page=*", "event=(none)"]) {
            const filtered = yield* ask(site, `stats?${period}&${filter}`)
            assert.strictEqual(filtered.summary["pageviews"], expected, `${zone} ${filter}`)
          }
          const exported = yield* site.read(`export?${period}`)
          assert.strictEqual(Buffer.from(exported.bytes).toString().split("\n").length - 1, expected, zone)
        }
        // There it begins in 1969.
        const east = "period=custom&from=1970-01-01&to=1970-01-03&timezone=Pacific/Auckland"
        for (const rest of [...reads, "export?"]) {
          const refused = yield* site.read(`${rest}${east}`)
          assert.deepStrictEqual(statusAndBody(refused), [
            400,
            { error: "from: must not be before 1970 in UTC" }
          ])
        }
        const next = yield* ask(site, `stats?${east.replace("01-01", "01-02")}`)
        assert.strictEqual(next.summary["pageviews"], 1)
      })
    )

    it.effect("alone makes from and to count: without it they are ignored", () =>
      Effect.gen(function* () {
        const site = yield* stopped
        const found = yield* ask(site, "stats?period=7d&from=2020-01-01&to=2019-01-01")
        assert.deepStrictEqual([found.period, found.timeseries.length], ["7d", 7])
      })
    )
  })
})
