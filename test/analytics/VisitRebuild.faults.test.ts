import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { pageIdSql } from "#streams/analytics/PageIds.ts"
import { ClickHouse } from "#src/infra/clickhouse/ClickHouse.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { signalbox } from "#test/cli/Signalbox.ts"
import { unnamedPages, visitsByDefinition, visitsInStore } from "./VisitOracle.ts"

const minute = 60_000
const dayMillis = 24 * 60 * minute

interface Made {
  readonly site: { readonly id: string }
  readonly secret: string
}

const makeSite = Effect.gen(function* () {
  const { ask } = yield* TestServer
  const answer = yield* ask("POST", "/api/v1/sites", { json: { name: "Blog", domain: "example.org" } })
  const { secret, site } = answer.json as Made
  return { id: site.id, secret }
})

type Site = Effect.Success<typeof makeSite>

/** Takes page views of some visitors, at these minutes before now, and shows them in the store. */
const collect = Effect.fnUntraced(function* (
  { id, secret }: Site,
  views: ReadonlyArray<readonly [visitor: string, minutesAgo: number]>
) {
  const { ask } = yield* TestServer
  const json = views.map(([visitor, minutesAgo]) => ({
    url: `/${visitor}`,
    visitor,
    timestamp: Date.now() - minutesAgo * minute
  }))
  const taken = yield* ask("POST", "/api/v1/collect", { key: secret, json })
  assert.deepInclude(taken.json, { accepted: views.length })
  assert.strictEqual((yield* ask("GET", `/api/v1/sites/${id}/stats`)).status, 200)
})

const command = (sql: string, site: string) =>
  Effect.flatMap(ClickHouse, (clickhouse) => clickhouse.command(sql, { site }))

const rebuild = (...args: ReadonlyArray<string>) =>
  Effect.flatMap(TestServer, ({ adminKey, url }) =>
    Effect.promise(() =>
      signalbox(["rebuild", "visits", ...args], { SIGNALBOX_URL: url, SIGNALBOX_KEY: adminKey })
    )
  )

/** The figures of one site in the output of `rebuild visits --json`. */
const figuresOf = Effect.fnUntraced(function* (site: string, ...args: ReadonlyArray<string>) {
  const { code, err, out } = yield* rebuild("--site", site, "--json", ...args)
  assert.notStrictEqual(out, "", err)
  return { code, err, ...JSON.parse(out).sites[0] }
})

type Figures = Readonly<Record<"days" | "events" | "visits" | "missing" | "wrong" | "surplus", number>>

/** The same of one request, without the command line. */
const rebuilt = Effect.fnUntraced(function* (site: string, json: object = {}) {
  const { ask } = yield* TestServer
  const answer = yield* ask("POST", `/api/v1/sites/${site}/visits/rebuild`, { json })
  assert.strictEqual(answer.status, 200)
  assert.deepInclude(answer.json, { next: null })
  return answer.json as Figures
})

const assertRight = Effect.fnUntraced(function* (site: string) {
  const stored = yield* visitsInStore(site)
  assert.deepStrictEqual(stored, yield* visitsByDefinition(site))
  assert.deepStrictEqual(yield* unnamedPages(site), [])
  return stored
})

/** Lost rows, rows that say something else, and rows that no event makes: two of each, of two days. */
const damage = Effect.fnUntraced(function* (site: string) {
  const visits = "visits FINAL WHERE site = {site:String}"
  const changed = (fields: string, where: string) =>
    command(`INSERT INTO visits SELECT * REPLACE (${fields}) FROM ${visits} AND ${where}`, site)
  yield* changed("engaged_ms + 7 AS engaged_ms, ver + 1 AS ver", `view.page[1] = ${pageIdSql("'/wrong'")}`)
  yield* command("DELETE FROM page_names WHERE site = {site:String} AND path = '/wrong'", site)
  yield* changed("visitor + 1 AS visitor, ver + 1 AS ver", `view.page[1] = ${pageIdSql("'/surplus'")}`)
  yield* command(
    `DELETE FROM visits WHERE site = {site:String} AND view.page[1] = ${pageIdSql("'/missing'")}`,
    site
  )
})

