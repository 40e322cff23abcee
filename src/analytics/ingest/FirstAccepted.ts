import { Context, Effect, Layer } from "effect"
import type { SiteRow } from "#schemas/analytics/Site.ts"

/** Sites whose first event is on its way to the store; beyond it the oldest is forgotten. */
const sitesMax = 100_000

/**
 * When the first event of a site happened, from the moment that it is accepted: the store and Postgres know it a second
 * or two later (`FirstEvents`), and their word then holds.
 */
export class FirstAccepted extends Context.Service<
  FirstAccepted,
  {
    readonly note: (site: SiteRow, tsMillis: number) => void
    /** null: none yet */
    readonly of: (site: SiteRow) => Date | null
  }
>()("signalbox/analytics/FirstAccepted") {
  static readonly layer = Layer.effect(
    FirstAccepted,
    Effect.sync(() => {
      const first = new Map<string, number>()
      return FirstAccepted.of({
        note: ({ dataset, firstEventAt }, tsMillis) => {
          if (firstEventAt !== null) return
          const known = first.get(dataset)
          if (known !== undefined && known <= tsMillis) return
          if (known === undefined && first.size >= sitesMax) {
            const oldest = first.keys().next()
            if (oldest.done !== true) first.delete(oldest.value)
          }
          first.set(dataset, tsMillis)
        },
        of: ({ dataset, firstEventAt }) => {
          const known = first.get(dataset)
          if (known === undefined || firstEventAt !== null) {
            first.delete(dataset)
            return firstEventAt
          }
          return new Date(known)
        }
      })
    })
  )
}
