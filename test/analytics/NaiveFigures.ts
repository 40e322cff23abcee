import type { StoredEvent } from "#streams/analytics/StoredEvent.ts"
import { naiveVisits, type NaiveVisit } from "./NaiveVisits.ts"

/**
 * Every figure of stats and breakdowns by its definition, counted one by one over the events of a site. It is slow,
 * shares nothing with the queries, and says what they have to answer.
 * Source: contract/analytics#summary, contract/analytics#filters, contract/analytics#breakdowns.
 */

/** A stretch of time, `[fromMillis, toMillis)`, whole seconds. */
export interface Stretch {
  readonly fromMillis: number
  readonly toMillis: number
}

/** The filters of a question by name, and the texts they select. */
export type NaiveFilters = Readonly<Record<string, string>>

export interface NaiveRow {
  readonly value: string | null
  readonly visitors: number
  readonly pageviews: number
  readonly count: number
}

const dayMillis = 86_400_000

// Visits

export type Visit = NaiveVisit<StoredEvent>

/** Somebody for one UTC day. */
const identityOf = ({ day, visitor }: StoredEvent): string => `${day}/${visitor}`

/**
 * An engage ping belongs to the visitor that viewed its page, within 24 hours: after midnight, or from another address,
 * its sender has another identity.
 */
const ownerOf = (event: StoredEvent, events: ReadonlyArray<StoredEvent>): string => {
  if (event.kind !== "engage") return identityOf(event)
  const views = events.filter(
    ({ kind, pv, ts }) =>
      kind === "pageview" && pv === event.pv && pv !== "" && ts <= event.ts && event.ts - ts <= dayMillis
  )
  const latest = views.toSorted((left, right) => left.ts - right.ts).at(-1)
  return identityOf(latest ?? event)
}

/** The visits of a site from its events in the order of their arrival. */
export const visitsOf = (events: ReadonlyArray<StoredEvent>): ReadonlyArray<Visit> =>
  Array.from(Map.groupBy(events, (event) => ownerOf(event, events)).values()).flatMap((own) =>
    naiveVisits(own, "")
  )

const firstOf = (visit: Visit): StoredEvent => {
  const [first] = visit.events
  if (first === undefined) throw new Error("a visit without events")
  return first
}

const viewsOf = (visit: Visit): ReadonlyArray<StoredEvent> =>
  visit.events.filter(({ kind }) => kind === "pageview")

// Filters

/** A visit's attributes are those of its first event; '' is unknown. */
const attributes: Readonly<Record<string, (first: StoredEvent) => string>> = {
  source: (first) => first.source,
  referrer: (first) => first.referrer,
  channel: (first) => first.channel,
  campaign: (first) => first.utmCampaign,
  medium: (first) => first.utmMedium,
  term: (first) => first.utmTerm,
  content: (first) => first.utmContent,
  country: (first) => first.country,
  browser: (first) => first.browser,
  os: (first) => first.os,
  device: (first) => first.device,
  hostname: (first) => first.hostname
}

/** Entry and exit: where its page views begin and end; a visit of custom events alone has neither. */
const entryOf = (visit: Visit): string | undefined => viewsOf(visit).at(0)?.path
const exitOf = (visit: Visit): string | undefined => viewsOf(visit).at(-1)?.path

/** `*` is any text, everything else is itself. */
const matches = (glob: string, text: string): boolean => {
  const [start = "", ...others] = glob.split("*")
  const end = others.pop()
  if (end === undefined) return text === start
  if (!text.startsWith(start) || !text.endsWith(end)) return false
  let at = start.length
  for (const part of others) {
    const found = text.indexOf(part, at)
    if (found < 0) return false
    at = found + part.length
  }
  return at + end.length <= text.length
}

/** `(none)` selects visits that have nothing of the kind. */
const selects = (filter: string, texts: ReadonlyArray<string>): boolean =>
  filter === "(none)" ? texts.length === 0 : texts.some((text) => matches(filter, text))

const present = (text: string | undefined): ReadonlyArray<string> => (text === undefined ? [] : [text])

const passes = (visit: Visit, name: string, filter: string): boolean => {
  if (name === "page")
    return selects(
      filter,
      viewsOf(visit).map(({ path }) => path)
    )
  if (name === "entry") return selects(filter, present(entryOf(visit)))
  if (name === "exit") return selects(filter, present(exitOf(visit)))
  if (name === "event") {
    const fired = visit.events.filter(({ kind }) => kind === "event")
    return selects(
      filter,
      fired.map((event) => event.name)
    )
  }
  const attribute = attributes[name]
  if (attribute === undefined) throw new Error(`no filter is called ${name}`)
  const wanted = name === "country" ? filter.toUpperCase() : filter
  const has = attribute(firstOf(visit))
  if (filter === "(none)") return has === ""
  return name === "source" ? has.toLowerCase() === wanted.toLowerCase() : has === wanted
}

/** Filters hold together, on whole visits. */
const kept = (visits: ReadonlyArray<Visit>, filters: NaiveFilters): ReadonlyArray<Visit> =>
  visits.filter((visit) => Object.entries(filters).every(([name, filter]) => passes(visit, name, filter)))

