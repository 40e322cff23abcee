import { createClient } from "@clickhouse/client"
import type { Counting, TestSite } from "#test/harness/ApiClient.ts"
import { drained } from "#test/integration/StoredEvents.ts"
import { until } from "#test/harness/Eventually.ts"

/** An event as ClickHouse has it. */
export interface StoredHit {
  readonly kind: "pageview" | "event" | "engage"
  readonly name: string
  readonly hostname: string
  readonly path: string
  readonly referrer: string
  readonly source: string
  readonly campaign: string
  readonly country: string
  readonly browser: string
  readonly pv: string
  readonly engagedMillis: number
  readonly props: Readonly<Record<string, string>>
}

/** The stored events of a site now, in the order in which they came in. Read past all of the server's code. */
export const storedHits = async (server: Counting, site: TestSite): Promise<ReadonlyArray<StoredHit>> => {
  await drained(server, site)
  const client = createClient({ url: server.clickhouseUrl() })
  try {
    const result = await client.query({
      query: `SELECT toString(kind) AS kind, name, hostname, path, referrer, source, utm_campaign AS campaign, country,
          browser, pv, engaged_ms AS engagedMillis, mapFromArrays(props_keys, props_values) AS props
        FROM events WHERE site = {site:String} ORDER BY log_id, seq`,
      query_params: { site: site.id },
      format: "JSONEachRow"
    })
    return await result.json<StoredHit>()
  } finally {
    await client.close()
  }
}

/** Waits until what is stored is enough, and answers it. */
export const hitsOnce = async (
  server: Counting,
  site: TestSite,
  isEnough: (hits: ReadonlyArray<StoredHit>) => boolean
): Promise<ReadonlyArray<StoredHit>> => {
  let hits: ReadonlyArray<StoredHit> = []
  await until("events of the page are stored", async () => {
    hits = await storedHits(server, site)
    return isEnough(hits) ? undefined : JSON.stringify(hits, undefined, 1)
  })
  return hits
}

export const pageviews = (hits: ReadonlyArray<StoredHit>): ReadonlyArray<string> =>
  hits.filter(({ kind }) => kind === "pageview").map(({ path }) => path)

export const hasEvent =
  (name: string) =>
  (hits: ReadonlyArray<StoredHit>): boolean =>
    hits.some((hit) => hit.kind === "event" && hit.name === name)

export const hasViews =
  (...paths: ReadonlyArray<string>) =>
  (hits: ReadonlyArray<StoredHit>): boolean =>
    paths.every((path) => pageviews(hits).includes(path))

/** Milliseconds that were credited to the page views of a path. */
export const engagedMillis = (hits: ReadonlyArray<StoredHit>, path: string): number => {
  const views = new Set(
    hits.filter((hit) => hit.kind === "pageview" && hit.path === path).map(({ pv }) => pv)
  )
  return hits
    .filter(({ kind, pv }) => kind === "engage" && views.has(pv))
    .reduce((sum, hit) => sum + hit.engagedMillis, 0)
}
