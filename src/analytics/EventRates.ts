import { Context } from "effect"

export interface RateVerdict {
  readonly allowed: boolean
  /** whole seconds, at least 1; 0 when allowed */
  readonly retryAfterSeconds: number
}

/** How fast events may come: 300 a minute for one visitor of a site, 6,000 collected events a second for one site. */
export class EventRates extends Context.Service<
  EventRates,
  {
    readonly takeVisitor: (site: string, visitor: bigint) => RateVerdict
    readonly takeCollect: (site: string, events: number) => RateVerdict
  }
>()("signalbox/analytics/EventRates") {}
