import { Clock, Effect } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { AnalyticsRoomApi } from "#schemas/analytics/AnalyticsRoomApi.ts"
import type { BreakdownParameters } from "#schemas/analytics/Breakdown.ts"
import type { StatsParameters } from "#schemas/analytics/Stats.ts"
import { CurrentKey, type Metering } from "#schemas/core/Authorization.ts"
import { Admission } from "#src/accounts/Admission.ts"
import type { ClickHouseUnavailable } from "#src/infra/clickhouse/ClickHouseFailed.ts"
import { storeAway as postgresAway } from "#src/http/StoreAway.ts"
import { troubleText } from "#src/http/StoreTrouble.ts"
import { dayMillis } from "#streams/analytics/EventTime.ts"
import type { SinkUnavailable } from "#streams/kernel/Sink.ts"
import { CountingLease } from "../counting/CountingLease.ts"
import { csv } from "#src/http/Csv.ts"
import { DropCounts } from "../ingest/DropCounts.ts"
import type { StoreError } from "../store/EventStore.ts"
import { inapplicableFilter } from "./Filters.ts"
import { Realtime } from "./Realtime.ts"
import type { SiteRow } from "#schemas/analytics/Site.ts"
import { SiteDirectory } from "../sites/Sites.ts"
import { Sites } from "../sites/Sites.ts"
import { Stats } from "./Stats.ts"
import { BadRequest, NotFound, ServiceUnavailable } from "#schemas/core/Problem.ts"

const away = (error: SinkUnavailable | ClickHouseUnavailable) =>
  Effect.fail(ServiceUnavailable.of(troubleText("The statistics store", error)))

/** A store that is away is 503 with Retry-After; a statement that it refuses is this server's own fault. */
const answered = <A>(read: Effect.Effect<A, BadRequest | SinkUnavailable | StoreError>) =>
  read.pipe(
    Effect.catchTags({
      SinkUnavailable: away,
      ClickHouseUnavailable: away,
      ClickHouseFailed: Effect.die
    })
  )

/** Figures with a filter that cannot be applied would be those of all visits: such a question is 400. */
const asked = <A>(read: Effect.Effect<A, BadRequest | SinkUnavailable | StoreError>) =>
  Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ url }) => {
    const problem = inapplicableFilter(url)
    return problem === undefined ? answered(read) : Effect.fail(BadRequest.of(problem))
  })

/** The number of days for which drops are shown. */
const dropDays = 30

type Format = { readonly format?: "json" | "csv" }

const csvAnswer = (text: string) => HttpServerResponse.text(text, { contentType: "text/csv; charset=utf-8" })

/** The figures of owners' and public sites, from the one process that counts. */
const makeFigures = Effect.gen(function* () {
  const { whileCounting } = yield* CountingLease
  const stats = yield* Stats
  const realtime = yield* Realtime
  return {
    stats: (site: SiteRow, { format, ...query }: StatsParameters & Format) =>
      Effect.map(whileCounting(asked(stats.ofSite(site, query))), (found) =>
        format === "csv"
          ? csvAnswer(csv(["bucket", "visitors", "visits", "pageviews"], found.timeseries))
          : found
      ),
    breakdown: (site: SiteRow, { format, ...query }: BreakdownParameters & Format) =>
      Effect.map(whileCounting(asked(stats.breakdown(site, query))), (found) =>
        format === "csv" ? csvAnswer(csv(["value", "visitors", "pageviews", "count"], found.rows)) : found
      ),
    realtime: (site: SiteRow) =>
      whileCounting(
        Effect.map(Clock.currentTimeMillis, (nowMillis) => realtime.snapshot(site.dataset, nowMillis))
      )
  }
})

export const layer = HttpApiBuilder.group(
  AnalyticsRoomApi,
  "stats",
  Effect.fnUntraced(function* (handlers) {
    const sites = yield* Sites
    const drops = yield* DropCounts
    const stats = yield* Stats
    const figures = yield* makeFigures
    const { whileCounting } = yield* CountingLease
    const ownSite = (id: string) => Effect.flatMap(CurrentKey, ({ ownerId }) => sites.find(id, ownerId))
    return handlers.handleAll({
      siteStats: ({ params, query }) =>
        Effect.flatMap(ownSite(params.id), (site) => figures.stats(site, query)),
      siteBreakdown: ({ params, query }) =>
        Effect.flatMap(ownSite(params.id), (site) => figures.breakdown(site, query)),
      siteRealtime: ({ params }) => Effect.flatMap(ownSite(params.id), figures.realtime),
      siteDrops: ({ params }) =>
        Effect.gen(function* () {
          const site = yield* ownSite(params.id)
          const sinceMillis = (yield* Clock.currentTimeMillis) - dropDays * dayMillis
          const counted = yield* whileCounting(
            postgresAway(drops.ofSite(site.dataset, new Date(sinceMillis).toISOString().slice(0, 10)))
          )
          return { drops: counted.map(({ bot, count, day, reason }) => ({ day, reason, bot, count })) }
        }),
      exportSite: ({ params, query }) =>
        Effect.flatMap(ownSite(params.id), (site) =>
          Effect.map(whileCounting(answered(stats.exported(site, query))), (lines) =>
            HttpServerResponse.stream(lines, { contentType: "application/x-ndjson" })
          )
        )
    })
  })
)

/**
 * Without a key there is none whose rate could be counted: each reader's address has a bucket, as large as a key's. One
 * for the site would let a single reader close it for all.
 */
const publicReads: Metering = {
  meter: { name: "Public sites", per: "address", shape: "bucket", limit: null, seconds: 60 },
  cost: 1
}

export const publicLayer = HttpApiBuilder.group(
  AnalyticsRoomApi,
  "publicStats",
  Effect.fnUntraced(function* (handlers) {
    const directory = yield* SiteDirectory
    const admission = yield* Admission
    const figures = yield* makeFigures
    const publicSite = Effect.fnUntraced(function* (id: string) {
      const site = directory.get(id)
      if (site?.public !== true) return yield* NotFound.of("Site not found")
      yield* admission.enterWithoutKey(yield* HttpServerRequest.HttpServerRequest, publicReads)
      return site
    })
    return handlers.handleAll({
      publicSiteStats: ({ params, query }) =>
        Effect.flatMap(publicSite(params.id), (site) => figures.stats(site, query)),
      publicSiteBreakdown: ({ params, query }) =>
        Effect.flatMap(publicSite(params.id), (site) => figures.breakdown(site, query)),
      publicSiteRealtime: ({ params }) => Effect.flatMap(publicSite(params.id), figures.realtime)
    })
  })
)
