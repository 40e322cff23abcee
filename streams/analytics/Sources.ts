import { readFileSync } from "node:fs"
import { join } from "node:path"
import { BoundedCache } from "./BoundedCache.ts"
import { displayHostname } from "./DisplayForm.ts"
import { isSpamSeries, spamReferrers } from "./SpamReferrers.ts"

/** The kinds of places that visitors come from; some only a campaign's medium can tell. */
const channels = [
  "AI",
  "Affiliates",
  "Audio",
  "Direct",
  "Email",
  "News",
  "Paid",
  "Push",
  "Referral",
  "SMS",
  "Search",
  "Shopping",
  "Social",
  "Video"
] as const
export type Channel = (typeof channels)[number]

const isChannel = (text: string): text is Channel => channels.some((channel) => channel === text)

/** A place that visitors come from. */
export interface Source {
  /** its name, else its domain or the package of its app; '' for none */
  readonly name: string
  readonly channel: Channel
  readonly isSpam: boolean
}

/** The source of visitors without a known one. */
export const noSource: Source = { name: "", channel: "Direct", isSpam: false }

/** The lines of Sources.tsv, whose head says how they are written. */
export const sources = readFileSync(join(import.meta.dirname, "Sources.tsv"), "utf8")
  .split("\n")
  .filter((line) => line !== "" && !line.startsWith("#"))
  .map((line) => {
    const [channel = "", name = "", places = ""] = line.split("\t")
    if (!isChannel(channel) || places === "") throw new Error(`Sources.tsv: not a source: ${line}`)
    return { channel, name, places: places.split(" ") }
  })

const spamOf = (domain: string): Source => ({ name: domain, channel: "Referral", isSpam: true })

const byDomain = new Map<string, Source>()
const byApp = new Map<string, Source>()
/** by `utm_source`, in lower case */
const byWord = new Map<string, Source>()

const appScheme = "android-app://"

for (const { channel, name, places } of sources) {
  const source: Source = { name, channel, isSpam: false }
  byWord.set(name.toLowerCase(), source)
  for (const place of places) {
    if (place.startsWith(appScheme)) byApp.set(place.slice(appScheme.length).toLowerCase(), source)
    else (place.includes(".") ? byDomain : byWord).set(place, source)
  }
}
for (const domain of spamReferrers) byDomain.set(domain, spamOf(domain))

/** The nearest listed domain that a hostname is part of. */
const nearest = (hostname: string): Source | undefined => {
  let domain = hostname
  for (;;) {
    const found = byDomain.get(domain)
    if (found !== undefined) return found
    const dot = domain.indexOf(".")
    if (dot < 0) return undefined
    domain = domain.slice(dot + 1)
  }
}

/** `.com`, `.de`, `.co.uk`, `.com.br` */
const countryEnding = /\.(?:com|[a-z]{2}|com?\.[a-z]{2})$/

const listed = (hostname: string): Source | undefined =>
  nearest(hostname) ?? nearest(hostname.replace(countryEnding, ".*"))

const referring = (name: string): Source => ({ name, channel: "Referral", isSpam: false })

/** Hostnames repeat, and one that is not listed is looked for label by label. At most 3 MB of text. */
const remembered = new BoundedCache(
  10_000,
  (hostname) =>
    listed(hostname) ?? (isSpamSeries(hostname) ? spamOf(hostname) : referring(displayHostname(hostname)))
)

/** The source with a domain that the hostname (bare, in lower case) is part of, else one called like the hostname. */
export const sourceOfHostname = (hostname: string): Source => remembered.get(hostname)

/** The source with an Android app, else one called like its package. */
export const sourceOfApp = (packageName: string): Source =>
  byApp.get(packageName.toLowerCase()) ?? referring(packageName)

const named = (text: string): Source | undefined =>
  byWord.get(text) ?? (text.includes(".") ? listed(text) : undefined)

/**
 * The source that a campaign means by its `utm_source`, in any case: a name, a word for it or one of its domains;
 * one with `-ads` behind it, which is then paid for; or any newsletter.
 */
export const sourceOfCampaign = (utmSource: string): Source | undefined => {
  const text = utmSource.toLowerCase()
  const known = named(text)
  if (known !== undefined) return known
  const advertised = /[-_. ]ads?$/.exec(text)
  if (advertised !== null) {
    const name = named(text.slice(0, advertised.index))?.name ?? utmSource
    return { name, channel: "Paid", isSpam: false }
  }
  return isNewsletter.test(text) ? { name: utmSource, channel: "Email", isSpam: false } : undefined
}

/** `newsletter-uk`, `weekly_newsletter`, `email-2024`; not every word with these letters. */
const isNewsletter = /(?:^|[^a-z])(?:newsletters?|e-?mails?)(?:[^a-z]|$)/

/**
 * The shown form of a `utm_source`: the known name of its source, else as it stands. Source:
 * contract/analytics#pages-and-sources.
 */
export const shownSource = (utmSource: string): string =>
  utmSource === "" ? "" : (sourceOfCampaign(utmSource)?.name ?? displayHostname(utmSource))
