import type { BadRequest } from "#schemas/core/Problem.ts"
import { Clock, Effect, Option, Stream } from "effect"
import type { StatsParameters } from "#schemas/analytics/Stats.ts"
import type { SinkUnavailable } from "#streams/kernel/Sink.ts"
import { escapedPath } from "#streams/analytics/DisplayForm.ts"
import { dayMillis } from "#streams/analytics/EventTime.ts"
import { ClickHouse } from "#src/infra/clickhouse/ClickHouse.ts"
import { EventDrain } from "../store/EventDrain.ts"
import type { StoreError } from "../store/EventStore.ts"
import { resolveQuery } from "./StatsQuery.ts"
import type { SiteRow } from "#schemas/analytics/Site.ts"
import { spanOf } from "../store/VisitRows.ts"

/** All events of a site and period as lines of JSON, read in pages: however many there are, memory holds one page. */
export const makeSiteExport = Effect.gen(function* () {
  const clickhouse = yield* ClickHouse
  const drain = yield* EventDrain
  return Effect.fn("SiteExport.ofSite")(function* (
    site: SiteRow,
    query: StatsParameters
  ): Effect.fn.Return<Stream.Stream<Uint8Array, StoreError>, BadRequest | SinkUnavailable | StoreError> {
    const { range } = yield* resolveQuery(site, query, yield* Clock.currentTimeMillis)
    yield* drain.flush(site.id)
    const span = { from: range.fromMillis, to: spanOf(range).to * 1000 }
    const pageAfter = (after: Place) =>
      clickhouse.query<ExportRow>(statement(span, after), { site: site.id }).pipe(
        Effect.map((rows) => {
          const last = rows.length < pageRows ? undefined : rows.at(-1)
          const next = Option.map(Option.fromUndefinedOr(last), placeOf)
          return [rows.length === 0 ? [] : [linesOf(rows)], next] as const
        })
      )
    // Before the answer begins, so that a store that is away is no answer that breaks off.
    const [first, next] = yield* pageAfter(firstPlace)
    const rest = Option.match(next, {
      onNone: () => Stream.empty,
      onSome: (place) => Stream.paginate(place, pageAfter)
    })
    return Stream.concat(Stream.fromIterable(first), rest)
  })
})

/** Some 10 MB as JSON. */
const pageRows = 20_000

interface ExportRow {
  readonly day_number: number
  readonly identity: string
  readonly at_ms: number
  readonly log: string
  readonly place: string
  readonly kind: "pageview" | "event" | "engage"
  readonly event_name: string
  readonly hostname: string
  readonly path: string
  readonly pv: string
  readonly engaged_ms: number
  readonly referrer: string
  readonly source: string
  readonly channel: string
  readonly utm_source: string
  readonly utm_medium: string
  readonly utm_campaign: string
  readonly utm_term: string
  readonly utm_content: string
  readonly country: string
  readonly browser: string
  readonly browser_version: string
  readonly os: string
  readonly device: string
  readonly props_keys: ReadonlyArray<string>
  readonly props_values: ReadonlyArray<string>
}

/** The end of a page, in the order of the table. */
type Place = Pick<ExportRow, "day_number" | "identity" | "at_ms" | "log" | "place">

/** Before everything: days are numbers from 0. */
const firstPlace: Place = { day_number: -1, identity: "0", at_ms: 0, log: "0", place: "0" }

const placeOf = ({ at_ms, day_number, identity, log, place }: ExportRow): Place => ({
  at_ms,
  day_number,
  identity,
  log,
  place
})

/** Days are compared on their own as well, so that the primary key finds where to go on. */
const statement = (span: { readonly from: number; readonly to: number }, after: Place): string => {
  // A ping is stored on the day of its page view, which may be the day before.
  const firstDay = Math.max(Math.floor(span.from / dayMillis) - 1, after.day_number, 0)
  const lastDay = Math.floor((span.to - 1) / dayMillis)
  const isAfter =
    after.day_number < 0
      ? ""
      : `AND (toUInt16(day), visitor, at_ms, log_id, seq)
          > (${after.day_number}, ${after.identity}, ${after.at_ms}, ${after.log}, ${after.place})`
  return `
  SELECT toUInt16(day) AS day_number, toString(visitor) AS identity, at_ms, toString(log_id) AS log,
    toString(seq) AS place, kind, name AS event_name, hostname, path, pv, engaged_ms, referrer, source, channel, utm_source,
    utm_medium, utm_campaign, utm_term, utm_content, country, browser, browser_version, os, device, props_keys,
    props_values
  FROM events
  WHERE site = {site:String} AND day >= toDate(${firstDay}) AND day <= toDate(${lastDay}) ${isAfter}
    AND toInt64(toUInt16(day)) * ${dayMillis} + at_ms >= ${span.from}
    AND toInt64(toUInt16(day)) * ${dayMillis} + at_ms < ${span.to}
  ORDER BY day, visitor, at_ms, log_id, seq LIMIT ${pageRows}`
}

const encoder = new TextEncoder()

const linesOf = (rows: ReadonlyArray<ExportRow>): Uint8Array =>
  encoder.encode(rows.map((row) => `${JSON.stringify(exported(row))}\n`).join(""))

const orNull = (text: string): string | null => (text === "" ? null : text)

/** With the utm fields in its query, where they were read from; null for a ping: the page is that of the view with its `pv`. */
const urlOf = (row: ExportRow): string | null => {
  if (row.kind === "engage") return null
  const utm = {
    utm_source: row.utm_source,
    utm_medium: row.utm_medium,
    utm_campaign: row.utm_campaign,
    utm_term: row.utm_term,
    utm_content: row.utm_content
  }
  const known = Object.entries(utm).filter(([, value]) => value !== "")
  const query = known.length === 0 ? "" : `?${new URLSearchParams(known).toString()}`
  return `https://${row.hostname}${escapedPath(row.path)}${query}`
}

/** In the names of the event input where it has them, so that page views and events can be imported again. */
const exported = (row: ExportRow) => ({
  timestamp: new Date(row.day_number * dayMillis + row.at_ms).toISOString(),
  kind: row.kind,
  name: row.kind === "event" ? row.event_name : row.kind,
  url: urlOf(row),
  pv: orNull(row.pv),
  visitor: `${row.day_number}-${BigInt(row.identity).toString(16)}`,
  referrer: orNull(row.referrer),
  source: orNull(row.source),
  channel: row.channel,
  country: orNull(row.country),
  browser: orNull(row.browser),
  browserVersion: orNull(row.browser_version),
  os: orNull(row.os),
  device: orNull(row.device),
  engagedMillis: row.kind === "engage" ? row.engaged_ms : null,
  props: Object.fromEntries(row.props_keys.map((key, index) => [key, row.props_values[index] ?? ""]))
})
