import { decodeBrowserEvent } from "#streams/analytics/BrowserDecoder.ts"
import { decodeCollectEvent } from "#streams/analytics/CollectDecoder.ts"
import { Drop } from "#streams/analytics/Drop.ts"
import { type Sent, sentByBrowser, sentByServer } from "#streams/analytics/Draft.ts"
import { dayOf, eventAgeMaxMillis } from "#streams/analytics/EventTime.ts"
import { FieldFault } from "#streams/analytics/FieldFault.ts"
import { parseAgent } from "#streams/analytics/Agent.ts"
import { parsePageUrl } from "#streams/analytics/PageUrl.ts"
import { type Lookups, process } from "#streams/analytics/Pipeline.ts"
import type { Site } from "#streams/analytics/Site.ts"
import type { StoredEvent } from "#streams/analytics/StoredEvent.ts"

export const noon = Date.UTC(2026, 10, 21, 12)

export const chrome =
  "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36"

export const googlebot = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"

export const site: Site & { readonly id: string } = {
  id: "st_0000000000000000000001",
  dataset: "st_0000000000000000000001",
  domain: "example.org",
  visitorSecret: new Uint8Array(32).fill(7),
  retentionDays: null
}

export const lookups: Lookups = {
  agentOf: parseAgent,
  pageOf: parsePageUrl,
  countryOfAddress: (address) => (address === "192.0.2.44" ? "NL" : ""),
  saltAt: (millis) => ({ day: dayOf(millis), text: `salt of ${dayOf(millis)}` }),
  eventAgeMaxMillis
}

export type Outcome = StoredEvent | string

const outcome = (sent: Sent | FieldFault, using: Lookups): Outcome => {
  const result = sent instanceof FieldFault ? sent : process(sent, using)
  if (result instanceof Drop) return result.reason
  return result instanceof FieldFault ? result.message : result
}

/** The pipeline's result for a browser event: the stored event, the reason of its drop, or the text of its fault. */
export const fromBrowser = (
  fields: Record<string, unknown>,
  request: { address?: string; userAgent?: string; countryCode?: string; receivedMillis?: number } = {},
  using = lookups
): Outcome => {
  const event = decodeBrowserEvent({ s: site.id, k: "pageview", u: "https://example.org/", ...fields })
  if (event instanceof FieldFault) return event.message
  const rest = { address: "192.0.2.1", userAgent: chrome, countryCode: "", receivedMillis: noon, ...request }
  return outcome(sentByBrowser(site, event, rest), using)
}

/** The same for a collected event. */
export const fromServer = (fields: Record<string, unknown>, nowMillis = noon, using = lookups): Outcome => {
  const event = decodeCollectEvent({ url: "/", ...fields })
  return event instanceof FieldFault ? event.message : outcome(sentByServer(site, event, nowMillis), using)
}

/** The stored event, or an error that says why there is none. */
export const stored = (result: Outcome): StoredEvent => {
  if (typeof result === "string") throw new Error(`not stored: ${result}`)
  return result
}
