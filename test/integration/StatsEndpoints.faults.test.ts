import { assert, describe, it } from "@effect/vitest"
import { randomBytes } from "node:crypto"
import { afterAll, beforeAll, inject } from "vitest"
import { atDatabase } from "#test/harness/DatabaseUrl.ts"
import { ask, createSite, textAt, type Answer, type TestSite } from "#test/harness/ApiClient.ts"
import { startServer, type ServerProcess } from "#test/harness/ServerProcess.ts"
import { startProxy, type TcpProxy } from "#test/harness/TcpProxy.ts"

let server: ServerProcess
let wire: TcpProxy
let site: TestSite
let clickhouse: URL

beforeAll(async () => {
  clickhouse = new URL(atDatabase(inject("clickhouseUrl"), `test_${randomBytes(8).toString("hex")}`))
  wire = await startProxy({ host: clickhouse.hostname, port: Number(clickhouse.port) })
  clickhouse.host = `127.0.0.1:${wire.port}`
  server = await startServer({ env: { CLICKHOUSE_URL: clickhouse.href } })
  site = await createSite(server)
})

afterAll(async () => {
  await server.dispose()
  const credentials = Buffer.from(`${clickhouse.username}:${clickhouse.password}`).toString("base64")
  await fetch(clickhouse.origin, {
    method: "POST",
    headers: { authorization: `Basic ${credentials}` },
    body: `DROP DATABASE ${clickhouse.pathname.slice(1)}`
  })
  await wire.close()
})

const collect = (events: ReadonlyArray<object>): Promise<Answer> =>
  ask(server, "POST", "/api/v1/collect", { key: site.secret, json: events })

const stats = (query = "", key?: string, id = site.id): Promise<Answer> =>
  ask(server, "GET", `/api/v1/sites/${id}/stats${query}`, key === undefined ? {} : { key })

const fieldOf = (answer: Answer, ...path: ReadonlyArray<string>): unknown =>
  path.reduce<unknown>((value, name) => (value as Record<string, unknown> | undefined)?.[name], answer.body)

describe("GET /api/v1/sites/:id/stats", () => {
  it("shows the site, the period, the summary, the period before and a complete series", async () => {
    const answer = await stats("?unknown=ignored")
    assert.strictEqual(answer.status, 200)
    assert.deepStrictEqual(
      Object.keys(answer.body as object).sort(),
      "filters from granularity period previous site summary timeseries to".split(" ")
    )
    assert.strictEqual(fieldOf(answer, "period"), "30d")
    assert.strictEqual((fieldOf(answer, "timeseries") as ReadonlyArray<unknown>).length, 30)
    assert.deepStrictEqual(fieldOf(answer, "site"), {
      id: site.id,
      name: "Test",
      domain: "example.com",
      timezone: "UTC"
    })
  })

  it("shows what was collected before the request, also when it was collected just now", async () => {
    for (const pageviews of [1, 2, 3]) {
      assert.strictEqual(
        (await collect([{ url: "/", ip: "192.0.2.1", userAgent: "Mozilla/5.0 Firefox/121.0" }])).status,
        202
      )
      assert.strictEqual(fieldOf(await stats("?period=today"), "summary", "pageviews"), pageviews)
    }
    assert.strictEqual(fieldOf(await stats("?period=today"), "summary", "visitors"), 1)
  })

  it("holds the filters it is given, and says them", async () => {
    const answer = await stats("?period=24h&page=/nowhere&country=(none)")
    assert.deepStrictEqual(fieldOf(answer, "filters"), { page: "/nowhere", country: "(none)" })
    assert.strictEqual(fieldOf(answer, "summary", "pageviews"), 0)
  })

  it("names a period or filter that does not exist: 400", async () => {
    for (const [query, field] of [
      ["?period=1d", "period"],
      ["?device=fridge", "device"],
      ["?source=", "source"]
    ] as const) {
      const answer = await stats(query)
      assert.strictEqual(answer.status, 400, query)
      assert.match(textAt(answer, "error"), new RegExp(`^${field}`))
    }
  })

  it("is 401 without a key, 403 for a router key, 404 for a site that is not there or somebody else's", async () => {
    const missing = await stats("", "")
    assert.deepStrictEqual([missing.status, missing.body], [401, { error: "Invalid or missing API key" }])
    assert.strictEqual((await stats("", site.secret)).status, 401)
    const router = await ask(server, "POST", "/api/v1/keys", { json: { name: "r", kind: "router" } })
    assert.strictEqual((await stats("", textAt(router, "key"))).status, 403)
    assert.strictEqual((await stats("", undefined, "st_0000000000000000000000")).status, 404)
    const user = await ask(server, "POST", "/api/v1/admin/users", {
      json: { email: "eve@example.org", name: "Eve" }
    })
    const other = await ask(server, "POST", "/api/v1/keys", {
      json: { name: "e", kind: "account", user_id: textAt(user, "id") }
    })
    assert.strictEqual((await stats("", textAt(other, "key"))).status, 404)
  })

  it("is 503 with Retry-After while ClickHouse is away, and has everything when it is back", async () => {
    const before = fieldOf(await stats("?period=today"), "summary", "pageviews") as number
    wire.breakWire("refuse")
    assert.strictEqual((await collect([{ url: "/a", visitor: "v" }])).status, 202)
    const away = await stats("?period=today")
    assert.strictEqual(away.status, 503)
    assert.match(away.headers.get("retry-after") ?? "", /^[1-9]\d*$/)
    // Nothing new waits for it there: the reads themselves find it away.
    const quiet = await createSite(server, "quiet.example")
    for (const read of ["stats", "breakdown?dimension=page", "export"]) {
      const refused = await ask(server, "GET", `/api/v1/sites/${quiet.id}/${read}`)
      assert.strictEqual(refused.status, 503, read)
      assert.match(refused.headers.get("retry-after") ?? "", /^[1-9]\d*$/, read)
    }
    const live = await ask(server, "GET", `/api/v1/sites/${site.id}/realtime`)
    assert.strictEqual(live.status, 200, "realtime figures need no store")
    wire.mend()
    let answer = await stats("?period=today")
    while (answer.status === 503) answer = await stats("?period=today")
    assert.strictEqual(fieldOf(answer, "summary", "pageviews"), before + 1)
  })
})

