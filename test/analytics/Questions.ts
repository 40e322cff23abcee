import { among, props, texts, type Random } from "./EventStreams.ts"
import type { NaiveFilters } from "./NaiveFigures.ts"
import type { Dates } from "./NaivePeriods.ts"

/** All questions about a site: every filter with its selections, every dimension, every period. */

export interface AskedPeriod {
  readonly period: string
  readonly custom?: Dates
}

export interface Question extends AskedPeriod {
  readonly filters: NaiveFilters
}

const globs = ["*", "/a*", "*b", "/*_*", "*b*", "/1*%", "*\\*", "*'*", "/*(none)*", "/a"]

/** Filters and the texts to try: some occur, some do not, some differ in case only. */
const filterTexts: Readonly<Record<string, ReadonlyArray<string>>> = {
  page: [...texts.path, ...globs],
  entry: [...texts.path, ...globs],
  exit: [...texts.path, ...globs],
  event: [...texts.name, "*", "*ay", "b_y", "b*y", "S*", "ä*"],
  hostname: texts.hostname,
  source: texts.source,
  referrer: texts.referrer,
  channel: texts.channel,
  campaign: texts.utmCampaign,
  medium: texts.utmMedium,
  term: texts.utmTerm,
  content: texts.utmContent,
  country: [...texts.country, "de"],
  browser: [...texts.browser, "*"],
  os: texts.os,
  device: texts.device
}

/** The selections of a filter; '' cannot be one. */
const selections = (name: string): ReadonlyArray<string> => [
  "(none)",
  "(none)",
  ...(filterTexts[name] ?? []).filter((text) => text !== ""),
  // Devices are three, and countries two letters.
  ...(name === "device" || name === "country" ? [] : ["/nothing of the kind"])
]

export const dimensions: ReadonlyArray<string> = [
  ...Object.keys(filterTexts),
  ...Object.keys(props).map((name) => `prop:${name}`),
  "prop:unheard of"
]

/** Each filter alone; those that take `*` with several texts. */
export const filtersAlone = (random: Random): ReadonlyArray<NaiveFilters> =>
  [...Object.keys(filterTexts), "page", "page", "entry", "exit", "event"].map((name) => ({
    [name]: among(random, selections(name))
  }))

/** Two filters together, often `page`, which holds in a way of its own. */
export const filtersTogether = (random: Random): NaiveFilters => {
  const names = Object.keys(filterTexts)
  const chosen = [random() < 0.5 ? "page" : among(random, names), among(random, names)]
  return Object.fromEntries(chosen.map((name) => [name, among(random, selections(name))]))
}

const dateBefore = (nowMillis: number, days: number): string =>
  new Date(nowMillis - days * 86_400_000).toISOString().slice(0, 10)

const upTo = (random: Random, limit: number): number => Math.floor(random() * (limit + 1))

/** A custom period of hours, days or months, at times one that reaches into the future. */
const datesFrom = (random: Random, nowMillis: number): Dates => {
  const length = among(random, [0, 0, 1, 6, upTo(random, 40), 91, 92, upTo(random, 400)])
  const last = upTo(random, 60) - 3
  // Wholly in the future would be a fault: in every zone, two days ago has begun.
  const first = Math.max(last + length, 2)
  return { from: dateBefore(nowMillis, first), to: dateBefore(nowMillis, last) }
}

/** All that have a name, and two that have not. */
export const periodsFrom = (random: Random, nowMillis: number): ReadonlyArray<AskedPeriod> => [
  ...["today", "24h", "7d", "30d", "90d", "12mo"].map((period) => ({ period })),
  { period: "custom", custom: datesFrom(random, nowMillis) },
  { period: "custom", custom: datesFrom(random, nowMillis) }
]
