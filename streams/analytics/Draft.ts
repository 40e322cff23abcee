import { userAgentLengthMax } from "./Agent.ts"
import type { DecodedBrowserEvent } from "./BrowserDecoder.ts"
import type { DecodedCollectEvent } from "./CollectDecoder.ts"
import { FieldFault, required } from "./FieldFault.ts"
import { keptProps, type KeptProps } from "./KeptProps.ts"
import type { Site } from "./Site.ts"
import type { EventKind, StoredEvent } from "./StoredEvent.ts"

/** The facts of an event from its sender and request, before the pipeline. */
export interface Sent {
  readonly origin: "browser" | "server"
  readonly site: Site
  readonly receivedMillis: number
  readonly kind: EventKind
  readonly name: string
  readonly url: string | null
  readonly referrer: string | null
  readonly address: string | null
  readonly userAgent: string
  /** a code from a CDN's header or from the caller, '' for none */
  readonly countryCode: string
  readonly timeZone: string | null
  readonly visitorKey: string | null
  readonly timestamp: string | number | null
  readonly pv: string
  readonly engagedMillis: number
  readonly props: KeptProps
}

/** The stored event in the making: every step fills in its own fields. */
export type Draft = { -readonly [K in keyof StoredEvent]: StoredEvent[K] }

/** The facts of a browser's request beside its body. */
export interface BrowserRequest {
  readonly address: string
  readonly userAgent: string
  /** the first of the CDN headers that has a value */
  readonly countryCode: string
  readonly receivedMillis: number
}

/** The event as a browser sent it, or the key that its kind of event lacks. */
export const sentByBrowser = (
  site: Site,
  event: DecodedBrowserEvent,
  request: BrowserRequest
): Sent | FieldFault => {
  if (event.k === "engage") {
    if (event.pv === null || event.pv === "") return required("pv")
    if (event.e === null) return required("e")
  } else if (event.u === null) return required("u")
  if (event.k === "event" && event.n === null) return required("n")
  return {
    origin: "browser",
    site,
    receivedMillis: request.receivedMillis,
    kind: event.k === "event" ? kindOf(event.n) : event.k,
    name: event.k === "event" ? nameOf(event.n) : "",
    url: event.u,
    referrer: event.r,
    address: request.address,
    userAgent: request.userAgent.slice(0, userAgentLengthMax),
    countryCode: request.countryCode,
    timeZone: event.tz,
    visitorKey: null,
    timestamp: null,
    pv: event.pv ?? "",
    engagedMillis: event.k === "engage" ? (event.e ?? 0) : 0,
    props: keptProps(event.p)
  }
}

export const sentByServer = (site: Site, event: DecodedCollectEvent, receivedMillis: number): Sent => ({
  origin: "server",
  site,
  receivedMillis,
  kind: kindOf(event.name),
  name: nameOf(event.name),
  url: event.url,
  referrer: event.referrer,
  address: event.ip === "" ? null : event.ip,
  userAgent: event.userAgent ?? "",
  countryCode: event.country ?? "",
  timeZone: null,
  visitorKey: event.visitor === "" ? null : event.visitor,
  timestamp: event.timestamp,
  pv: "",
  engagedMillis: 0,
  props: keptProps(event.props)
})

/** An event without a name or named `pageview` is a page view. Source: contract/analytics#collect. */
const kindOf = (name: string | null): EventKind =>
  name === null || name === "pageview" ? "pageview" : "event"

const nameOf = (name: string | null): string => (name === null || name === "pageview" ? "" : name)

export const draftOf = (sent: Sent): Draft => ({
  site: sent.site.dataset,
  kind: sent.kind,
  ts: sent.receivedMillis,
  received: sent.receivedMillis,
  visitor: 0n,
  day: 0,
  name: sent.name,
  hostname: "",
  path: "",
  pv: sent.pv,
  engagedMillis: sent.engagedMillis,
  referrer: "",
  source: "",
  channel: "",
  utmSource: "",
  utmMedium: "",
  utmCampaign: "",
  utmTerm: "",
  utmContent: "",
  country: "",
  browser: "",
  browserVersion: "",
  os: "",
  device: "",
  propsKeys: sent.props.keys,
  propsValues: sent.props.values
})
