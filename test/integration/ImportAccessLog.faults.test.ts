import { assert, describe, it } from "@effect/vitest"
import { spawn } from "node:child_process"
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll } from "vitest"
import type { StoredEvent } from "#streams/analytics/StoredEvent.ts"
import { storedEvent } from "#test/analytics/Events.ts"
import { naiveBreakdown, naiveSummary, visitsOf, type NaiveFilters } from "#test/analytics/NaiveFigures.ts"
import { naivePeriod } from "#test/analytics/NaivePeriods.ts"
import { dimensions } from "#test/analytics/Questions.ts"
import { ask, textAt } from "#test/harness/ApiClient.ts"
import { startServer, type ServerProcess } from "#test/harness/ServerProcess.ts"

const root = join(import.meta.dirname, "../..")
const dayMillis = 86_400_000
const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

/** The fixture, days later: its newest line is of yesterday. Hours, gaps and midnights stay what they are. */
const recentLog = async (): Promise<ReadonlyArray<string>> => {
  const lines = (await readFile(join(root, "test/fixtures/access-log.txt"), "utf8")).split("\n")
  const newest = Date.UTC(2024, 4, 18)
  const days = Math.floor(Date.now() / dayMillis) - 1 - newest / dayMillis
  return lines.map((line) =>
    line.replace(/\[(\d\d)\/(May)\/(2024):/, (_, date: string) => {
      const moved = new Date(Date.UTC(2024, 4, Number(date) + days))
      const day = String(moved.getUTCDate()).padStart(2, "0")
      return `[${day}/${months[moved.getUTCMonth()]}/${moved.getUTCFullYear()}:`
    })
  )
}

/** The User-Agents of the fixture, as a person reads them. Those of bots have none of these words. */
const agents: ReadonlyArray<readonly [RegExp, Partial<StoredEvent>]> = [
  [/Macintosh.*Firefox/, { browser: "Firefox", os: "macOS", device: "desktop" }],
  [/Windows.*Chrome/, { browser: "Chrome", os: "Windows", device: "desktop" }],
  [/Linux.*Chrome/, { browser: "Chrome", os: "Linux", device: "desktop" }],
  [/iPhone.*Safari/, { browser: "Safari", os: "iOS", device: "mobile" }]
]

/** Likewise its referrers; the site's own pages are none. */
const referrers: Readonly<Record<string, Partial<StoredEvent>>> = {
  "https://www.google.com/": { source: "Google", referrer: "https://google.com/", channel: "Search" },
  "https://news.ycombinator.com/item?id=1": {
    source: "Hacker News",
    referrer: "https://news.ycombinator.com/item",
    channel: "Social"
  }
}

/** The page views of a log by splitting its lines: nothing of the product takes part. */
const pageViewsOf = (lines: ReadonlyArray<string>): ReadonlyArray<StoredEvent> => {
  const visitors = new Map<string, bigint>()
  return lines.flatMap((line) => {
    // The referrer is the fourth part: status and size stand between two quotes.
    const [head = "", request = "", status = "", referrer = "", , agent = ""] = line.split('"')
    const [method, target = ""] = request.split(" ")
    const time = /\[(\d+)\/(\w+)\/(\d+):(\S+) ([+-]\d\d)(\d\d)\]/.exec(head)
    const isAnswered = ["200", "206", "304"].includes(status.trim().split(" ")[0] ?? "")
    if (time === null || method !== "GET" || !isAnswered) return []
    const [address = "", query = ""] = target.split("#", 1).join("").split("?")
    if (/\.(css|js|png|xml|woff2|ico)$/i.test(address)) return []
    if (referrer.endsWith(".css") || /bot/i.test(agent)) return []
    const [, day, month = "", year, clock, hours, minutes] = time
    if (!months.includes(month)) return []
    const number = String(months.indexOf(month) + 1).padStart(2, "0")
    const ts = Date.parse(`${year}-${number}-${day}T${clock}${hours}:${minutes}`)
    const who = `${head.split(" ")[0]} ${agent}`
    const visitor = visitors.get(who) ?? BigInt(visitors.size)
    visitors.set(who, visitor)
    const isNewsletter = query === "utm_source=newsletter&utm_campaign=spring"
    return [
      storedEvent({
        channel: "Direct",
        ...agents.find(([pattern]) => pattern.test(agent))?.[1],
        ...referrers[referrer],
        ...(isNewsletter
          ? { source: "Newsletter", channel: "Email", utmSource: "newsletter", utmCampaign: "spring" }
          : {}),
        visitor,
        ts,
        day: Math.floor(ts / dayMillis),
        path: decodeURIComponent(address)
      })
    ]
  })
}

interface Series {
  readonly summary: Record<string, number>
  readonly timeseries: ReadonlyArray<{
    readonly bucket: string
    readonly visitors: number
    readonly visits: number
    readonly pageviews: number
  }>
}

let server: ServerProcess
let directory: string

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "signalbox-import-"))
  server = await startServer()
})

