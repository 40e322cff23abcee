import { dayMillis } from "#streams/analytics/EventTime.ts"
import type { DecodedBrowserEvent } from "#streams/analytics/BrowserDecoder.ts"
import { startOfDay } from "#streams/time/LocalTime.ts"
import { arrivalOf } from "./Arrivals.ts"
import { type Chances, zipf } from "./Chances.ts"
import { hourOf, weightOf } from "./Curves.ts"
import { goalOf } from "./Goals.ts"
import { paths } from "./Pages.ts"
import { exponential, geometric, logNormal, random, type Random, seedOf } from "./Random.ts"
import { type Visitor, visitorOf } from "./Visitors.ts"

/**
 * Made-up traffic of one site, the same for the same seed. A local day depends on the seed and its date alone, so any
 * stretch of days can be made, and none has to be kept: memory is that of one day.
 *
 * - 55 % of visits see one page and do nothing, 5 % see one page and fire an event there. The rest see 2 pages and more:
 *   2 + a geometric number, one visit in 50 many more (Pareto, at most 200). 1.8 page views a visit.
 * - Pages are drawn by Zipf. Time from one to the next is log-normal around 28 s; one gap in 3,000 ends the visit.
 * - 0.75 engage pings a page view: a third of them sends none (closed, lost), 10 % two (another tab in between).
 * - One page view in 8, of visits that are no bounce, fires a custom event, nearly all with props.
 * - So there are 3.33 events a visit: 54 % page views, 40 % engage pings, 6 % custom events.
 * - 12 % of visits are followed by another of the same visitor on the same day, 35 minutes to many hours later.
 */
export interface TrafficOptions {
  readonly seed: number
  /** public id of the site, and its domain; some visitors are on a sub-domain */
  readonly site: string
  readonly domain: string
  /** IANA name: whose days and hours busy and quiet times follow */
  readonly timeZone: string
  /** on average over a week, before growth */
  readonly visitsPerDay: number
  /** how many different paths there are */
  readonly paths: number
}

/** A browser's event, its time and its sender. Keys that the snippet leaves out are null. */
export interface TrafficEvent {
  /** epoch milliseconds */
  readonly ts: number
  readonly visitor: Visitor
  readonly beacon: DecodedBrowserEvent
}

const bounceShare = 0.55
const singlePageShare = 0.05
const longShare = 0.02
const returnShare = 0.12
const goalShare = 0.125
const thinkMedianMillis = 28_000
const thinkSigma = 1.2

/** Two digits in base 36. */
const pairs = Array.from({ length: 36 * 36 }, (_, number) => number.toString(36).padStart(2, "0"))
const pair = (next: Random): string => pairs[Math.floor(next() * pairs.length)] ?? ""

/** As the page script makes it. */
const pageViewId = (next: Random): string =>
  pair(next) + pair(next) + pair(next) + Math.floor(next() * 36).toString(36)

/** The shared part of the beacons of one visit. */
interface Visit {
  readonly visitor: Visitor
  readonly origin: string
  readonly events: Array<TrafficEvent>
}

export class Traffic {
  readonly #options: TrafficOptions
  readonly #paths: ReadonlyArray<string>
  readonly #ranks: Chances
  readonly #origins: ReadonlyArray<string>

  constructor(options: TrafficOptions) {
    this.#options = options
    this.#paths = paths(options.paths)
    this.#ranks = zipf(options.paths)
    this.#origins = ["", "www.", "shop.", "docs."].map((part) => `https://${part}${options.domain}`)
  }

