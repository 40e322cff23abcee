import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer } from "#test/harness/TestServer.ts"
import { chrome } from "./Senders.ts"
import { makeSite, rowsOf, type SiteProbe } from "./SiteProbe.ts"
import { threeVisits } from "./SiteVisits.ts"

const live = { excludeTestServices: true } as const

type Line = Readonly<Record<string, unknown>>

const linesOf = (bytes: Uint8Array): ReadonlyArray<string> => {
  const text = Buffer.from(bytes).toString()
  assert.isTrue(text === "" || text.endsWith("\n"), "the last line is whole")
  return text === "" ? [] : text.slice(0, -1).split("\n")
}

const textOfExport = (site: SiteProbe, query = "") =>
  Effect.map(site.read(`export${query}`), ({ bytes, headers, status }) => {
    assert.deepStrictEqual([status, headers.get("content-type")], [200, "application/x-ndjson"])
    const lines = linesOf(bytes)
    if (lines.length > 0) assert.isNull(headers.get("content-length"), "it is streamed")
    return lines
  })

const exportOf = (site: SiteProbe, query = "") =>
  Effect.map(textOfExport(site, query), (lines) => lines.map((line): Line => JSON.parse(line)))

/** The dimensions that an import of an export gives back; an import takes no browser, system and device as such. */
const keptDimensions =
  "page entry exit source referrer campaign medium country event hostname term content channel prop:plan"

