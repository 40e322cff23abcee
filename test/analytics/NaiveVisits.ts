const minute = 60_000

interface Hit {
  readonly kind: string
  readonly ts: number
  readonly pv: string
  readonly engagedMillis: number
}

export interface NaiveVisit<Event> {
  readonly events: Array<Event>
  engagedMillis: number
  aliveTs: number
}

/**
 * Visits of one visitor-day by their definition: each page view and event belongs with what went before, or opens a
 * visit. `noPv` is what stands for no page view id.
 */
export const naiveVisits = <Event extends Hit>(
  events: ReadonlyArray<Event>,
  noPv: string
): ReadonlyArray<NaiveVisit<Event>> => {
  const ordered = events.toSorted((left, right) => left.ts - right.ts)
  const visits: Array<NaiveVisit<Event>> = []
  const credited = new Map<Event, number>()
  for (const [index, event] of ordered.entries()) {
    const last = visits.at(-1)
    if (event.kind !== "engage") {
      if (last === undefined || event.ts - last.aliveTs > 30 * minute) {
        visits.push({ events: [event], engagedMillis: 0, aliveTs: event.ts })
      } else {
        last.events.push(event)
        last.aliveTs = event.ts
      }
      continue
    }
    const isItsView = ({ kind, pv }: Event): boolean => kind === "pageview" && pv === event.pv && pv !== noPv
    const view = ordered.slice(0, index).findLast(isItsView)
    const visit = view === undefined ? undefined : visits.find((one) => one.events.includes(view))
    if (view === undefined || visit === undefined || last === undefined) continue
    const before = credited.get(view) ?? 0
    const credit = Math.min(event.engagedMillis, event.ts - view.ts - before)
    credited.set(view, before + credit)
    visit.engagedMillis += credit
    if (event.ts - last.aliveTs <= 30 * minute) last.aliveTs = event.ts
  }
  return visits
}
