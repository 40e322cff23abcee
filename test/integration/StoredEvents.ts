import { readFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { createClient } from "@clickhouse/client"
import { ask, type TestSite } from "./ApiClient.ts"
import type { Outcome } from "./BeaconLoad.ts"
import type { ServerProcess } from "./ServerProcess.ts"

/** The address, with credentials, and the process of the server's embedded ClickHouse. */
export const embeddedClickHouse = (server: ServerProcess): { readonly url: string; readonly pid: number } =>
  JSON.parse(readFileSync(join(server.dataDir, "clickhouse.json"), "utf8"))

/** The process of the server's embedded PostgreSQL. */
export const embeddedPostgresPid = (server: ServerProcess): number =>
  Number(readFileSync(join(server.dataDir, "postgres", "postmaster.pid"), "utf8").split("\n")[0])

/**
 * How often each path of a site is stored, asked of ClickHouse with the stock client and past all of the server's code.
 * `clickhouseUrl` is where the server's is not embedded.
 */
export const storedPaths = async (
  server: ServerProcess,
  site: TestSite,
  clickhouseUrl = embeddedClickHouse(server).url
): Promise<ReadonlyMap<string, number>> => {
  const client = createClient({ url: clickhouseUrl })
  try {
    const result = await client.query({
      query: "SELECT path, count() AS n FROM events WHERE site = {site:String} GROUP BY path",
      query_params: { site: site.id },
      format: "JSONEachRow"
    })
    const rows = await result.json<{ path: string; n: string | number }>()
    return new Map(rows.map((row) => [row.path, Number(row.n)]))
  } finally {
    await client.close()
  }
}

/** Waits until everything that the server has accepted for the site is in ClickHouse: a read flushes it. */
export const drained = async (server: ServerProcess, site: TestSite): Promise<void> => {
  const deadline = performance.now() + 60_000
  for (;;) {
    const answer = await ask(server, "GET", `/api/v1/sites/${site.id}/stats?period=24h`)
    if (answer.status === 200) return
    if (performance.now() > deadline)
      throw new Error(`not drained: ${answer.status} ${JSON.stringify(answer.body)}`)
    await sleep(250)
  }
}

/** The page views of the last 24 hours as the API counts them, over visits. */
export const countedPageviews = async (server: ServerProcess, site: TestSite): Promise<number> => {
  const { body } = await ask(server, "GET", `/api/v1/sites/${site.id}/stats?period=24h`)
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
