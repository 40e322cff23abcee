import type { StoredEvent } from "#streams/analytics/StoredEvent.ts"
import { storedEvent } from "./Events.ts"

/**
 * Random streams of events of one site, for the property that all figures are what a recount says: few visitors, who
 * come near the instants at which something begins or ends, so that buckets, days, visits and identities are cut often.
 */

const second = 1_000
const minute = 60 * second
const hour = 60 * minute
const dayMillis = 24 * hour

/** Numbers in [0, 1). */
export type Random = () => number

export const among = <Item>(random: Random, items: ReadonlyArray<Item>): Item => {
  const item = items[Math.floor(random() * items.length)]
  if (item === undefined) throw new Error("nothing to choose from")
  return item
}

const below = (random: Random, limit: number): number => Math.floor(random() * limit)

/** The values of fields: '' is unknown, and some texts mean something to LIKE, to a URL or to SQL. */
export const texts = {
  path: ["/", "/a", "/a_b", "/axb", "/a/b", "/ä", "/100%", "/it's", "/back\\slash", "/A"],
  name: ["buy", "say", "Sign up", "b_y", "ä"],
  hostname: ["example.org", "shop.example.org", "example.org", "ä.example.org"],
  source: ["", "Google", "Hacker News", "google", "o'reilly.com"],
  referrer: ["", "https://news.ycombinator.com/", "https://google.com/a_b"],
  channel: ["Direct", "Search", "Paid"],
  utmCampaign: ["", "spring", "Spring", "100% off"],
  utmMedium: ["", "cpc", "email"],
  utmTerm: ["", "shoes", "running_shoes"],
  utmContent: ["", "top", "bottom"],
  country: ["", "DE", "FR"],
  browser: ["", "Firefox", "Chrome"],
  os: ["", "macOS", "Windows"],
  device: ["", "desktop", "mobile", "tablet"]
} as const

/** Properties by name, values as text; '' is a value like others. */
export const props: Readonly<Record<string, ReadonlyArray<string>>> = {
  plan: ["free", "pro", ""],
  price: ["9.5", "10", "true"],
  "it's": ["odd", "ä"]
}

const attributesFrom = (random: Random): Partial<StoredEvent> => ({
  hostname: among(random, texts.hostname),
  source: among(random, texts.source),
  referrer: among(random, texts.referrer),
  channel: among(random, texts.channel),
  utmCampaign: among(random, texts.utmCampaign),
  utmMedium: among(random, texts.utmMedium),
  utmTerm: among(random, texts.utmTerm),
  utmContent: among(random, texts.utmContent),
  country: among(random, texts.country),
  browser: among(random, texts.browser),
  os: among(random, texts.os),
  device: among(random, texts.device)
})

const propsFrom = (random: Random): Partial<StoredEvent> => {
  if (random() < 0.6) return {}
  const propsKeys = Object.keys(props).filter(() => random() < 0.5)
  return { propsKeys, propsValues: propsKeys.map((name) => among(random, props[name] ?? [""])) }
}

/** From one page view or event to the next: within a visit, at its very limit, or beyond. */
const gapFrom = (random: Random): number => {
  const kind = random()
  if (kind < 0.1) return 0
  if (kind < 0.4) return below(random, 5 * second)
  if (kind < 0.8) return below(random, 25 * minute)
  if (kind < 0.9) return 30 * minute + among(random, [-1, 0, 1, second])
  return 30 * minute + below(random, 60 * minute)
}

const identity = (ts: number, visitor: bigint): Pick<StoredEvent, "ts" | "received" | "day" | "visitor"> => ({
  ts,
  received: ts,
  day: Math.floor(ts / dayMillis),
  visitor
})

/** Most page views have an id of their own; some have none, some that of the one before. */
const idFrom = (
  random: Random,
  before: StoredEvent | undefined,
  day: number,
  nextId: () => string
): string => {
  const kind = random()
  if (kind < 0.2) return ""
  return kind < 0.25 && before?.day === day ? before.pv : nextId()
}

