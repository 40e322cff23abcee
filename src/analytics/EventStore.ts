import { Effect } from "effect"
import { siteDayOf, type VisitorKey } from "#streams/analytics/ResidentDays.ts"
import type { EventKind } from "#streams/analytics/StoredEvent.ts"
import { attributeColumns, pack, type OwnedVisitEvent } from "#streams/analytics/VisitEvent.ts"
import type { ClickHouseService } from "#src/infra/clickhouse/ClickHouse.ts"
import type { ClickHouseFailed, ClickHouseUnavailable } from "#src/infra/clickhouse/ClickHouseFailed.ts"

export type StoreError = ClickHouseUnavailable | ClickHouseFailed

/** An event as the store has it, with its place in the log that brought it. */
export interface PlacedVisitEvent extends OwnedVisitEvent {
  readonly logId: bigint
  readonly seq: number
}

/** An identity within a site. */
export type Owner = Pick<VisitorKey, "day" | "visitor">

/** Site ids, days and visitors are spliced into statements as literals: as parameters they would not fit into a URL. */
const quote = (text: string): string => `'${text.replace(/[\\']/g, (sign) => `\\${sign}`)}'`

/** Visitor-days in one statement: 100 bytes each where every one is of another site; max_query_size is 256 KiB. */
const keysPerStatement = 2_000

/** Events in one answer, about 8 MB of JSON. */
const pageRows = 20_000

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

/** How many inserts of this log's batches, of a process that is gone, ClickHouse still works on. */
export const insertsUnderWay = (clickhouse: ClickHouseService, logId: bigint) =>
  clickhouse
    .query<{ readonly inserts: number }>(
      `SELECT count() AS inserts FROM system.processes
      WHERE query_kind = 'Insert' AND startsWith(Settings['insert_deduplication_token'], {token:String})`,
      { token: `${logId}:` }
    )
    .pipe(Effect.map((rows) => Number(rows[0]?.inserts ?? 0)))

/** Of these site-days, the ones that have events (`<site>/<day>`). */
export const siteDaysWithEvents = (
  clickhouse: ClickHouseService,
  keys: ReadonlyArray<{ readonly site: string; readonly day: number }>
): Effect.Effect<ReadonlySet<string>, StoreError> =>
  Effect.gen(function* () {
    const found = new Set<string>()
    for (let at = 0; at < keys.length; at += keysPerStatement) {
      const wanted = keys.slice(at, at + keysPerStatement).map(({ site, day }) => `(${quote(site)}, ${day})`)
      const rows = yield* clickhouse.query<{ readonly site: string; readonly day: number }>(
        `SELECT site, toUInt16(day) AS day FROM events WHERE (site, toUInt16(day)) IN (${wanted.join(", ")})
        GROUP BY site, day`
      )
      for (const row of rows) found.add(siteDayOf(row))
    }
    return found
  })

/** The highest version among the visits of the last days. */
export const highestVersion = (clickhouse: ClickHouseService) =>
  clickhouse
    .query<{ readonly ver: string }>(
      `SELECT toString(max(ver)) AS ver FROM visits WHERE day >= toDate(now('UTC')) - 8`
    )
    .pipe(Effect.map((rows) => BigInt(rows[0]?.ver ?? 0)))

interface EventRow {
  readonly site: string
  readonly day: number
  readonly visitor: string
  readonly ts: number
  readonly log_id: string
  readonly seq: number
  readonly kind: EventKind
  readonly name: string
  readonly hostname: string
  readonly path: string
  readonly pv: string
  readonly engaged_ms: number
  readonly attributes: ReadonlyArray<string>
}

const columns = `site, toUInt16(day) AS day, toString(visitor) AS visitor, toUnixTimestamp64Milli(ts) AS ts,
  toString(log_id) AS log_id, seq, kind, name, hostname, path, pv, engaged_ms,
  [${attributeColumns.map((column) => `toString(${column})`).join(", ")}] AS attributes`

const order = "events.site, events.day, events.visitor, events.ts, events.log_id, events.seq"

/**
 * All events of some visitor-days, those of one visitor-day in the order of time, handed over in pages so that memory
 * stays bounded however busy an identity was (all callers that send no address are one).
 */
export const eventsOf = Effect.fnUntraced(function* (
  clickhouse: ClickHouseService,
  keys: ReadonlyArray<VisitorKey>,
  onEvent: (event: PlacedVisitEvent) => void
): Effect.fn.Return<void, StoreError> {
  for (let at = 0; at < keys.length; at += keysPerStatement) {
    const where = conditionOf(keys.slice(at, at + keysPerStatement))
    let after = ""
    for (;;) {
      const rows = yield* clickhouse.query<EventRow>(
        `SELECT ${columns} FROM events WHERE (${where}) ${after} ORDER BY ${order} LIMIT ${pageRows}`
      )
      for (const row of rows) onEvent(placed(row))
      const last = rows.at(-1)
      if (last === undefined || rows.length < pageRows) break
      const place = `${quote(last.site)}, toDate(${last.day}), ${last.visitor}, fromUnixTimestamp64Milli(${last.ts})`
      after = `AND (${order}) > (${place}, ${last.log_id}, ${last.seq})`
    }
  }
})

/** By site-day, as the primary key begins with those. */
const conditionOf = (keys: ReadonlyArray<VisitorKey>): string => {
  const visitors = new Map<string, Array<bigint>>()
  for (const key of keys) {
    const siteDay = `events.site = ${quote(key.site)} AND events.day = toDate(${key.day})`
    const known = visitors.get(siteDay)
    if (known === undefined) visitors.set(siteDay, [key.visitor])
    else known.push(key.visitor)
  }
  return Array.from(
    visitors,
    ([siteDay, list]) => `${siteDay} AND events.visitor IN (${list.join(", ")})`
  ).join(" OR ")
}

const placed = (row: EventRow): PlacedVisitEvent => ({
  site: row.site,
  day: Number(row.day),
  visitor: BigInt(row.visitor),
  ts: Number(row.ts),
  logId: BigInt(row.log_id),
  seq: Number(row.seq),
  kind: row.kind,
  name: pack(row.name),
  hostname: pack(row.hostname),
  path: pack(row.path),
  pv: pack(row.pv),
  engagedMillis: row.engaged_ms,
  attributes: row.attributes.map(pack).join("")
})