afterAll(async () => {
  await server.dispose()
  await rm(directory, { recursive: true, force: true })
})

/** Runs the command line program; answers what it printed. */
const signalbox = (
  ...words: ReadonlyArray<string>
): Promise<{ readonly code: number | null; readonly out: string }> =>
  new Promise((resolve) => {
    const child = spawn(process.execPath, [join(root, "src/cli/main.ts"), ...words], {
      env: { ...process.env, SIGNALBOX_URL: server.url, SIGNALBOX_KEY: server.adminKey() },
      stdio: ["ignore", "pipe", "pipe"]
    })
    let out = ""
    child.stdout.on("data", (chunk: Buffer) => (out += chunk.toString()))
    child.on("close", (code) => resolve({ code, out }))
  })

const makeSite = async (timezone: string): Promise<string> =>
  textAt(
    await ask(server, "POST", "/api/v1/sites", { json: { name: "Log", domain: "example.org", timezone } }),
    "site",
    "id"
  )

const statsOf = async (site: string, period: string): Promise<Series> =>
  (await ask(server, "GET", `/api/v1/sites/${site}/stats?period=${period}`)).body as Series

describe("importing an access log", () => {
  it("gives the summary, the series and the breakdowns of an independent recount of its lines", async () => {
    const timeZone = "America/St_Johns"
    const site = await makeSite(timeZone)
    const lines = await recentLog()
    const file = join(directory, "access.log")
    await writeFile(file, lines.join("\n"))
    const views = pageViewsOf(lines)
    const run = await signalbox("import", "access-log", file, "--site", site, "--json")
    assert.strictEqual(run.code, 0, run.out)
    const outcome = JSON.parse(run.out) as Record<string, number>
    assert.strictEqual(outcome["stored"], views.length)
    assert.strictEqual(outcome["malformed"], 3)

    const { summary, timeseries } = await statsOf(site, "30d")
    const visits = visitsOf(views)
    const { buckets, current } = naivePeriod("30d", timeZone, Date.now())
    const expected = naiveSummary(visits, current, {})
    assert.strictEqual(expected.pageviews, views.length)
    assert.isAbove(expected.visits, expected.visitors)
    assert.deepStrictEqual(summary, expected)
    const series = buckets.map((bucket) => ({ bucket: bucket.label, ...naiveSummary(visits, bucket, {}) }))
    assert.deepStrictEqual(
      timeseries,
      series.map(({ bucket, pageviews, visitors, visits: started }) => ({
        bucket,
        visitors,
        visits: started,
        pageviews
      }))
    )

    for (const filters of [{}, { page: "/blog/*" }, { browser: "Chrome" }] as ReadonlyArray<NaiveFilters>) {
      for (const dimension of dimensions) {
        const query = new URLSearchParams({ ...filters, dimension, limit: "500" }).toString()
        const { body } = await ask(server, "GET", `/api/v1/sites/${site}/breakdown?${query}`)
        const rows = naiveBreakdown(visits, current, filters, dimension)
        assert.deepStrictEqual((body as { rows: unknown }).rows, rows, query)
        if (dimension === "page") assert.isAbove(rows.length, 1)
      }
    }
  })

  it("counts nothing twice when it is run again, and says so", async () => {
    const site = await makeSite("UTC")
    const lines = await recentLog()
    const file = join(directory, "again.log")
    await writeFile(file, lines.join("\n"))
    await signalbox("import", "access-log", file, "--site", site, "--json")
    const again = await signalbox("import", "access-log", file, "--site", site, "--json")
    const outcome = JSON.parse(again.out) as Record<string, number>
    assert.strictEqual(outcome["stored"], 0)
    assert.strictEqual(outcome["resumedAt"], outcome["pages"])
    assert.strictEqual((await statsOf(site, "30d")).summary["pageviews"], pageViewsOf(lines).length)
  })

  it("can shift an old log so that its last page view is now", async () => {
    const site = await makeSite("UTC")
    const file = join(root, "test/fixtures/access-log.txt")
    const lines = (await readFile(file, "utf8")).split("\n")
    const run = await signalbox("import", "access-log", file, "--site", site, "--shift-to-now")
    assert.strictEqual(run.code, 0, run.out)
    const { summary, timeseries } = await statsOf(site, "7d")
    assert.strictEqual(summary["pageviews"], pageViewsOf(lines).length)
    assert.isAbove((timeseries.at(-1)?.pageviews ?? 0) + (timeseries.at(-2)?.pageviews ?? 0), 0)
  })
})
