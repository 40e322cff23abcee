import { Choice, zipf } from "./Chances.ts"
import { random, type Random } from "./Random.ts"

/** The beginning of a visit: time, source, page. */
export interface Arrival {
  /** `document.referrer`: '' for none */
  readonly referrer: string
  /** the query of the landing page, with its `?`; '' for none */
  readonly query: string
}

const listed = <Value>(values: ReadonlyArray<Value>, exponent: number) => {
  const ranks = zipf(values.length, exponent)
  return (next: Random): Value => {
    const value = values[ranks.draw(next)]
    if (value === undefined) throw new Error("There is nothing to draw from")
    return value
  }
}

const base36 = (next: Random, length: number): string =>
  Array.from({ length }, () => Math.floor(next() * 36).toString(36)).join("")

/** The part independent of the traffic's own seed: the places that link to it. */
const fixed = random(36)

const engines = new Choice<string>([
  ["https://www.google.com/", 62],
  ["https://www.google.de/", 14],
  ["https://www.google.co.uk/", 4],
  ["https://www.google.fr/", 2],
  ["https://www.bing.com/", 8],
  ["https://duckduckgo.com/", 5],
  ["https://www.ecosia.org/", 1.5],
  ["https://search.yahoo.com/", 1],
  ["https://yandex.ru/", 0.8],
  ["https://search.brave.com/", 0.7],
  ["https://www.qwant.com/", 0.4],
  ["https://www.startpage.com/", 0.4],
  ["https://kagi.com/", 0.2]
])

/** Links of X carry a code, of which some are shared by thousands. */
const shortLink = listed(
  Array.from({ length: 2_000 }, () => `https://t.co/${base36(fixed, 10)}`),
  1.1
)

const thread = listed(
  Array.from({ length: 500 }, () => `https://old.reddit.com/r/webdev/comments/${base36(fixed, 7)}/`),
  1.1
)

const places = new Choice<string | ((next: Random) => string)>([
  [shortLink, 20],
  [thread, 3],
  ["https://www.reddit.com/", 17],
  ["https://l.facebook.com/", 9],
  ["https://m.facebook.com/", 6],
  ["https://www.facebook.com/", 3],
  ["https://l.instagram.com/", 7],
  ["https://www.linkedin.com/", 8],
  ["https://news.ycombinator.com/", 9],
  ["https://www.youtube.com/", 6],
  ["https://www.pinterest.com/", 4],
  ["https://bsky.app/", 3],
  ["https://mastodon.social/", 2],
  ["https://lobste.rs/", 1],
  ["android-app://com.linkedin.android/", 2]
])

const assistants = new Choice<string>([
  ["https://chatgpt.com/", 70],
  ["https://www.perplexity.ai/", 14],
  ["https://gemini.google.com/", 8],
  ["https://claude.ai/", 6],
  ["https://copilot.microsoft.com/", 2]
])

const topLevels = ["com", "de", "net", "org", "io", "blog", "co.uk", "fr"]
const names = [
  "linux",
  "shop",
  "garden",
  "home",
  "code",
  "travel",
  "design",
  "daily",
  "north",
  "pixel",
  "green"
]
const pick = (values: ReadonlyArray<string>): string => values[Math.floor(fixed() * values.length)] ?? ""

/** Small sites: most browsers tell the origin only, some sites have the whole path told. */
const sites = listed(
  Array.from(
    { length: 3_000 },
    (_, rank) => `https://${pick(names)}-${pick(names)}${rank}.${pick(topLevels)}/`
  ),
  1
)
const withPath = listed(
  Array.from(
    { length: 6_000 },
    (_, rank) =>
      `https://www.${pick(names)}${pick(names)}${rank}.${pick(topLevels)}/` +
      `${2015 + Math.floor(fixed() * 12)}/${pick(names)}-${pick(names)}-${pick(names)}`
  ),
  1
)

const letters = Array.from(
  { length: 60 },
  (_, week) => `?utm_source=newsletter&utm_medium=email&utm_campaign=week-${60 - week}`
)
const letter = listed(letters, 1.3)

const advertisements = Array.from({ length: 120 }, (_, rank) => {
  const source = rank % 3 === 2 ? "bing" : "google"
  const campaign = `${pick(["brand", "search", "shopping", "retarget"])}-${1 + (rank % 12)}`
  const term = `${pick(names)}+${pick(names)}`
  return (
    `?utm_source=${source}&utm_medium=cpc&utm_campaign=${campaign}` +
    `&utm_term=${term}&utm_content=ad${rank % 4}`
  )
})
const advertisement = listed(advertisements, 1)

const socialCampaign = listed(
  Array.from(
    { length: 12 },
    (_, rank) =>
      `?utm_source=${rank % 2 === 0 ? "linkedin" : "facebook"}&utm_medium=social&utm_campaign=autumn-${rank}`
  ),
  1
)

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
/** Every click on an advertisement has an id of its own, which ends up in the page's address. */
const clickId = (next: Random): string => {
  let id = "EAIaIQobChMI"
  for (let length = 0; length < 28; length++) id += alphabet.charAt(Math.floor(next() * 64))
  return id
}

const direct: Arrival = { referrer: "", query: "" }
const from = (referrer: string): Arrival => ({ referrer, query: "" })

/** Kinds of arrival in per cent. */
const kinds = new Choice<(next: Random) => Arrival>([
  [() => direct, 40],
  [(next) => from(engines.draw(next)), 29],
  [
    (next) => {
      const place = places.draw(next)
      return from(typeof place === "string" ? place : place(next))
    },
    11
  ],
  [(next) => from(assistants.draw(next)), 3],
  [(next) => from(sites(next)), 5],
  [(next) => from(withPath(next)), 3],
  [(next) => ({ referrer: "", query: letter(next) }), 3],
  [
    (next) => ({
      referrer: "https://www.google.com/",
      query: `${advertisement(next)}&gclid=${clickId(next)}`
    }),
    4
  ],
  [(next) => ({ referrer: "https://l.facebook.com/", query: socialCampaign(next) }), 2]
])

export const arrivalOf = (next: Random): Arrival => kinds.draw(next)(next)
