import fc from "fast-check"
import { attributeColumns, pack, type VisitEvent } from "#streams/analytics/VisitEvent.ts"
import { inOrder, type Visit, VisitorDay } from "#streams/analytics/Visits.ts"

/** Midnight of 2026-11-21, UTC. */
export const midnight = Date.UTC(2026, 10, 21)

const minute = 60_000

/** A page view at `minutes` after midnight, unless told otherwise. */
export const visitEvent = (
  minutes: number,
  fields: Partial<Omit<VisitEvent, "ts" | "attributes">> & { readonly source?: string } = {}
): VisitEvent => {
  const { source = "", ...rest } = fields
  return {
    kind: "pageview",
    name: pack(""),
    hostname: pack("example.org"),
    path: pack("/"),
    pv: pack(""),
    engagedMillis: 0,
    ...rest,
    ts: midnight + Math.round(minutes * minute),
    attributes: attributeColumns.map((column) => pack(column === "source" ? source : "")).join("")
  }
}

const small = fc.integer({ min: 0, max: 4 })

/** Events of one visitor-day, dense enough that gaps, repeated ids and pings for known page views are all common. */
export const visitEvents: fc.Arbitrary<ReadonlyArray<VisitEvent>> = fc.array(
  fc
    .record({
      kind: fc.constantFrom("pageview", "pageview", "event", "engage"),
      minutes: fc.oneof(fc.integer({ min: 0, max: 200 }), fc.double({ min: 0, max: 1439, noNaN: true })),
      path: small,
      pv: small,
      name: small,
      source: small,
      engagedMillis: fc.integer({ min: 0, max: 40 * minute })
    })
    .map(({ kind, minutes, path, pv, name, source, engagedMillis }) =>
      visitEvent(minutes, {
        kind,
        path: pack(`/${path}`),
        pv: pack(kind === "event" || pv === 0 ? "" : `pv${pv}`),
        name: pack(kind === "event" ? `goal${name}` : ""),
        source: source === 0 ? "" : `source${source}`,
        engagedMillis: kind === "engage" ? engagedMillis : 0
      })
    ),
  { maxLength: 40 }
)

/** The visits of a visitor-day from all of its events, which may come in any order. */
export const sessionise = (events: ReadonlyArray<VisitEvent>): ReadonlyArray<Visit> => {
  const day = new VisitorDay()
  for (const event of inOrder(events)) day.push(event)
  return day.take()
}
