import { Clock, Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Api } from "#schemas/Api.ts"
import { CurrentKey } from "#schemas/core/Authorization.ts"
import { ServiceUnavailable } from "#schemas/core/Problem.ts"
import { storeAway as postgresAway } from "#src/infra/http/StoreAway.ts"
import { dayMillis } from "#streams/analytics/EventTime.ts"
import type { SinkUnavailable } from "#streams/kernel/Sink.ts"
import type { ClickHouseFailed, ClickHouseUnavailable } from "#src/infra/clickhouse/ClickHouseFailed.ts"
import { DropCounts } from "./DropCounts.ts"
import { Realtime } from "./Realtime.ts"
import { Sites } from "./Sites.ts"
import { siteProblems } from "./SitesRoutes.ts"
import { Stats } from "./Stats.ts"

const away = () =>
  Effect.fail(
    new ServiceUnavailable({ error: "The statistics store is away; nothing is lost, try again later" })
  )

/** A store that is away is 503 with Retry-After; a statement that it refuses is this server's own fault. */
const storeAway = <A>(read: Effect.Effect<A, SinkUnavailable | ClickHouseUnavailable | ClickHouseFailed>) =>
  read.pipe(
    Effect.catchTags({ SinkUnavailable: away, ClickHouseUnavailable: away, ClickHouseFailed: Effect.die })
  )

/** How far back drops are shown. */
const dropDays = 30

export const layer = HttpApiBuilder.group(
  Api,
  "stats",
  Effect.fnUntraced(function* (handlers) {
    const sites = yield* Sites
    const stats = yield* Stats
    const realtime = yield* Realtime
    const drops = yield* DropCounts
    const ownSite = (id: string) =>
      Effect.flatMap(CurrentKey, ({ userId }) => sites.find(id, userId)).pipe(
        Effect.catchTag("SiteNotFound", siteProblems.SiteNotFound)
      )
    return handlers.handleAll({
      siteStats: ({ params, query: { period, ...filters } }) =>
        Effect.flatMap(ownSite(params.id), (site) => storeAway(stats.ofSite(site, period ?? "30d", filters))),
      siteRealtime: ({ params }) =>
        Effect.flatMap(ownSite(params.id), (site) =>
          Effect.map(Clock.currentTimeMillis, (nowMillis) => realtime.snapshot(site.id, nowMillis))
        ),
      siteDrops: ({ params }) =>
        Effect.gen(function* () {
          const site = yield* ownSite(params.id)
          const sinceMillis = (yield* Clock.currentTimeMillis) - dropDays * dayMillis
          const counted = yield* postgresAway(
            drops.ofSite(site.id, new Date(sinceMillis).toISOString().slice(0, 10))
          )
          return { drops: counted.map(({ bot, count, day, reason }) => ({ day, reason, bot, count })) }
        })
    })
  })
)
