import { assert, describe, it } from "@effect/vitest"
import { spawn } from "node:child_process"
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll } from "vitest"
import { ask, textAt } from "./ApiClient.ts"
import { startServer, type ServerProcess } from "./ServerProcess.ts"

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

interface PageView {
  readonly millis: number
  /** one identity lasts for one UTC day */
  readonly visitor: string
}

/** The page views of a log by splitting its lines: nothing of the product takes part. */
const pageViewsOf = (lines: ReadonlyArray<string>): ReadonlyArray<PageView> =>
  lines.flatMap((line) => {
    const [head = "", request = "", status = "", referrer = "", , agent = ""] = line.split('"')
    const [method, target = ""] = request.split(" ")
    const time = /\[(\d+)\/(\w+)\/(\d+):(\S+) ([+-]\d\d)(\d\d)\]/.exec(head)
    if (
      time === null ||
      method !== "GET" ||
      !["200", "206", "304"].includes(status.trim().split(" ")[0] ?? "")
    )
      return []
    if (/\.(css|js|png|xml|woff2|ico)$/i.test(target.split("?")[0] ?? "")) return []
    // The referrer is the fourth part: status and size stand between two quotes.
    if (referrer.endsWith(".css") || /bot/i.test(agent)) return []
    const [, day, month = "", year, clock, hours, minutes] = time
    if (!months.includes(month)) return []
    const number = String(months.indexOf(month) + 1).padStart(2, "0")
    const millis = Date.parse(`${year}-${number}-${day}T${clock}${hours}:${minutes}`)
    return [{ millis, visitor: `${Math.floor(millis / dayMillis)} ${head.split(" ")[0]} ${agent}` }]
  })

/** What the page views in [from, to) come to, as the contract defines it. */
const recount = (views: ReadonlyArray<PageView>, isWanted: (millis: number) => boolean) => {
  const visits = Array.from(Map.groupBy(views, ({ visitor }) => visitor).values()).flatMap((own) => {
    const found: Array<Array<number>> = []
    for (const { millis } of own.toSorted((a, b) => a.millis - b.millis)) {
      const open = found.at(-1)
      if (open === undefined || millis - (open.at(-1) ?? 0) > 30 * 60_000) found.push([millis])
      else open.push(millis)
    }
    return found
  })
  const wanted = views.filter(({ millis }) => isWanted(millis))
  const started = visits.filter(([first]) => isWanted(first ?? 0))
  const bounced = started.filter((visit) => visit.length === 1).length
  return {
    visitors: new Set(wanted.map(({ visitor }) => visitor)).size,
    visits: started.length,
    pageviews: wanted.length,
    viewsPerVisit: Math.round((wanted.length / started.length) * 100) / 100,
    bounceRate: Math.round((bounced / started.length) * 10_000) / 100
  }
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
  it("gives the summary and the series of an independent recount of its lines", async () => {
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
    const expected = recount(views, () => true)
    assert.deepStrictEqual(summary, { ...expected, events: 0, avgDurationSec: 0 })
    assert.isAbove(expected.visits, expected.visitors)
    const dateOf = (millis: number): string => new Date(millis).toLocaleDateString("sv-SE", { timeZone })
    for (const { bucket, ...figures } of timeseries) {
      const { pageviews, visitors, visits } = recount(
        views,
        (millis) => dateOf(millis) === bucket.slice(0, 10)
      )
      assert.deepStrictEqual(figures, { visitors, visits, pageviews }, bucket)
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
