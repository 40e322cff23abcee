import { readFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { createClient } from "@clickhouse/client"
import { ask, type Counting, type Reachable, type TestSite } from "#test/harness/ApiClient.ts"
import type { Outcome } from "./BeaconLoad.ts"
import type { ServerProcess } from "#test/harness/ServerProcess.ts"

/** The address, with credentials, and the process of the server's embedded ClickHouse. */
export const embeddedClickHouse = (server: ServerProcess): { readonly url: string; readonly pid: number } =>
  JSON.parse(readFileSync(join(server.dataDir, "clickhouse.json"), "utf8"))

/** The process of the server's embedded PostgreSQL. */
export const embeddedPostgresPid = (server: ServerProcess): number =>
  Number(readFileSync(join(server.dataDir, "postgres", "postmaster.pid"), "utf8").split("\n")[0])

/** Rows that ClickHouse has, asked with the stock client and past all of the server's code. */
export const storedRows = async <Row>(
  clickhouseUrl: string,
  query: string,
  parameters: Readonly<Record<string, unknown>>
): Promise<ReadonlyArray<Row>> => {
  const client = createClient({ url: clickhouseUrl })
  try {
    const result = await client.query({ query, query_params: parameters, format: "JSONEachRow" })
    return await result.json<Row>()
  } finally {
    await client.close()
  }
}

/** The name by which a test knows an engage ping: engaged times must differ. */
export const pingName = (pv: string, engagedMillis: number): string => `ping ${pv} ${engagedMillis}`

/**
 * The number of stored rows of each path of a site, and of each ping by its name. `clickhouseUrl` is the server's if it
 * is not embedded.
 */
export const storedPaths = async (
  server: Counting,
  site: TestSite,
  clickhouseUrl = server.clickhouseUrl()
): Promise<ReadonlyMap<string, number>> => {
  const rows = await storedRows<{ readonly what: string; readonly n: string | number }>(
    clickhouseUrl,
    `SELECT if(kind = 'engage', concat('ping ', pv, ' ', toString(engaged_ms)), path) AS what, count() AS n
    FROM events WHERE site = {site:String} GROUP BY what`,
    { site: site.id }
  )
  return new Map(rows.map(({ n, what }) => [what, Number(n)]))
}

/** The number of stored page views and pings of a site. */
export const storedKinds = async (
  server: Counting,
  site: TestSite
): Promise<{ readonly pageviews: number; readonly pings: number }> => {
  const [row] = await storedRows<{ readonly pageviews: string; readonly pings: string }>(
    server.clickhouseUrl(),
    `SELECT toString(countIf(kind = 'pageview')) AS pageviews, toString(countIf(kind = 'engage')) AS pings
    FROM events WHERE site = {site:String}`,
    { site: site.id }
  )
  return { pageviews: Number(row?.pageviews), pings: Number(row?.pings) }
}

const emptyDay = "period=custom&from=2001-01-01&to=2001-01-01"

/**
 * Waits until everything that the server has accepted for the site is in ClickHouse: an export, here of a day without
 * events, leaves nothing out, where other reads show what is there.
 */
export const drained = async (server: Reachable, site: TestSite): Promise<void> => {
  const deadline = performance.now() + 60_000
  for (;;) {
    const answer = await ask(server, "GET", `/api/v1/sites/${site.id}/export?${emptyDay}`)
    if (answer.status === 200) return
    if (performance.now() > deadline)
      throw new Error(`not drained: ${answer.status} ${JSON.stringify(answer.body)}`)
    await sleep(250)
  }
}

/** The page views of a period as the API counts them, over visits. */
export const countedPageviews = async (
  server: Reachable,
  site: TestSite,
  period: "24h" | "30d" = "24h"
): Promise<number> => {
  const { body } = await ask(server, "GET", `/api/v1/sites/${site.id}/stats?period=${period}`)
  return (body as { summary: { pageviews: number } }).summary.pageviews
}

export interface Discrepancies {
  /** answered 202 and not stored */
  readonly lost: ReadonlyArray<string>
  /** stored more than once */
  readonly doubled: ReadonlyArray<string>
  /** stored, but never sent */
  readonly unknown: ReadonlyArray<string>
}

/** A 202 must be stored exactly once, anything else that was sent at most once. */
export const discrepancies = (
  outcomes: ReadonlyMap<string, Outcome>,
  stored: ReadonlyMap<string, number>
): Discrepancies => ({
  lost: [...outcomes].filter(([path, outcome]) => outcome === 202 && !stored.has(path)).map(([path]) => path),
  doubled: [...stored].filter(([, count]) => count > 1).map(([path]) => path),
  unknown: [...stored.keys()].filter((path) => !outcomes.has(path))
})

export const none: Discrepancies = { lost: [], doubled: [], unknown: [] }
