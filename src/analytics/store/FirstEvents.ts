import { Context, Effect, Layer, Queue } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { ClickHouse } from "#src/infra/clickhouse/ClickHouse.ts"
import { SiteDirectory } from "../sites/Sites.ts"

/**
 * Writes down when a site's first event happened (`firstEventAt`), once it is in the store. It is asked of the store,
 * so that a crash in between, or a batch with older events, gives the same instant.
 */
export class FirstEvents extends Context.Service<
  FirstEvents,
  { /** this site has events in the store */ readonly note: (site: string) => void }
>()("signalbox/analytics/FirstEvents") {
  static readonly layer = Layer.effect(
    FirstEvents,
    Effect.gen(function* () {
      const clickhouse = yield* ClickHouse
      const directory = yield* SiteDirectory
      const sql = yield* SqlClient
      const noted = new Set<string>()
      const sites = yield* Queue.unbounded<string>()

      const record = Effect.fnUntraced(function* (site: string) {
        const [first] = yield* clickhouse.query<{ readonly ts: number }>(
          "SELECT toUnixTimestamp64Milli(min(ts)) AS ts FROM events WHERE site = {site:String}",
          { site }
        )
        const at = new Date(Number(first?.ts))
        yield* directory.first(
          sql`UPDATE sites SET first_event_at = ${at}
            WHERE id = ${site} AND first_event_at IS NULL AND ${directory.live} RETURNING ${directory.columns}`
        )
      })

      // Behind the others: one site's trouble must not keep them waiting.
      const later = (site: string) =>
        Effect.andThen(Effect.sleep(retryMillis), () => Effect.sync(() => Queue.offerUnsafe(sites, site)))

      yield* Queue.take(sites).pipe(
        Effect.flatMap((site) =>
          Effect.catch(record(site), (error) =>
            Effect.andThen(
              Effect.logWarning("a site's first event could not be noted", error),
              Effect.forkScoped(later(site))
            )
          )
        ),
        Effect.forever,
        Effect.forkScoped
      )

      return FirstEvents.of({
        note: (site) => {
          if (noted.has(site)) return
          noted.add(site)
          if ((directory.get(site)?.firstEventAt ?? null) === null) Queue.offerUnsafe(sites, site)
        }
      })
    })
  )
}

/** Pause while Postgres or ClickHouse is away. */
const retryMillis = 5_000
