import { Context, Effect, Layer, Queue } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { ClickHouse } from "#src/infra/clickhouse/ClickHouse.ts"
import { siteOfDataset } from "#streams/analytics/Site.ts"
import { SiteDirectory } from "../sites/Sites.ts"

/**
 * Writes down when a site's first event happened (`firstEventAt`), once it is in the store. It is asked of the store,
 * so that a crash in between, or a batch with older events, gives the same instant.
 */
export class FirstEvents extends Context.Service<
  FirstEvents,
  { /** this dataset of a site has events in the store */ readonly note: (dataset: string) => void }
>()("signalbox/analytics/FirstEvents") {
  static readonly layer = Layer.effect(
    FirstEvents,
    Effect.gen(function* () {
      const clickhouse = yield* ClickHouse
      const directory = yield* SiteDirectory
      const sql = yield* SqlClient
      const noted = new Set<string>()
      const datasets = yield* Queue.unbounded<string>()

      const record = Effect.fnUntraced(function* (dataset: string) {
        const [first] = yield* clickhouse.query<{ readonly ts: number }>(
          "SELECT toUnixTimestamp64Milli(min(ts)) AS ts FROM events WHERE site = {dataset:String}",
          { dataset }
        )
        const at = new Date(Number(first?.ts))
        yield* directory.first(
          sql`UPDATE sites SET first_event_at = ${at}
            WHERE id = ${siteOfDataset(dataset)} AND dataset = ${dataset} AND first_event_at IS NULL AND ${directory.live} RETURNING ${directory.columns}`
        )
      })

      // Behind the others: one site's trouble must not keep them waiting.
      const later = (dataset: string) =>
        Effect.andThen(Effect.sleep(retryMillis), () =>
          Effect.sync(() => Queue.offerUnsafe(datasets, dataset))
        )

      yield* Queue.take(datasets).pipe(
        Effect.flatMap((dataset) =>
          Effect.catch(record(dataset), (error) =>
            Effect.andThen(
              Effect.logWarning("a site's first event could not be noted", error),
              Effect.forkScoped(later(dataset))
            )
          )
        ),
        Effect.forever,
        Effect.forkScoped
      )

      return FirstEvents.of({
        note: (dataset) => {
          if (noted.has(dataset)) return
          noted.add(dataset)
          const site = directory.get(siteOfDataset(dataset))
          if ((site?.firstEventAt ?? null) === null) Queue.offerUnsafe(datasets, dataset)
        }
      })
    })
  )
}

/** Pause while Postgres or ClickHouse is away. */
const retryMillis = 5_000