// The visits and events that count within a stretch of time

const isWithin = ({ fromMillis, toMillis }: Stretch, { ts }: StoredEvent): boolean =>
  ts >= fromMillis && ts < toMillis

/** The `page` filter holds on page views and events besides: those of other pages are not counted. */
const isOfPage = (filters: NaiveFilters, { path }: StoredEvent): boolean =>
  filters["page"] === undefined || filters["page"] === "(none)" || matches(filters["page"], path)

const hitsOf = (visit: Visit, stretch: Stretch, filters: NaiveFilters): ReadonlyArray<StoredEvent> =>
  visit.events.filter((event) => isWithin(stretch, event) && isOfPage(filters, event))

/** A visit counts where it started. */
const started = (visit: Visit, stretch: Stretch): boolean => isWithin(stretch, firstOf(visit))

/** The visitors present: with `page`, those that viewed that page. */
const activeIn = (hits: ReadonlyArray<StoredEvent>, filters: NaiveFilters): ReadonlyArray<string> => {
  const isOnePage = filters["page"] !== undefined && filters["page"] !== "(none)"
  return hits.filter(({ kind }) => !isOnePage || kind === "pageview").map(identityOf)
}

const isPageView = ({ kind }: StoredEvent): boolean => kind === "pageview"

// Figures

/** All 0 without visits. */
const rounded = (part: number, visits: number, decimals: number): number =>
  visits === 0 ? 0 : Math.round((part / visits) * 10 ** decimals) / 10 ** decimals

export const naiveSummary = (all: ReadonlyArray<Visit>, stretch: Stretch, filters: NaiveFilters) => {
  const visits = kept(all, filters)
  const hits = visits.flatMap((visit) => hitsOf(visit, stretch, filters))
  const startedHere = visits.filter((visit) => started(visit, stretch))
  const bounces = startedHere.filter(({ events }) => events.length === 1 && events.every(isPageView))
  const engagedMillis = startedHere.reduce((sum, visit) => sum + visit.engagedMillis, 0)
  const pageviews = hits.filter(isPageView).length
  return {
    visitors: new Set(activeIn(hits, filters)).size,
    visits: startedHere.length,
    pageviews,
    events: hits.length - pageviews,
    viewsPerVisit: rounded(pageviews, startedHere.length, 2),
    bounceRate: rounded(bounces.length * 100, startedHere.length, 2),
    avgDurationSec: rounded(engagedMillis / 1000, startedHere.length, 1)
  }
}

interface Tally {
  readonly visitors: Set<string>
  pageviews: number
  count: number
}

/** The value under which a page view or event itself is counted; undefined: nowhere. */
const valueOfHit = (dimension: string, event: StoredEvent): string | undefined => {
  if (dimension === "page") return isPageView(event) ? event.path : undefined
  if (dimension === "event") return isPageView(event) ? undefined : event.name
  return event.propsValues[event.propsKeys.indexOf(dimension.slice("prop:".length))]
}

/** The value under which a whole visit is counted; '' is unknown. */
const valueOfVisit = (dimension: string, visit: Visit): string =>
  (dimension === "entry"
    ? entryOf(visit)
    : dimension === "exit"
      ? exitOf(visit)
      : attributes[dimension]?.(firstOf(visit))) ?? ""

/** By visitors, then count, both from the top; then by the bytes of the value, unknown last. */
const byRank = (left: NaiveRow, right: NaiveRow): number =>
  right.visitors - left.visitors ||
  right.count - left.count ||
  Number(left.value === null) - Number(right.value === null) ||
  Buffer.compare(Buffer.from(left.value ?? ""), Buffer.from(right.value ?? ""))

/** All rows of a breakdown, ranked. */
export const naiveBreakdown = (
  all: ReadonlyArray<Visit>,
  stretch: Stretch,
  filters: NaiveFilters,
  dimension: string
): ReadonlyArray<NaiveRow> => {
  const tallies = new Map<string | null, Tally>()
  const tallyOf = (value: string | null): Tally => {
    const tally = tallies.get(value) ?? { visitors: new Set(), pageviews: 0, count: 0 }
    tallies.set(value, tally)
    return tally
  }
  const isOfHits = dimension === "page" || dimension === "event" || dimension.startsWith("prop:")
  for (const visit of kept(all, filters)) {
    const hits = hitsOf(visit, stretch, filters)
    if (isOfHits) {
      for (const hit of hits) {
        const value = valueOfHit(dimension, hit)
        if (value === undefined) continue
        const tally = tallyOf(value || null)
        tally.visitors.add(identityOf(hit))
        tally.pageviews += isPageView(hit) ? 1 : 0
        tally.count++
      }
    } else {
      const tally = tallyOf(valueOfVisit(dimension, visit) || null)
      for (const identity of activeIn(hits, filters)) tally.visitors.add(identity)
      tally.pageviews += hits.filter(isPageView).length
      tally.count += started(visit, stretch) ? 1 : 0
    }
  }
  return Array.from(tallies, ([value, tally]) => ({ value, ...tally, visitors: tally.visitors.size }))
    .filter(({ count, pageviews, visitors }) => visitors + pageviews + count > 0)
    .toSorted(byRank)
}