  /** The local day (days since 1970-01-01) begins at this instant. */
  startOf(day: number): number {
    const date = new Date(day * dayMillis)
    return startOfDay(this.#options.timeZone, {
      year: date.getUTCFullYear(),
      month: date.getUTCMonth() + 1,
      day: date.getUTCDate()
    })
  }

  /** The visitors of a local day, in no order; of each all events, in the order of time. A visit may run into the next day. */
  *visitorsOf(day: number): Generator<ReadonlyArray<TrafficEvent>, void> {
    const { seed, visitsPerDay } = this.#options
    const next = random(seedOf(seed, day))
    const start = this.startOf(day)
    const end = this.startOf(day + 1)
    let visitsLeft = Math.round(visitsPerDay * weightOf(day))
    for (let number = 0; visitsLeft > 0; number++) {
      const visitor = visitorOf(next, day * 1_048_573 + number)
      const events: Array<TrafficEvent> = []
      let at = start + hourOf(next, day) * 3_600_000
      while (visitsLeft > 0 && at < end) {
        visitsLeft--
        const last = this.#visit(next, visitor, Math.floor(at), events)
        if (next() >= returnShare) break
        at = last + 35 * 60_000 + exponential(next, 3 * 3_600_000)
      }
      if (events.length > 0) yield events
    }
  }

  /** All events from the beginning of a local day up to an instant, in the order of time. */
  *eventsFrom(day: number, untilMillis: number): Generator<TrafficEvent, void> {
    let late: Array<TrafficEvent> = []
    for (let today = day; this.startOf(today) < untilMillis; today++) {
      const end = Math.min(this.startOf(today + 1), untilMillis)
      const events: Array<TrafficEvent> = []
      const later: Array<TrafficEvent> = []
      for (const event of late) (event.ts < end ? events : later).push(event)
      for (const visitor of this.visitorsOf(today)) {
        for (const event of visitor) (event.ts < end ? events : later).push(event)
      }
      // Of one visitor they are in order already, and a stable sort leaves them so.
      events.sort((left, right) => left.ts - right.ts)
      yield* events
      late = later
    }
  }

  /** One visit from an instant on; answers when it ended. */
  #visit(next: Random, visitor: Visitor, startMillis: number, events: Array<TrafficEvent>): number {
    const origin = this.#origins[next() < 0.82 ? 0 : 1 + Math.floor(next() * 3)] ?? ""
    const visit: Visit = { visitor, origin, events }
    const arrival = arrivalOf(next)
    const kind = next()
    const isBounce = kind < bounceShare
    const isSingle = !isBounce && kind < bounceShare + singlePageShare
    const pages =
      isBounce || isSingle ? 1 : 2 + geometric(next, 0.65) + (next() < longShare ? pareto(next) : 0)
    let { referrer } = arrival
    let at = startMillis
    for (let page = 0; page < pages; page++) {
      const url = origin + this.#path(next) + (page === 0 ? arrival.query : "")
      const stayMillis = Math.ceil(logNormal(next, thinkMedianMillis, thinkSigma))
      this.#page(next, visit, {
        url,
        referrer,
        at,
        stayMillis,
        fires: isSingle || (!isBounce && next() < goalShare)
      })
      referrer = url
      at += stayMillis
    }
    return at
  }

  #path(next: Random): string {
    return this.#paths[this.#ranks.draw(next)] ?? "/"
  }

  #page(next: Random, { events, visitor }: Visit, view: PageView): void {
    const pv = pageViewId(next)
    const { at, referrer, stayMillis, url } = view
    const s = this.#options.site
    const tz = visitor.timeZone
    events.push({
      ts: at,
      visitor,
      beacon: { s, k: "pageview", u: url, n: null, r: referrer, tz, pv, e: null, p: null }
    })
    const pings = next()
    const between = Math.ceil(stayMillis * (0.2 + 0.5 * next()))
    // Two pings: the page was hidden in between and seen again.
    if (pings < 0.1) events.push(engage(s, visitor, pv, at + between, Math.ceil(between * 0.6)))
    if (view.fires) {
      const { name, props } = goalOf(next)
      const ts = at + Math.floor(between + (stayMillis - between) * 0.5)
      events.push({
        ts,
        visitor,
        beacon: { s, k: "event", u: url, n: name, r: referrer, tz, pv: null, e: null, p: props }
      })
    }
    if (pings < 0.65)
      events.push(engage(s, visitor, pv, at + stayMillis, pings < 0.1 ? stayMillis - between : stayMillis))
  }
}

interface PageView {
  readonly url: string
  readonly referrer: string
  readonly at: number
  /** until the next page, or the end */
  readonly stayMillis: number
  /** whether a custom event is fired on it */
  readonly fires: boolean
}

const engage = (s: string, visitor: Visitor, pv: string, ts: number, e: number): TrafficEvent => ({
  ts,
  visitor,
  beacon: { s, k: "engage", u: null, n: null, r: null, tz: null, pv, e, p: null }
})

/** Further pages of the few who stay: 5 at least, 200 at most. */
const pareto = (next: Random): number => Math.min(200, Math.floor(5 / (1 - next()) ** 0.8))