describe("GET /api/v1/sites/:id/realtime", () => {
  it("shows the last minutes at once, 30 of them, oldest first", async () => {
    await collect([{ url: "/live", visitor: "w" }])
    const answer = await ask(server, "GET", `/api/v1/sites/${site.id}/realtime`)
    assert.strictEqual(answer.status, 200)
    assert.deepStrictEqual(Object.keys(answer.body as object).sort(), [
      "pages",
      "pageviews",
      "perMinute",
      "visitors"
    ])
    const perMinute = fieldOf(answer, "perMinute") as ReadonlyArray<{ minute: number; pageviews: number }>
    assert.deepStrictEqual(
      perMinute.map(({ minute }) => minute),
      Array.from({ length: 30 }, (_, index) => 29 - index)
    )
    assert.deepInclude(fieldOf(answer, "pages") as ReadonlyArray<unknown>, { path: "/live", visitors: 1 })
  })

  it("is 404 for a site that is not there, 401 without a key", async () => {
    assert.strictEqual((await ask(server, "GET", "/api/v1/sites/st_0/realtime")).status, 404)
    assert.strictEqual(
      (await ask(server, "GET", `/api/v1/sites/${site.id}/realtime`, { key: "" })).status,
      401
    )
  })
})

describe("GET /api/v1/sites/:id/drops", () => {
  it("counts by day, reason and bot what was sent and is in no figure", async () => {
    const other = await createSite(server, "drops.example")
    const bot = { url: "/", userAgent: "Googlebot/2.1 (+http://www.google.com/bot.html)" }
    const twice = { url: "/", visitor: "v", id: "once" }
    const answer = await ask(server, "POST", "/api/v1/collect", {
      key: other.secret,
      json: [
        bot,
        bot,
        { ...bot, userAgent: "GPTBot/1.2" },
        { url: "/", userAgent: "somebody's bot" },
        twice,
        twice,
        { url: "no url" }
      ]
    })
    assert.strictEqual(answer.status, 202)
    const { body } = await ask(server, "GET", `/api/v1/sites/${other.id}/drops`)
    const day = new Date().toISOString().slice(0, 10)
    assert.deepStrictEqual(body, {
      drops: [
        { day, reason: "bot", bot: { name: "Googlebot", category: "search" }, count: 2 },
        { day, reason: "bot", bot: { name: "Other bot", category: "other" }, count: 1 },
        { day, reason: "bot", bot: { name: "GPTBot", category: "ai" }, count: 1 },
        { day, reason: "duplicate", bot: null, count: 1 },
        { day, reason: "invalid", bot: null, count: 1 }
      ]
    })
  })

  it("is 404 for a site that is not there, 401 without a key", async () => {
    assert.strictEqual((await ask(server, "GET", "/api/v1/sites/st_0/drops")).status, 404)
    assert.strictEqual((await ask(server, "GET", `/api/v1/sites/${site.id}/drops`, { key: "" })).status, 401)
  })
})
