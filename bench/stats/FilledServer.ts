import { randomBytes } from "node:crypto"
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { type ClickHouseClient, createClient } from "@clickhouse/client"
import { dayMillis } from "#streams/analytics/EventTime.ts"
import { offsetMillis } from "#streams/time/LocalTime.ts"
import { probed } from "#bench/harness/Meter.ts"
import { shareUntil, weightOf } from "#bench/traffic/Curves.ts"
import { Traffic, type TrafficEvent, type TrafficOptions } from "#bench/traffic/Traffic.ts"
import { ask, textAt } from "#test/harness/ApiClient.ts"
import { type ServerProcess, startServer } from "#test/harness/ServerProcess.ts"
import { makeFiller } from "./Filler.ts"

/** The contents of a filled data directory, in `traffic.json`: enough to fill up to a later instant. */
interface Filled {
  readonly traffic: TrafficOptions
  readonly firstDay: number
  /** everything before it is stored */
  readonly untilMillis: number
  readonly logId: string
  readonly events: number
  /** the cost of writing them, merges by hand not included */
  readonly fillMillis: number
}

export interface FillOptions {
  readonly directory: string
  /** about so many events from the first day on … */
  readonly events: number
  /** … that many local days before `untilMillis`, its own included */
  readonly days: number
  readonly untilMillis: number
  readonly paths: number
}

/** A real server on a data directory with the traffic of one site. */
export interface FilledServer {
  readonly server: ServerProcess
  readonly site: string
  readonly clickhouse: ClickHouseClient
  readonly clickhouseUrl: string
  readonly storePid: number
  readonly filled: () => Filled
  /** Adds what has happened since; answers how many events that was. `parts`: in so many batches, 50,000 events each without. */
  readonly fillUntil: (untilMillis: number, parts?: number) => Promise<number>
  readonly close: () => Promise<void>
}

/** As the server's own batches at most (`Limits.batchRows`). */
const batchEvents = 50_000
const eventsPerVisit = 3.33
const domain = "example.com"
/** of the site that is filled */
export const filledTimeZone = "Europe/Berlin"
const timeZone = filledTimeZone

const localDay = (millis: number): number => Math.floor((millis + offsetMillis(timeZone, millis)) / dayMillis)

/** So many visits a day that all days together, the last of them not over, have those events. */
const visitsPerDay = ({ days, events, untilMillis }: FillOptions): number => {
  const today = localDay(untilMillis)
  const hour = ((untilMillis + offsetMillis(timeZone, untilMillis)) % dayMillis) / 3_600_000
  let weight = weightOf(today) * shareUntil(today, hour)
  for (let day = today - days + 1; day < today; day++) weight += weightOf(day)
  return events / eventsPerVisit / weight
}

const begin = async (server: ServerProcess, options: FillOptions): Promise<Filled> => {
  const site = await ask(server, "POST", "/api/v1/sites", {
    json: { name: "Traffic", domain, timezone: timeZone }
  })
  const firstDay = localDay(options.untilMillis) - options.days + 1
  const traffic: TrafficOptions = {
    seed: 20_261_121,
    site: textAt(site, "site", "id"),
    domain,
    timeZone,
    visitsPerDay: visitsPerDay(options),
    paths: options.paths
  }
  const untilMillis = new Traffic(traffic).startOf(firstDay)
  return {
    traffic,
    firstDay,
    untilMillis,
    logId: String(randomBytes(8).readBigUInt64LE()),
    events: 0,
    fillMillis: 0
  }
}

/** Events of `[fromMillis, untilMillis)`: visits that began on an earlier day run into the first. */
function* between(traffic: Traffic, filled: Filled, untilMillis: number): Generator<TrafficEvent, void> {
  const firstDay = Math.max(filled.firstDay, localDay(filled.untilMillis) - 1)
  for (const event of traffic.eventsFrom(firstDay, untilMillis)) {
    if (event.ts >= filled.untilMillis) yield event
  }
}

const count = (events: Iterable<TrafficEvent>): number => {
  let found = 0
  for (const _ of events) found++
  return found
}

const filledFile = (directory: string): string => join(directory, "traffic.json")

const readFilled = (directory: string): Filled | undefined =>
  existsSync(filledFile(directory)) ? JSON.parse(readFileSync(filledFile(directory), "utf8")) : undefined

/** When the traffic in a directory ends, in milliseconds since 1970; undefined where there is none. */
export const endOfFilled = (directory: string): number | undefined => readFilled(directory)?.untilMillis

/** Starts a server on the directory, which is new or was filled before; nothing is filled yet. */
export const openFilled = async (options: FillOptions): Promise<FilledServer> => {
  const { directory: dataDir } = options
  const server = await startServer({ dataDir, env: { TRUST_PROXY: "1", ...probed() } })
  let filled: Filled = readFilled(dataDir) ?? (await begin(server, options))
  const store = JSON.parse(readFileSync(join(dataDir, "clickhouse.json"), "utf8")) as {
    readonly url: string
    readonly pid: number
  }
  const clickhouse = createClient({ url: store.url, request_timeout: 600_000, log: { level: 127 } })
  const traffic = new Traffic(filled.traffic)
  return {
    server,
    site: filled.traffic.site,
    clickhouse,
    clickhouseUrl: store.url,
    storePid: store.pid,
    filled: () => filled,
    fillUntil: async (untilMillis, parts) => {
      const dataset = filled.traffic.site
      // The first dataset of a site has its id, by which programs before datasets call it.
      const site = { id: dataset, dataset, domain, visitorSecret: new Uint8Array(32), retentionDays: null }
      const filler = await makeFiller(site, store.url)
      const events = between(traffic, filled, untilMillis)
      const perBatch =
        parts === undefined ? batchEvents : Math.ceil(count(between(traffic, filled, untilMillis)) / parts)
      const startedAt = performance.now()
      try {
        const place = { logId: BigInt(filled.logId), seq: filled.events }
        const written = await filler.write(events, place, perBatch)
        const fillMillis = filled.fillMillis + performance.now() - startedAt
        filled = { ...filled, untilMillis, events: filled.events + written, fillMillis }
        writeFileSync(filledFile(dataDir), JSON.stringify(filled))
        return written
      } finally {
        await filler.close()
      }
    },
    close: async () => {
      await clickhouse.close()
      await server.dispose()
    }
  }
}

/** Every partition of both tables into one part each, as maintenance does with closed months. */
export const mergeParts = async (clickhouse: ClickHouseClient): Promise<void> => {
  const answer = await clickhouse.query({
    query: `SELECT DISTINCT table, partition_id FROM system.parts
      WHERE database = currentDatabase() AND active AND table IN ('events', 'visits', 'long_visits', 'page_names') ORDER BY table, partition_id`,
    format: "JSONEachRow"
  })
  for (const { partition_id, table } of await answer.json<{ table: string; partition_id: string }>()) {
    await clickhouse.command({
      query: `OPTIMIZE TABLE ${table} PARTITION ID '${partition_id}' FINAL`,
      clickhouse_settings: { max_execution_time: 600 }
    })
  }
}