layer(TestServer.own(), live)("GET /api/v1/sites/:id/export", (it) => {
  it.effect(
    "shows every event of the site as a line of JSON, just collected ones too, and no other site's",
    () =>
      Effect.gen(function* () {
        const site = yield* makeSite()
        const other = yield* makeSite()
        const timestamp = new Date(Date.now() - 60_000).toISOString()
        yield* other.collect([{ url: "/other", visitor: "v" }])
        yield* site.collect([
          {
            url: "/ä b/?utm_source=list&utm_medium=email&utm_campaign=spring&utm_term=boots&utm_content=top&secret=1",
            name: "signup",
            visitor: "anna",
            userAgent: chrome,
            country: "de",
            referrer: "https://www.google.com/search?q=x",
            props: { plan: "pro", seats: 3, trial: false },
            timestamp
          },
          { url: "https://blog.example.com/post", timestamp }
        ])
        const [anna, plain] = (yield* exportOf(site)).toSorted((a, b) =>
          String(a["name"]) < String(b["name"]) ? 1 : -1
        )
        const { visitor, ...known } = anna ?? {}
        assert.match(String(visitor), /^\d+-[0-9a-f]{1,16}$/)
        assert.deepStrictEqual(known, {
          timestamp,
          kind: "event",
          name: "signup",
          url: "https://example.com/%C3%A4%20b/?utm_source=list&utm_medium=email&utm_campaign=spring&utm_term=boots&utm_content=top",
          referrer: "https://google.com/search",
          source: "list",
          channel: "Email",
          pv: null,
          country: "DE",
          browser: "Chrome",
          browserVersion: "130",
          os: "Windows",
          device: "desktop",
          engagedMillis: null,
          props: { plan: "pro", seats: "3", trial: "false" }
        })
        assert.deepInclude(plain, {
          kind: "pageview",
          name: "pageview",
          url: "https://blog.example.com/post",
          referrer: null,
          source: null,
          channel: "Direct",
          country: null,
          browser: null,
          device: null,
          props: {}
        })
      })
  )

  it.effect("shows engage pings, as events without a page", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const site = yield* makeSite()
      for (const fields of [
        { k: "pageview", u: "https://example.com/", pv: "p1" },
        { k: "engage", pv: "p1", e: 0, u: "https://example.com/" }
      ]) {
        const json = { s: site.id, ...fields }
        const sent = yield* ask("POST", "/api/event", { key: "", json, headers: { "user-agent": chrome } })
        assert.strictEqual(sent.status, 202)
      }
      const [view, ping] = yield* exportOf(site)
      assert.deepInclude(view, { kind: "pageview", url: "https://example.com/", engagedMillis: null })
      assert.deepInclude(ping, { kind: "engage", url: null, engagedMillis: 0, visitor: view?.["visitor"] })
      assert.deepStrictEqual([view?.["pv"], ping?.["pv"]], ["p1", "p1"], "by it the page of a ping is known")
    })
  )

  it.effect("holds neither addresses nor User-Agents", () =>
    Effect.gen(function* () {
      const site = yield* makeSite()
      yield* site.collect([{ url: "/", ip: "203.0.113.77", userAgent: chrome }])
      const [line = ""] = yield* textOfExport(site)
      for (const hidden of ["203.0.113.77", "Mozilla", "AppleWebKit", "ip", "userAgent"]) {
        assert.notInclude(line, `"${hidden}`)
        assert.notInclude(line, hidden)
      }
    })
  )

  it.effect("takes a period: the last 30 days, or what is asked for, to the millisecond", () =>
    Effect.gen(function* () {
      const { stopClockAt } = yield* TestServer
      yield* Effect.addFinalizer(() => Effect.sync(() => stopClockAt(undefined)))
      stopClockAt(Date.parse("2026-11-21T10:20:30Z"))
      const site = yield* makeSite({ timezone: "Europe/Berlin" })
      const instants = [
        "2026-09-01T12:00:00.000Z",
        "2026-11-19T22:59:59.999Z",
        "2026-11-19T23:00:00.000Z",
        "2026-11-20T22:59:59.999Z",
        "2026-11-20T23:00:00.000Z"
      ]
      yield* site.importLines(
        "a",
        instants.map((timestamp) => JSON.stringify({ url: "/", visitor: timestamp, timestamp }))
      )
      const shown = (query: string) =>
        Effect.map(exportOf(site, query), (lines) => lines.map((line) => line["timestamp"]).toSorted())
      assert.deepStrictEqual(yield* shown(""), instants.slice(1))
      assert.deepStrictEqual(yield* shown("?period=90d"), instants)
      assert.deepStrictEqual(yield* shown("?period=today"), instants.slice(4))
      const day = "?period=custom&from=2026-11-20&to=2026-11-20"
      assert.deepStrictEqual(yield* shown(day), instants.slice(2, 4))
      assert.deepStrictEqual(yield* shown(`${day}&timezone=Asia/Kolkata`), instants.slice(1, 3))
      assert.deepStrictEqual(yield* shown("?period=custom&from=2020-01-01&to=2020-01-02"), [])
    })
  )

  it.effect("goes on past a page of 20,000 events, and shows each of them once", () =>
    Effect.gen(function* () {
      const site = yield* makeSite()
      const start = Date.now() - 3 * 86_400_000
      // Many events of one visitor and millisecond: a page ends among what differs by its place in the log alone.
      const lines = Array.from({ length: 21_000 }, (_, index) =>
        JSON.stringify({
          url: `/${index}`,
          visitor: `v${index % 3}`,
          timestamp: start + Math.floor(index / 20_500) * 86_400_000
        })
      )
      for (let offset = 0; offset < lines.length; offset += 10_000) {
        yield* site.importLines("a", lines.slice(offset, offset + 10_000), offset)
      }
      const urls = (yield* exportOf(site, "?period=7d")).map(({ url }) => url)
      assert.strictEqual(urls.length, lines.length)
      assert.strictEqual(new Set(urls).size, lines.length)
    })
  )

  it.effect("can be imported again: page views and events count as they did", () =>
    Effect.gen(function* () {
      const site = yield* makeSite()
      const copy = yield* makeSite()
      yield* site.collect([
        ...threeVisits,
        { url: "/a%2Fb;c=%3F%23&d/?utm_campaign=a%26b+c", visitor: "dora" }
      ])
      yield* copy.importLines("copy", yield* textOfExport(site))
      for (const dimension of keptDimensions.split(" ")) {
        const read = `breakdown?dimension=${dimension}`
        assert.deepStrictEqual(rowsOf(yield* copy.read(read)), rowsOf(yield* site.read(read)), dimension)
      }
      const summaryOf = (from: SiteProbe) =>
        Effect.map(from.read("stats"), ({ json }) => (json as { summary: object }).summary)
      assert.deepStrictEqual(yield* summaryOf(copy), yield* summaryOf(site))
    })
  )
})
