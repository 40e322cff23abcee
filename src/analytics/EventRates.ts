import { Context, Effect, Layer } from "effect"
import { EventLimiter, type EventVerdict } from "#actors/analytics/EventLimiter.ts"
import { AppConfig } from "#src/Config.ts"

/** How fast events may come: 300 a minute for one visitor of a site, 6,000 collected events a second for one site. */
export class EventRates extends Context.Service<
  EventRates,
  {
    readonly takeVisitor: (site: string, visitor: bigint) => EventVerdict
    readonly takeCollect: (site: string, events: number) => EventVerdict
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
      return EventRates.of({
        takeVisitor: (_site, visitor) => limiter.takeVisitor(visitor, performance.now()),
        takeCollect: (site, events) => limiter.takeSite(site, events, performance.now())
      })
    })
  )
}