export interface StreamScene {
  readonly site: string
  readonly nowMillis: number
  /** near which visitors come: the places where figures can go wrong */
  readonly edges: ReadonlyArray<number>
}

interface Steps {
  readonly count: number
  readonly gap: () => number
}

/** One person clicking about from an instant on, over any midnight, with pings for the pages they look at. */
const journey = (
  random: Random,
  { nowMillis, site }: StreamScene,
  startMillis: number,
  { count, gap }: Steps,
  nextId: () => string
): ReadonlyArray<StoredEvent> => {
  const visitor = BigInt(1 + below(random, 7))
  const found: Array<StoredEvent> = []
  const usual = attributesFrom(random)
  const onlyEvents = random() < 0.1
  let view: StoredEvent | undefined
  let ts = startMillis
  for (let step = 0; step < count; step++, ts += gap()) {
    const fields = { site, ...identity(ts, visitor) }
    const kind = random()
    if (kind < 0.25 && view !== undefined) {
      const engagedMillis = below(random, 20 * minute)
      const sender = random() < 0.05 ? identity(ts, visitor + 100n) : fields
      found.push(storedEvent({ ...sender, site, kind: "engage", pv: view.pv, engagedMillis }))
    } else {
      const isEvent = onlyEvents || kind < 0.45
      const event = storedEvent({
        ...fields,
        ...(random() < 0.8 ? usual : attributesFrom(random)),
        ...propsFrom(random),
        kind: isEvent ? "event" : "pageview",
        name: isEvent ? among(random, texts.name) : "",
        path: among(random, texts.path),
        pv: isEvent ? "" : idFrom(random, view, fields.day, nextId)
      })
      found.push(event)
      if (event.pv !== "") view = event
    }
  }
  return found.filter((event) => event.ts <= nowMillis)
}

/** At the edge itself, a millisecond or a second beside it, or up to an hour and a half away. */
const near = (random: Random, edge: number): number =>
  random() < 0.4
    ? edge + among(random, [-second, -1, 0, 1, 999, second])
    : edge - 90 * minute + below(random, 150 * minute)

/** The events of a site in the order in which they happened. */
export const eventsFrom = (random: Random, scene: StreamScene): ReadonlyArray<StoredEvent> => {
  let ids = 0
  const nextId = (): string => `pv${++ids}`
  const found: Array<StoredEvent> = []
  for (const edge of scene.edges) {
    const journeys = 2 + below(random, 4)
    for (let index = 0; index < journeys; index++) {
      // Some stay for hours: their visits lie in several rows.
      const stays = random() < 0.2
      const count = 1 + below(random, stays ? 30 : 9)
      const steps = { count, gap: () => (stays ? below(random, 20 * minute) : gapFrom(random)) }
      found.push(...journey(random, scene, near(random, edge), steps, nextId))
    }
  }
  // A visit of more than 1,000 page views and events lies in several rows, on both sides of an edge.
  if (random() < 0.25) {
    const count = 1_200 + below(random, 2_000)
    const start = among(random, scene.edges) - below(random, count) * second
    found.push(...journey(random, scene, start, { count, gap: () => below(random, 2 * second) }, nextId))
  }
  return found.toSorted((left, right) => left.ts - right.ts)
}

/**
 * The same events in an order in which they may arrive: some hours late. A ping for a page view of another identity is
 * known only when that has arrived, so those come last.
 */
export const arrivalsOf = (
  random: Random,
  events: ReadonlyArray<StoredEvent>
): ReadonlyArray<StoredEvent> => {
  const views = new Map(events.filter(({ kind }) => kind === "pageview").map((event) => [event.pv, event]))
  const isStrange = ({ day, kind, pv, visitor }: StoredEvent): boolean =>
    kind === "engage" && (views.get(pv)?.day !== day || views.get(pv)?.visitor !== visitor)
  const placed = events.map((event, index) => {
    const late = random() < 0.25 ? below(random, events.length) : 0
    return { event, place: isStrange(event) ? Number.POSITIVE_INFINITY : index + late }
  })
  return placed
    .toSorted((left, right) => left.place - right.place || left.event.ts - right.event.ts)
    .map(({ event }) => event)
}
