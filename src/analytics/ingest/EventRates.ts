import { Context, Effect, Layer } from "effect"
import { EventLimiter, type RateDecision } from "#actors/analytics/EventLimiter.ts"
import { AppConfig } from "#src/Config.ts"
import { addressBlock } from "#src/front/ClientAddress.ts"
import { AddressHash } from "./AddressHash.ts"

/**
 * The rate limits of events: 3,000 a minute for one address and site, 300 for one of its visitors (whose User-Agent is
 * the sender's to make up), 6,000 collected events a second for one site.
 */
export class EventRates extends Context.Service<
  EventRates,
  {
    /** `address`: canonical; '' where there is none, which all of them share */
    readonly takeAddress: (site: string, address: string) => RateDecision
    readonly takeVisitor: (site: string, visitor: bigint) => RateDecision
    readonly takeCollect: (site: string, events: number) => RateDecision
  }
>()("signalbox/analytics/EventRates") {
  static readonly layer = Layer.effect(
    EventRates,
    Effect.map(AppConfig, ({ limits }) => {
      const limiter = new EventLimiter({
        visitorEventsPerMinute: limits.visitorEventsPerMinute,
        siteEventsPerSecond: limits.siteEventsPerSecond,
        visitorsMax: limits.limitedVisitors,
        sitesMax: limits.limitedSites
      })
      const addresses = new EventLimiter({
        visitorEventsPerMinute: limits.addressEventsPerMinute,
        siteEventsPerSecond: 0,
        visitorsMax: limits.limitedAddresses,
        sitesMax: 1
      })
      const hash = new AddressHash()
      return EventRates.of({
        takeAddress: (site, address) => {
          const { high, low } = hash.of(site, blockOf(address))
          return addresses.take(low, high, performance.now())
        },
        takeVisitor: (_site, visitor) => limiter.takeVisitor(visitor, performance.now()),
        takeCollect: (site, events) => limiter.takeSite(site, events, performance.now())
      })
    })
  )
}

/** As `addressBlock`, without parsing where the first four groups of a canonical IPv6 address are all written out. */
const blockOf = (address: string): string => {
  if (!address.includes(":")) return address
  let colon = -1
  for (let group = 0; group < 4; group++) {
    const next = address.indexOf(":", colon + 1)
    if (next <= colon + 1) return addressBlock(address)
    colon = next
  }
  return address.slice(0, colon)
}
