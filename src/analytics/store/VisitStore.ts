import { createHash } from "node:crypto"
import { Effect } from "effect"
import { siteDayOf, type VisitorKey } from "#streams/analytics/ResidentDays.ts"
import { visitColumns } from "#streams/analytics/VisitColumns.ts"
import { VisitRecords } from "#streams/analytics/VisitRecord.ts"
import type { Visit } from "#streams/analytics/Visits.ts"
import type { ClickHouseService } from "#src/infra/clickhouse/ClickHouse.ts"
import type { StoreError } from "./EventStore.ts"
import type { VisitorDays } from "./VisitorDays.ts"

/** The place of a row in its visitor-day. */
export type VisitPlace = Pick<Visit, "start" | "part">

/** The digest of all columns of a stored row but the version: equal for equal rows, '' where its copy is not what it is. */
export interface StoredVisit extends VisitPlace {
  readonly digest: string
}

const withoutVersion = visitColumns.map(({ name }) => (name === "ver" ? "toUInt64(0)" : name)).join(", ")

interface DigestRow {
  readonly site: string
  readonly day_number: number
  readonly identity: string
  readonly start: number
  readonly part: number
  readonly is_long: 0 | 1
  readonly digest: string
}

export const visitorDayOf = (key: VisitorKey): string => `${siteDayOf(key)}/${key.visitor}`

export interface StoredVisits {
  readonly key: VisitorKey
  readonly rows: ReadonlyArray<StoredVisit>
}

const digestsIn = (clickhouse: ClickHouseService, table: "visits" | "long_visits", where: VisitorDays) =>
  clickhouse.query<DigestRow>(
    `SELECT site, toUInt16(day) AS day_number, toString(visitor) AS identity, start, part, visit != 0 AS is_long,
      lower(hex(MD5(formatRow('RowBinary', ${withoutVersion})))) AS digest
    FROM ${table} FINAL WHERE ${where.ofVisits}`
  )

const placeOf = ({ day_number, identity, part, site, start }: DigestRow): string =>
  `${site}/${day_number}/${identity}/${start}/${part}`

/**
 * The rows that the store has of some visitor-days, by `visitorDayOf`. A crash between `visits` and its copies leaves rows that
 * differ, which are to be written again, and copies of rows that are gone.
 */
export const storedVisits = (
  clickhouse: ClickHouseService,
  where: VisitorDays
): Effect.Effect<Map<string, StoredVisits>, StoreError> =>
  Effect.all([digestsIn(clickhouse, "visits", where), digestsIn(clickhouse, "long_visits", where)], {
    concurrency: "unbounded"
  }).pipe(
    Effect.map(([rows, copies]) => {
      const found = new Map<string, { readonly key: VisitorKey; readonly rows: Array<StoredVisit> }>()
      const add = ({ day_number, identity, part, site, start }: DigestRow, digest: string): void => {
        const key = { site, day: Number(day_number), visitor: BigInt(identity) }
        const id = visitorDayOf(key)
        const known = found.get(id)
        if (known === undefined) found.set(id, { key, rows: [{ start, part, digest }] })
        else known.rows.push({ start, part, digest })
      }
      const copied = new Map(copies.map((copy) => [placeOf(copy), copy]))
      for (const row of rows) {
        const place = placeOf(row)
        const copy = copied.get(place)
        copied.delete(place)
        const isRight = copy?.digest === (row.is_long ? row.digest : undefined)
        add(row, isRight ? row.digest : "")
      }
      for (const copy of copied.values()) add(copy, "")
      return found
    })
  )

/** The digest that a visit's row has in the store. */
export const digestOf = (key: VisitorKey, visit: Visit): string => {
  const rows = new VisitRecords(rowBytes)
  rows.add(key, visit, 0n)
  return createHash("md5").update(rows.bytes()).digest("hex")
}

/** Most visits fit. */
const rowBytes = 512

/** The highest version among the visits. */
export const highestVersion = (clickhouse: ClickHouseService) =>
  clickhouse
    .query<{ readonly ver: string }>("SELECT toString(max(ver)) AS ver FROM visits")
    .pipe(Effect.map((rows) => BigInt(rows[0]?.ver ?? 0)))
