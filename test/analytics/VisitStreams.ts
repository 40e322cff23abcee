import type { StoredEvent } from "#streams/analytics/StoredEvent.ts"
import type { SeededRandom } from "#test/simulation/Seed.ts"
import { storedEvent } from "./Events.ts"

const second = 1_000
const minute = 60 * second
const hour = 60 * minute
const dayMillis = 24 * hour

/** Midnight of 2026-11-21, UTC: most streams run over it. */
const midnight = Date.UTC(2026, 10, 21)

const among = <Item>(random: SeededRandom, items: readonly [Item, ...ReadonlyArray<Item>]): Item =>
  items[random.below(items.length)] ?? items[0]

/** Somebody's identity of a day, from all over the 64 bits. */
const visitorOf = (person: number, day: number): bigint =>
  BigInt.asUintN(64, BigInt(person * 100_000 + day) * 0x9e37_79b9_7f4a_7c15n)

const dayOf = (ts: number): number => Math.floor(ts / dayMillis)

/** From one arrival to the next: at once, within a visit, at its very limit, beyond it, about a day. */
const gapFrom = (random: SeededRandom, isSteady: boolean): number => {
  if (isSteady) return random.below(12 * minute)
  const kind = random.next()
  if (kind < 0.15) return 0
  if (kind < 0.45) return random.below(5 * second)
  if (kind < 0.8) return random.below(25 * minute)
  if (kind < 0.9) return 30 * minute + among(random, [-1, 0, 1, second])
  if (kind < 0.98) return 30 * minute + random.below(hour)
  return dayMillis + among(random, [-hour, -1, 0, 1, hour])
}

/** How long ago an arriving event happened: mostly now, sometimes up to seven days. */
const latenessFrom = (random: SeededRandom): number => {
  const kind = random.next()
  if (kind < 0.75) return 0
  if (kind < 0.85) return random.below(40 * minute)
  return kind < 0.95 ? random.below(5 * hour) : random.below(7 * dayMillis)
}

const attributesFrom = (random: SeededRandom): Partial<StoredEvent> => {
  const text = (): string => among(random, ["", "", "a", "ä€", "x".repeat(130)])
  return {
    hostname: among(random, ["example.org", "www.example.org", ""]),
    referrer: text(),
    source: text(),
    channel: text(),
    utmSource: text(),
    utmMedium: text(),
    utmCampaign: text(),
    utmTerm: text(),
    utmContent: text(),
    country: among(random, ["", "DE", "FR"]),
    browser: text(),
    browserVersion: text(),
    os: text(),
    device: text()
  }
}

/**
 * Events of one site in the order of their arrival: few people who come often and many who come once; late ones and
 * repeated ones, several in the same millisecond; page views with ids, and pings about them, from their visitor or
 * somebody else, before them, long after them, or about none; sometimes a visit of more than a thousand events.
 */
export class VisitStream {
  readonly events: Array<StoredEvent> = []
  readonly #random: SeededRandom
  readonly #site: string
  readonly #people: number
  /** one or two people who stay for hours */
  readonly #isSteady: boolean
  #now: number
  #strangers = 100
  /** ids of page views so far and of some to come, each with the person whose it is */
  readonly #ids: Array<{ readonly pv: string; readonly person: number }> = []

  constructor(random: SeededRandom, site: string) {
    this.#random = random
    this.#site = site
    this.#isSteady = random.chance(0.3)
    this.#people = 1 + random.below(this.#isSteady ? 2 : 5)
    this.#now = midnight - random.below(3 * hour)
    for (let person = 0; person < this.#people; person++) this.#ids.push({ pv: `later${person}`, person })
    const steps = 1 + random.below(80)
    for (let step = 0; step < steps; step++) this.#step()
    if (random.chance(0.15)) this.#burst()
    for (let step = 0; step < steps / 4; step++) this.#step()
  }

  #step(): void {
    const random = this.#random
    this.#now += gapFrom(random, this.#isSteady)
    const last = this.events.at(-1)
    if (last !== undefined && random.chance(0.08)) {
      this.events.push({ ...last, received: this.#now })
      return
    }
    const person = random.chance(0.15) ? this.#strangers++ : random.below(this.#people)
    const isSimultaneous = last !== undefined && random.chance(0.15)
    const ts = isSimultaneous ? last.ts : this.#now - latenessFrom(random)
    if (random.chance(0.35)) this.#ping(ts)
    else this.#hit(person, ts)
  }

  #hit(person: number, ts: number): void {
    const random = this.#random
    const isView = random.chance(0.75)
    const pv = isView ? this.#idFor(person) : ""
    this.#push(person, ts, {
      ...attributesFrom(random),
      kind: isView ? "pageview" : "event",
      name: isView ? "" : among(random, ["buy", "say", "grüßen"]),
      path: among(random, ["/", "/a", "/ä", `/${"p".repeat(200)}`]),
      pv
    })
  }

  /** Mostly a new id, sometimes none, or one that this person's views have had already. */
  #idFor(person: number): string {
    const random = this.#random
    if (random.chance(0.2)) return ""
    const own = this.#ids.filter((id) => id.person === person)
    if (random.chance(0.25) && own.length > 0) return own[random.below(own.length)]?.pv ?? ""
    const pv = `pv${this.#ids.length}`
    this.#ids.push({ pv, person })
    return pv
  }

  #ping(ts: number): void {
    const random = this.#random
    const known = this.#ids[Math.max(0, this.#ids.length - 1 - random.below(6))]
    const pv = random.chance(0.1) ? among(random, ["", "unknown"]) : (known?.pv ?? "")
    // Over midnight the same person is somebody else too: the identity is of the ping's day.
    const person = random.chance(0.7) ? (known?.person ?? 0) : random.below(this.#people)
    this.#push(person, ts, { kind: "engage", pv, engagedMillis: random.below(40 * minute) })
  }

  /** More events than one row takes, of one person, closely one after the other. */
  #burst(): void {
    const random = this.#random
    const person = random.below(this.#people)
    const everyMillis = random.below(200)
    for (let left = 900 + random.below(1_400); left > 0; left--) {
      this.#now += everyMillis
      if (random.chance(0.05)) this.#ping(this.#now)
      else this.#hit(person, this.#now)
    }
  }

  #push(person: number, ts: number, fields: Partial<StoredEvent>): void {
    const day = dayOf(ts)
    const visitor = visitorOf(person, day)
    this.events.push(storedEvent({ ...fields, site: this.#site, ts, received: this.#now, day, visitor }))
  }
}
