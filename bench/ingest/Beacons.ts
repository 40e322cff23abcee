import type { RequestSource } from "#bench/harness/HttpLoad.ts"
import { zipf } from "#bench/traffic/Chances.ts"
import { random, type Random } from "#bench/traffic/Random.ts"
import { userAgents } from "#bench/traffic/UserAgents.ts"

export interface BeaconOptions {
  readonly site: string
  readonly domain: string
  readonly visitors: number
  /** of the choice of visitors, pages and referrers */
  readonly seed: number
}

const sections = ["blog", "docs", "guides", "products", "changelog"]
const paths = Array.from({ length: 500 }, (_, rank) =>
  rank === 0 ? "/" : `/${sections[rank % sections.length]}/a-page-that-people-read-${rank}`
)

const ranks = zipf(paths.length)

const referrers = [
  "https://www.google.com/",
  "https://www.google.de/",
  "https://www.bing.com/",
  "https://duckduckgo.com/",
  "https://news.ycombinator.com/item?id=40000000",
  "https://t.co/abcdefg",
  "https://www.reddit.com/r/selfhosted/",
  "https://github.com/some/project",
  "https://chatgpt.com/",
  "https://a-small-blog.example.net/posts/2026/links"
]
const zones = [
  "Europe/Berlin",
  "Europe/Paris",
  "America/New_York",
  "America/Los_Angeles",
  "Asia/Tokyo",
  "UTC"
]
const campaign = "?utm_source=newsletter&utm_medium=email&utm_campaign=november"

/** Every visitor has an address of its own, and so, with its User-Agent, an identity. */
const addressOf = (visitor: number): string =>
  `${20 + (visitor >> 16)}.${(visitor >> 8) & 255}.${visitor & 255}.7`

const bodyOf = ({ domain, site }: BeaconOptions, visitor: number, next: Random): string => {
  const chance = next()
  const isNamed = next() < 0.15
  return JSON.stringify({
    pv: "00000000",
    s: site,
    k: isNamed ? "event" : "pageview",
    u: `https://${domain}${paths[ranks.draw(next)]}${chance < 0.08 ? campaign : ""}`,
    ...(chance < 0.4 ? { r: referrers[Math.floor(next() * referrers.length)] } : { r: null }),
    tz: zones[visitor % zones.length],
    ...(isNamed ? { n: "Signup", p: { plan: "pro", seats: 1 + (visitor % 9), trial: chance < 0.5 } } : {})
  })
}

const beacon = (options: BeaconOptions, visitor: number, next: Random): string => {
  const body = bodyOf(options, visitor, next)
  const origin = `https://${options.domain}`
  return [
    "POST /api/event HTTP/1.1",
    `Host: ${options.domain}`,
    `User-Agent: ${userAgents[visitor % userAgents.length]}`,
    "Accept: */*",
    "Accept-Language: en-US,en;q=0.9",
    "Accept-Encoding: gzip, deflate, br",
    "Content-Type: text/plain",
    `Origin: ${origin}`,
    `Referer: ${origin}/`,
    `X-Forwarded-For: ${addressOf(visitor)}`,
    `Content-Length: ${body.length}`,
    "",
    body
  ].join("\r\n")
}

const pvStart = '{"pv":"'
const digits = Buffer.from("0123456789abcdef")

/**
 * Beacons of browsers behind a proxy, one of each visitor in a random order, then the same again. The page view's id
 * counts up, so that no two beacons are the same event. They are not those of bench/traffic, whose rare pages and clicks
 * with ids of their own cost the server 0.5 µs more: the figures of decision 0007 are of these.
 */
export const source = (options: BeaconOptions): RequestSource => {
  const next = random(options.seed)
  const requests = Array.from({ length: options.visitors }, (_, visitor) => {
    const bytes = Buffer.from(beacon(options, visitor, next))
    return { bytes, idAt: bytes.indexOf(pvStart) + pvStart.length }
  })
  for (let index = requests.length - 1; index > 0; index--) {
    const other = Math.floor(next() * (index + 1))
    const [one, two] = [requests[index], requests[other]]
    if (one !== undefined && two !== undefined) [requests[index], requests[other]] = [two, one]
  }
  let sent = 0
  return {
    next: () => {
      const request = requests[sent % requests.length]
      if (request === undefined) throw new Error("There are no visitors")
      let rest = sent++
      for (let place = 7; place >= 0; place--) {
        request.bytes[request.idAt + place] = digits[rest & 15] ?? 0
        rest >>>= 4
      }
      return request.bytes
    }
  }
}
