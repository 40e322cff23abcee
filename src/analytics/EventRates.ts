import { Clock, Context, Effect, Layer } from "effect"
import { EventLimiter, type RateVerdict } from "#actors/analytics/EventLimiter.ts"
import { AppConfig } from "#src/Config.ts"

/** How fast events may come: 300 a minute for one visitor of a site, 6,000 collected events a second for one site. */
export class EventRates extends Context.Service<
  EventRates,
  {
    readonly takeVisitor: (site: string, visitor: bigint) => RateVerdict
    readonly takeCollect: (site: string, events: number) => RateVerdict
  }
>()("signalbox/analytics/EventRates") {
  static readonly layer = Layer.effect(
    EventRates,
    Effect.gen(function* () {
      const { limits } = yield* AppConfig
      const limiter = new EventLimiter(yield* Clock.Clock, {
        visitorEventsPerMinute: limits.visitorEventsPerMinute,
        siteEventsPerSecond: limits.siteEventsPerSecond,
        maxVisitors: limits.limitedVisitors,
        maxSites: limits.limitedSites
      })
      return EventRates.of({
        takeVisitor: (site, visitor) => limiter.takeVisitor(site, visitor),
        takeCollect: (site, events) => limiter.takeCollect(site, events)
      })
    })
  )
}