const differing = { missing: 2, wrong: 2, surplus: 2 }
const right = { missing: 0, wrong: 0, surplus: 0 }

const views: ReadonlyArray<readonly [string, number]> = [3, 3 + 1440].flatMap((minutesAgo) => [
  ["wrong", minutesAgo],
  ["surplus", minutesAgo],
  ["missing", minutesAgo],
  ["missing", minutesAgo - 1],
  ["good", minutesAgo]
])

/** Events that no log brought, without visits. */
const insertEvents = (site: string, count: number, columns: string) =>
  command(
    `INSERT INTO events (log_id, seq, site, kind, hostname, day, visitor, at_ms, path)
    SELECT 1, number, {site:String}, 'pageview', 'example.org', ${columns} FROM numbers(${count})`,
    site
  )

layer(TestServer.own(), { excludeTestServices: true })("signalbox rebuild visits", (it) => {
  it.effect("finds nothing to do where every row is what the events say", () =>
    Effect.gen(function* () {
      const site = yield* makeSite
      yield* collect(site, views)
      const found = yield* figuresOf(site.id, "--check")
      assert.deepInclude(found, { code: 0, site: site.id, days: 2, events: 10, visits: 8, ...right })
      const words = yield* rebuild("--site", site.id)
      assert.include(words.out, `${site.id}: 2 days, 10 events, 8 visits; all rows were right`)
    })
  )

  it.effect("counts rows that are missing, wrong or surplus with --check, and changes nothing", () =>
    Effect.gen(function* () {
      const site = yield* makeSite
      yield* collect(site, views)
      yield* damage(site.id)
      const damaged = yield* visitsInStore(site.id)
      const found = yield* figuresOf(site.id, "--check")
      assert.deepInclude(found, { code: 1, days: 2, events: 10, visits: 8, ...differing })
      assert.include(found.err, "6 rows of visits are not what the events say")
      assert.deepStrictEqual(yield* visitsInStore(site.id), damaged)
    })
  )

  it.effect("puts them right, and the visits go on from there", () =>
    Effect.gen(function* () {
      const site = yield* makeSite
      yield* collect(site, views)
      yield* damage(site.id)
      assert.deepInclude(yield* figuresOf(site.id), { code: 0, ...differing })
      assert.lengthOf(yield* assertRight(site.id), 8)
      assert.deepInclude(yield* rebuilt(site.id, { check: true }), right)
      yield* collect(
        site,
        views.map(([visitor]) => [visitor, 0] as const)
      )
      yield* assertRight(site.id)
    })
  )

  it.effect("keeps to the days that it is told", () =>
    Effect.gen(function* () {
      const site = yield* makeSite
      yield* collect(site, views)
      yield* damage(site.id)
      const of = (millis: number): string => new Date(millis).toISOString().slice(0, 10)
      const yesterday = of(Date.now() - dayMillis - 3 * minute)
      const one = yield* figuresOf(site.id, "--from", yesterday, "--to", yesterday)
      assert.deepInclude(one, { days: 1, missing: 1, wrong: 1, surplus: 1 })
      const rest = yield* figuresOf(site.id, "--from", yesterday)
      assert.deepInclude(rest, { days: 2, missing: 1, wrong: 1, surplus: 1 })
    })
  )

  it.effect("puts rows right while events arrive, and loses none of them", () =>
    Effect.gen(function* () {
      const site = yield* makeSite
      yield* collect(site, views)
      let sent = 0
      const traffic = Effect.gen(function* () {
        for (;;) {
          // Some are of visitors whose rows are damaged, some late, some new.
          yield* collect(site, [
            ["wrong", 2],
            ["missing", 1441 - (sent % 30)],
            ["surplus", 0],
            [`new${sent}`, 0]
          ])
          sent++
        }
      })
      const repairs = Effect.gen(function* () {
        for (let round = 0; round < 3; round++) {
          yield* damage(site.id)
          yield* rebuilt(site.id)
        }
      })
      yield* Effect.raceFirst(traffic, repairs)
      assert.isAbove(sent, 0)
      yield* collect(site, [["last", 0]])
      yield* rebuilt(site.id)
      yield* assertRight(site.id)
    })
  )

  it.effect("goes on where one request ends, over any number of days", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const site = yield* makeSite
      yield* insertEvents(site.id, 105, "toDate(20000 + number), 7, 1000, '/'")
      const path = `/api/v1/sites/${site.id}/visits/rebuild`
      const first = yield* ask("POST", path, { json: { check: true } })
      assert.deepInclude(first.json, { days: 100, missing: 100, next: "2025-01-12", daysLeft: 5 })
      assert.deepInclude(yield* figuresOf(site.id), { days: 105, events: 105, visits: 105, missing: 105 })
      assert.lengthOf(yield* assertRight(site.id), 105)
    })
  )

  it.effect("makes the visits of a day of many visitors, and of one visitor with very many events", () =>
    Effect.gen(function* () {
      const site = yield* makeSite
      const views = "(number * 7919) % 86400000, concat('/', toString(number % 50))"
      yield* insertEvents(site.id, 60_000, `toDate(20000), cityHash64(intDiv(number, 4)), ${views}`)
      yield* insertEvents(site.id, 60_000, `toDate(20001), 7, ${views}`)
      const found = yield* rebuilt(site.id)
      assert.deepInclude(found, { days: 2, events: 120_000, wrong: 0, surplus: 0 })
      assert.lengthOf(yield* assertRight(site.id), found.missing)
    })
  )

  it.effect("takes back the rows of a visitor and of a day without events", () =>
    Effect.gen(function* () {
      const site = yield* makeSite
      yield* collect(site, views)
      yield* command("DELETE FROM events WHERE site = {site:String} AND path = '/good'", site.id)
      assert.deepInclude(yield* rebuilt(site.id), { events: 8, visits: 6, surplus: 2 })
      yield* command("DELETE FROM events WHERE site = {site:String}", site.id)
      assert.deepInclude(yield* rebuilt(site.id), { days: 2, events: 0, visits: 0, surplus: 6 })
      assert.deepStrictEqual(yield* visitsInStore(site.id), [])
    })
  )

  it.effect("is for the site's owner, and says which day is none", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      const { id } = yield* makeSite
      const path = `/api/v1/sites/${id}/visits/rebuild`
      const { key } = yield* makeUser()
      assert.strictEqual((yield* ask("POST", path, { key, json: {} })).status, 404)
      assert.strictEqual((yield* ask("POST", path, { key: "", json: {} })).status, 401)
      const none = yield* ask("POST", path, { json: { from: "2026-02-31" } })
      assert.strictEqual(none.status, 400)
      assert.deepStrictEqual(none.json, { error: "from: expected a day since 1970, such as 2026-11-21" })
      const turned = yield* ask("POST", path, { json: { from: "2026-02-02", to: "2026-02-01" } })
      assert.deepStrictEqual([turned.status, turned.json], [400, { error: "to: it is before from" }])
      const empty = yield* ask("POST", path, { json: {} })
      assert.deepInclude(empty.json, { days: 0, events: 0, next: null, daysLeft: 0 })
    })
  )

  it.effect("takes all of one's own sites where none is named", () =>
    Effect.gen(function* () {
      const { ask, makeUser, url } = yield* TestServer
      const { key } = yield* makeUser()
      const ids = yield* Effect.forEach(["a.example.org", "b.example.org"], (domain) =>
        Effect.map(
          ask("POST", "/api/v1/sites", { key, json: { name: domain, domain } }),
          (answer) => (answer.json as Made).site.id
        )
      )
      const args = ["rebuild", "visits", "--check", "--json"]
      const { code, out } = yield* Effect.promise(() =>
        signalbox(args, { SIGNALBOX_URL: url, SIGNALBOX_KEY: key })
      )
      assert.strictEqual(code, 0)
      const sites: ReadonlyArray<{ readonly site: string }> = JSON.parse(out).sites
      assert.sameMembers(
        sites.map(({ site }) => site),
        ids
      )
    })
  )
})
