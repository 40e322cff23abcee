import { Effect } from "effect"
import { eventColumns } from "#streams/analytics/EventColumns.ts"
import { dayMillis } from "#streams/analytics/EventTime.ts"
import { siteDayOf, type VisitorKey } from "#streams/analytics/ResidentDays.ts"
import { type OwnedVisitEvent, visitEventOf } from "#streams/analytics/VisitEvent.ts"
import type { ClickHouseService } from "#src/infra/clickhouse/ClickHouse.ts"
import type { ClickHouseFailed, ClickHouseUnavailable } from "#src/infra/clickhouse/ClickHouseFailed.ts"
import { quote, type VisitorDays } from "./VisitorDays.ts"

export type StoreError = ClickHouseUnavailable | ClickHouseFailed

/** An identity within a site. */
export type Owner = Pick<VisitorKey, "day" | "visitor">

/** Site-days in one statement; max_query_size is 256 KiB. */
const siteDaysPerStatement = 2_000

/** Events in one answer, a few megabytes of JSON. */
export const pageRows = 20_000

/** The offsets [from, to) of a log that are in `events`, with the identity that each was stored under. */
export const presentEvents = (clickhouse: ClickHouseService, logId: bigint, from: number, to: number) =>
  clickhouse
    .query<{ readonly seq: number; readonly day: number; readonly visitor: string }>(
      `SELECT seq, toUInt16(day) AS day, toString(visitor) AS visitor FROM events
      WHERE log_id = {log:UInt64} AND seq >= {from:UInt64} AND seq < {to:UInt64}`,
      { log: String(logId), from, to }
    )
    .pipe(
      Effect.map(
        (rows): ReadonlyMap<number, Owner> =>
          new Map(
            rows.map(({ day, seq, visitor }) => [Number(seq), { day: Number(day), visitor: BigInt(visitor) }])
          )
      )
    )

/** Of these site-days, the ones that have events (`<site>/<day>`). */
export const siteDaysWithEvents = (
  clickhouse: ClickHouseService,
  keys: ReadonlyArray<{ readonly site: string; readonly day: number }>
): Effect.Effect<ReadonlySet<string>, StoreError> =>
  Effect.gen(function* () {
    const found = new Set<string>()
    for (let at = 0; at < keys.length; at += siteDaysPerStatement) {
      const wanted = keys
        .slice(at, at + siteDaysPerStatement)
        .map(({ site, day }) => `(${quote(site)}, ${day})`)
      const rows = yield* clickhouse.query<{ readonly site: string; readonly day: number }>(
        `SELECT site, toUInt16(day) AS day FROM events WHERE (site, toUInt16(day)) IN (${wanted.join(", ")})
        GROUP BY site, day`
      )
      for (const row of rows) found.add(siteDayOf(row))
    }
    return found
  })

/** A row as the log had it, as far as visits need it; how late it came they do not. */
const rowColumns = eventColumns
  .map(({ name }) => name)
  .filter((name) => !name.startsWith("props_"))
  .map((name) => (name === "lag_ms" ? "toInt64(0)" : name))
  .join(", ")

interface EventRow {
  readonly log: string
  readonly seq: number
  readonly row: string
}

const order = "site, day, visitor, at_ms, log_id, seq"

/** Selects the events after one in the order of the table. The first part lets the index skip those before it. */
const behind = ({ day, site, ts, visitor }: OwnedVisitEvent, { log, seq }: EventRow): string => {
  const [ofSite, ofDay, atMillis] = [quote(site), `toDate(${day})`, ts - day * dayMillis]
  const ofVisitor = `visitor > ${visitor} OR visitor = ${visitor} AND at_ms >= ${atMillis}`
  return `(site > ${ofSite} OR site = ${ofSite} AND (day > ${ofDay} OR day = ${ofDay} AND (${ofVisitor})))
    AND (${order}) > (${ofSite}, ${ofDay}, ${visitor}, ${atMillis}, ${log}, ${seq})`
}

/**
 * All events of some visitor-days, one visitor-day after the other and each in the order of time, handed over in pages
 * so that memory stays bounded however busy an identity was (all callers that send no address are one).
 */
export const eventsOf = Effect.fnUntraced(function* <E>(
  clickhouse: ClickHouseService,
  where: VisitorDays,
  onPage: (events: ReadonlyArray<OwnedVisitEvent>) => Effect.Effect<void, E>
): Effect.fn.Return<void, StoreError | E> {
  let after = ""
  for (;;) {
    const rows = yield* clickhouse.query<EventRow>(
      `SELECT toString(log_id) AS log, seq, base64Encode(formatRow('RowBinary', ${rowColumns})) AS row
      FROM events WHERE (${where.ofEvents}) ${after} ORDER BY ${order} LIMIT ${pageRows}`
    )
    const events = rows.map(({ row }) => visitEventOf(Buffer.from(row, "base64")))
    yield* onPage(events)
    const [lastRow, last] = [rows.at(-1), events.at(-1)]
    if (lastRow === undefined || last === undefined || rows.length < pageRows) return
    after = `AND ${behind(last, lastRow)}`
  }
})
