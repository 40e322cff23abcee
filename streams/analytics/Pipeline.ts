import { expectations } from "#schemas/analytics/EventLimits.ts"
import type { Agent } from "./Agent.ts"
import { campaignOf } from "./Campaign.ts"
import type { Campaign } from "./Campaign.ts"
import { channelOf } from "./Channel.ts"
import { countryOfCode, countryOfZone } from "./Country.ts"
import { draftOf } from "./Draft.ts"
import type { Draft, Sent } from "./Draft.ts"
import { Drop } from "./Drop.ts"
import { dayOf, eventTime, firstKeptDay, TooLate } from "./EventTime.ts"
import { FieldFault, expected } from "./FieldFault.ts"
import { canonicalAddress } from "./IpAddress.ts"
import { isWithin, type PageUrl } from "./PageUrl.ts"
import { referrerOf } from "./Referrer.ts"
import { shownSource } from "./Sources.ts"
import type { StoredEvent } from "./StoredEvent.ts"
import { visitorHash, visitorKeyHash } from "./VisitorHash.ts"
import type { DaySalt } from "./VisitorHash.ts"

/** The lookups of the steps. All answer at once: an event never waits inside the pipeline. */
export interface Lookups {
  readonly agentOf: (userAgent: string) => Agent
  /** `parsePageUrl`, remembered or not: a site has few pages and few referrers, and URLs are dear to read */
  readonly pageOf: (url: string) => PageUrl | undefined
  /** alpha-2 code of a canonical address, '' when unknown */
  readonly countryOfAddress: (address: string) => string
  readonly saltAt: (millis: number) => DaySalt
  readonly eventAgeMaxMillis: number
}

/** The values that the steps pass on to each other and are not stored. */
interface Passing {
  address: string
  /** the page's, bare and in punycode, as the site's domain is */
  hostname: string
  campaign: Campaign | undefined
}

/** undefined: the event goes on; a drop: it ends and is counted; a fault: its sender gets an error. */
type StepResult = Drop | FieldFault | undefined

export interface Step {
  readonly name: string
  readonly run: (draft: Draft, sent: Sent, passing: Passing, lookups: Lookups) => StepResult
}

/** When it happened, and the UTC day of its visitor's identity. */
const time: Step = {
  name: "time",
  run(draft, sent, _passing, lookups) {
    const ts = eventTime(sent.timestamp, sent.receivedMillis, lookups.eventAgeMaxMillis)
    if (ts instanceof FieldFault) return ts
    draft.ts = ts
    draft.day = dayOf(ts)
    const isKept = draft.day >= firstKeptDay(sent.site.retentionDays, sent.receivedMillis)
    return isKept ? undefined : TooLate.ofRetention
  }
}

/** Hostname and path, and the utm fields of its query. A path alone is one on the site's domain. */
const page: Step = {
  name: "page",
  run(draft, sent, passing, lookups) {
    if (sent.url === null) return undefined
    const isPath = sent.origin === "server" && sent.url.startsWith("/")
    const url = lookups.pageOf(isPath ? `http://${sent.site.domain}${sent.url}` : sent.url)
    if (url === undefined) {
      return sent.origin === "server"
        ? expected("url", "an absolute http(s) URL or a path starting with /")
        : expected("u", "an absolute http(s) URL")
    }
    draft.hostname = url.shownHostname
    passing.hostname = url.hostname
    draft.path = url.path
    passing.campaign = campaignOf(url.query)
    return undefined
  }
}

/** A page that is not the site's counts nowhere. Source: contract/analytics#browser-events. */
const hostname: Step = {
  name: "hostname",
  run: (_draft, sent, passing) =>
    sent.origin === "server" || sent.url === null || isWithin(passing.hostname, sent.site.domain)
      ? undefined
      : Drop.hostname
}

const address: Step = {
  name: "address",
  run(_draft, sent, passing) {
    const canonical = sent.address === null ? "" : canonicalAddress(sent.address)
    // A browser's address is the front's word; where that is none (a Unix socket) the visitor has none.
    if (canonical === undefined && sent.origin === "server") return expected("ip", expectations.address)
    passing.address = canonical ?? ""
    return undefined
  }
}

/** Bots are dropped, unless the caller vouches for the visitor. Source: contract/analytics#collect. */
const agent: Step = {
  name: "agent",
  run(draft, sent, _passing, lookups) {
    if (sent.userAgent === "") return undefined
    const known = lookups.agentOf(sent.userAgent)
    if (known.bot !== undefined && sent.visitorKey === null) return new Drop("bot", known.bot)
    draft.browser = known.browser
    draft.browserVersion = known.version
    draft.os = known.os
    draft.device = known.device
    return undefined
  }
}

/**
 * The visitor's source: the place that utm_source means, else the referrer's. Source:
 * contract/analytics#pages-and-sources. A spam referrer is never a source, of any visitor.
 */
const source: Step = {
  name: "source",
  run(draft, sent, { campaign }, lookups) {
    const from = referrerOf(sent.referrer, sent.site.domain, lookups.pageOf)
    if (from.source.isSpam) return Drop.spam
    draft.referrer = from.referrer
    draft.source = from.source.name
    draft.channel = from.source.channel
    if (campaign !== undefined) {
      draft.source = shownSource(campaign.source) || from.source.name
      draft.channel = channelOf(campaign, from.source)
      draft.utmSource = campaign.source
      draft.utmMedium = campaign.medium
      draft.utmCampaign = campaign.campaign
      draft.utmTerm = campaign.term
      draft.utmContent = campaign.content
    }
    return undefined
  }
}

/**
 * The CDN's or caller's word, else the address's country, else the time zone's. Source: contract/analytics#countries.
 */
const country: Step = {
  name: "country",
  run(draft, sent, passing, lookups) {
    draft.country =
      countryOfCode(sent.countryCode) ||
      (passing.address === "" ? "" : lookups.countryOfAddress(passing.address)) ||
      countryOfZone(sent.timeZone)
    return undefined
  }
}

/** The last step that sees the address. */
const visitor: Step = {
  name: "visitor",
  run(draft, sent, passing, lookups) {
    draft.visitor =
      sent.visitorKey === null
        ? visitorHash(
            lookups.saltAt(sent.receivedMillis),
            draft.site,
            draft.day,
            passing.address,
            sent.userAgent
          )
        : visitorKeyHash(sent.site.visitorSecret, draft.day, sent.visitorKey)
    return undefined
  }
}

/** The steps of every event, in this order: faults before drops, cheap refusals before costly work. */
export const steps: ReadonlyArray<Step> = [time, page, address, hostname, agent, source, country, visitor]

/** The event to store, or why there is none. The address and the User-Agent end here. */
export const process = (sent: Sent, lookups: Lookups): StoredEvent | Drop | FieldFault => {
  const draft = draftOf(sent)
  const passing: Passing = { address: "", hostname: "", campaign: undefined }
  for (const step of steps) {
    const result = step.run(draft, sent, passing, lookups)
    if (result !== undefined) return result
  }
  return draft
}
