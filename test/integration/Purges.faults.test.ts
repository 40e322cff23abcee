import { setTimeout as sleep } from "node:timers/promises"
import { createClient } from "@clickhouse/client"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { ask, createSite, type TestSite } from "#test/harness/ApiClient.ts"
import { until } from "#test/harness/Eventually.ts"
import { type ServerProcess, startServer } from "#test/harness/ServerProcess.ts"
import { openStores, type ServerStores } from "#test/harness/ServerStores.ts"
import { storedRows } from "./StoredEvents.ts"

const months = 3
const rowsPerMonth = 500

/** A statement written past the server. */
const command = async (clickhouseUrl: string, query: string): Promise<void> => {
  const client = createClient({ url: clickhouseUrl })
  try {
    await client.command({ query })
  } finally {
    await client.close()
  }
}

/** Events and visits of the sites in each of the last months. */
const fill = async (clickhouseUrl: string, sites: ReadonlyArray<string>): Promise<void> => {
  const each = `(SELECT arrayJoin([${sites.map((site) => `'${site}'`).join(", ")}]) AS name,
    toUInt16(today()) - 30 * (number % ${months}) AS day_number, number FROM numbers(${months * rowsPerMonth}))`
  await command(
    clickhouseUrl,
    `INSERT INTO events (log_id, seq, site, kind, day, visitor)
    SELECT 1, number, name, 'pageview', toDate(day_number), number FROM ${each}`
  )
  await command(
    clickhouseUrl,
    `INSERT INTO visits (site, day, start, visitor, ver, pageviews)
    SELECT name, toDate(day_number), day_number * 86400, number, 1, 1 FROM ${each}`
  )
}

/** Rows of a site in both tables; undefined while ClickHouse is down. */
const rowsOf = async (clickhouseUrl: string, site: string): Promise<number | undefined> => {
  try {
    const [row] = await storedRows<{ n: number }>(
      clickhouseUrl,
      `SELECT toFloat64((SELECT count() FROM events WHERE site = {site:String})
        + (SELECT count() FROM visits WHERE site = {site:String})) AS n`,
      { site }
    )
    return row?.n
  } catch {
    // The child of a killed server ends with it.
    return undefined
  }
}

const all = 2 * months * rowsPerMonth

/** ClickHouse was told to delete the site's rows of the table, and cannot: its merges are stopped. */
const begun = (clickhouseUrl: string, table: string, site: string): Promise<void> =>
  until(`the deletion from ${table} has begun`, async () => {
    const mutations = await storedRows(
      clickhouseUrl,
      `SELECT command FROM system.mutations WHERE database = currentDatabase() AND table = {table:String}
        AND position(command, {site:String}) > 0 AND NOT is_done`,
      { table, site }
    )
    return mutations.length > 0 ? undefined : "no mutation"
  })

const gone = (clickhouseUrl: () => string, site: string): Promise<void> =>
  until(
    "all rows are gone",
    async () => {
      const rows = await rowsOf(clickhouseUrl(), site)
      return rows === 0 ? undefined : `${rows} rows`
    },
    180_000
  )

const statsOf = async (server: ServerProcess, { id }: TestSite): Promise<unknown> => {
  const { body } = await ask(server, "GET", `/api/v1/sites/${id}/stats?period=12mo`)
  return (body as { summary: unknown }).summary
}

describe("a purge whose server is killed", () => {
  let server: ServerProcess
  beforeAll(async () => {
    server = await startServer()
  })
  afterAll(() => server?.dispose())

  it.each(["events", "visits"])(
    "amid the deletion from %s: it goes on, and costs another site nothing",
    async (table) => {
      const [doomed, kept] = [await createSite(server), await createSite(server)]
      await fill(server.clickhouseUrl(), [doomed.id, kept.id])
      const before = await statsOf(server, kept)
      assert.deepStrictEqual(before, await statsOf(server, doomed))
      await command(server.clickhouseUrl(), `SYSTEM STOP MERGES ${table}`)
      assert.strictEqual((await ask(server, "DELETE", `/api/v1/sites/${doomed.id}`)).status, 200)
      await begun(server.clickhouseUrl(), table, doomed.id)
      await server.stop("SIGKILL")
      await server.start()
      await gone(server.clickhouseUrl, doomed.id)
      assert.strictEqual(await rowsOf(server.clickhouseUrl(), kept.id), all)
      assert.deepStrictEqual(await statsOf(server, kept), before)
    }
  )
})

describe("a purge amid which ClickHouse goes away", () => {
  let stores: ServerStores
  let server: ServerProcess
  beforeAll(async () => {
    stores = await openStores()
    server = await startServer({ env: stores.env })
  })
  afterAll(async () => {
    await server?.dispose()
    await stores?.close()
  })

  it.each(["refuse", "stall"] as const)("goes on when it is back (connections %s)", async (way) => {
    const [doomed, kept] = [await createSite(server), await createSite(server)]
    const url = () => stores.clickhouseUrl
    await fill(url(), [doomed.id, kept.id])
    await command(url(), "SYSTEM STOP MERGES events")
    await ask(server, "POST", `/api/v1/sites/${doomed.id}/reset`)
    await begun(url(), "events", doomed.id)
    stores.clickhouse.breakWire(way)
    await command(url(), "SYSTEM START MERGES events")
    await sleep(3_000)
    assert.strictEqual(await rowsOf(url(), doomed.id), all / 2, "the visits wait for the purge")
    stores.clickhouse.mend()
    await gone(url, doomed.id)
    assert.strictEqual(await rowsOf(url(), kept.id), all)
  })
})
