import { Effect } from "effect"
import { dayOf } from "#streams/analytics/EventTime.ts"
import { unpack, type OwnedVisitEvent } from "#streams/analytics/VisitEvent.ts"
import { engageWithinMillis } from "#streams/analytics/Visits.ts"
import type { ClickHouseService } from "#src/infra/clickhouse/ClickHouse.ts"
import type { Owner, StoreError } from "./EventStore.ts"

/** Ids of one statement, as hexadecimal literals of at most 200 digits or so. */
const idsPerStatement = 500

interface PageView extends Owner {
  readonly ts: number
}

/** By the site and the packed id of the page view. */
const idOf = (event: OwnedVisitEvent): string => `${event.site} ${event.pv}`

/**
 * The owners of the page views that strangers' engage pings are about: of the batch, and of the store's last 24 hours.
 * A ping keeps its own identity if that has such a page view, or if no visitor has, and then it counts nowhere.
 */
export const pageViewOwners = Effect.fnUntraced(function* (
  clickhouse: ClickHouseService,
  strangers: ReadonlyArray<OwnedVisitEvent>,
  batch: ReadonlyArray<OwnedVisitEvent>
): Effect.fn.Return<ReadonlyMap<OwnedVisitEvent, Owner>, StoreError> {
  const owners = new Map<OwnedVisitEvent, Owner>()
  if (strangers.length === 0) return owners
  const views = new Map<string, Array<PageView>>()
  const add = (id: string, view: PageView): void => {
    const known = views.get(id)
    if (known === undefined) views.set(id, [view])
    else known.push(view)
  }
  for (const event of batch) if (event.kind === "pageview") add(idOf(event), event)
  for (const [site, pings] of Map.groupBy(strangers, (ping) => ping.site)) {
    for (const [id, view] of yield* storedViews(clickhouse, site, pings)) add(id, view)
  }
  for (const ping of strangers) {
    const found = views.get(idOf(ping))
    if (found?.some(({ day, visitor }) => day === ping.day && visitor === ping.visitor) === true) continue
    const latest = found
      ?.filter(({ ts }) => ts <= ping.ts && ping.ts - ts <= engageWithinMillis)
      .toSorted((left, right) => left.ts - right.ts)
      .at(-1)
    if (latest !== undefined) owners.set(ping, { day: latest.day, visitor: latest.visitor })
  }
  return owners
})

const storedViews = Effect.fnUntraced(function* (
  clickhouse: ClickHouseService,
  site: string,
  pings: ReadonlyArray<OwnedVisitEvent>
): Effect.fn.Return<ReadonlyArray<readonly [string, PageView]>, StoreError> {
  const found: Array<readonly [string, PageView]> = []
  const days = new Set(pings.flatMap(({ ts }) => [dayOf(ts) - 1, dayOf(ts)]))
  const byText = new Map(pings.map((ping) => [unpack(ping.pv), idOf(ping)]))
  const texts = [...byText.keys()]
  for (let at = 0; at < texts.length; at += idsPerStatement) {
    const ids = texts
      .slice(at, at + idsPerStatement)
      .map((text) => `unhex('${Buffer.from(text).toString("hex")}')`)
    const rows = yield* clickhouse.query<{
      readonly pv: string
      readonly day: number
      readonly visitor: string
      readonly ts: number
    }>(
      `SELECT pv, toUInt16(day) AS day, toString(visitor) AS visitor, toUnixTimestamp64Milli(ts) AS ts FROM events
      WHERE site = {site:String} AND toUInt16(events.day) IN (${[...days].join(", ")}) AND kind = 'pageview'
        AND pv IN (${ids.join(", ")})`,
      { site }
    )
    for (const row of rows) {
      const id = byText.get(row.pv)
      const view = { day: Number(row.day), visitor: BigInt(row.visitor), ts: Number(row.ts) }
      if (id !== undefined) found.push([id, view])
    }
  }
  return found
})
