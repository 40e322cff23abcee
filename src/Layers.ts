import { NodeServices } from "@effect/platform-node"
import { Effect, Layer, Redacted } from "effect"
import { Etag, HttpPlatform, HttpRouter, HttpServer } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import type { SqlClient } from "effect/sql/SqlClient"
import { join } from "node:path"
import { RateBuckets } from "#actors/accounts/RateBuckets.ts"
import { AccountsRoomApi, AnalyticsRoomApi, Api } from "#schemas/Api.ts"
import * as AccountRoutes from "./accounts/AccountRoutes.ts"
import * as AdminRoutes from "./accounts/AdminRoutes.ts"
import { AnonymousRates } from "./accounts/AnonymousRates.ts"
import * as Authentication from "./accounts/Authentication.ts"
import { Files } from "./accounts/Files.ts"
import { FirstBoot } from "./accounts/FirstBoot.ts"
import { KeyDirectory } from "./accounts/KeyDirectory.ts"
import { Keys } from "./accounts/Keys.ts"
import * as KeysRoutes from "./accounts/KeysRoutes.ts"
import * as RateLimiting from "./accounts/RateLimiting.ts"
import { RequestCounts } from "./accounts/RequestCounts.ts"
import { UserDirectory } from "./accounts/UserDirectory.ts"
import { Users } from "./accounts/Users.ts"
import { Breakdowns } from "./analytics/Breakdowns.ts"
import { DropCounts } from "./analytics/DropCounts.ts"
import { EventDrain } from "./analytics/EventDrain.ts"
import { EventIds } from "./analytics/EventIds.ts"
import { EventLog } from "./analytics/EventLog.ts"
import { EventSink } from "./analytics/EventSink.ts"
import { EventRates } from "./analytics/EventRates.ts"
import * as EventMetrics from "./analytics/EventMetrics.ts"
import { FirstEvents } from "./analytics/FirstEvents.ts"
import { GeoIp } from "./analytics/GeoIp.ts"
import * as ImportRoutes from "./analytics/ImportRoutes.ts"
import { Imports } from "./analytics/Imports.ts"
import { Ingest } from "./analytics/Ingest.ts"
import { ingestRoutes } from "./analytics/IngestRoutes.ts"
import { Realtime } from "./analytics/Realtime.ts"
import * as RebuildRoutes from "./analytics/RebuildRoutes.ts"
import { Salts } from "./analytics/Salts.ts"
import { SaltStore } from "./analytics/SaltStore.ts"
import * as ScriptRoutes from "./analytics/ScriptRoutes.ts"
import { SiteDirectory } from "./analytics/SiteDirectory.ts"
import { SiteExport } from "./analytics/SiteExport.ts"
import { Sites } from "./analytics/Sites.ts"
import * as SitesRoutes from "./analytics/SitesRoutes.ts"
import { Stats } from "./analytics/Stats.ts"
import * as StatsRoutes from "./analytics/StatsRoutes.ts"
import { VisitRebuild } from "./analytics/VisitRebuild.ts"
import { AppConfig, type Network } from "./Config.ts"
import * as ConsoleRoutes from "./console/ConsoleRoutes.ts"
import { Blobs } from "./infra/blobs/Blobs.ts"
import * as Edge from "./infra/http/Edge.ts"
import * as Faults from "./infra/http/Faults.ts"
import * as JsonBody from "./infra/http/JsonBody.ts"
import * as KnownPaths from "./infra/http/KnownPaths.ts"
import { openFilesMax } from "./infra/process/OpenFiles.ts"
import * as Redis from "./infra/redis/Redis.ts"
import * as RedisTokenLease from "./infra/redis/RedisTokenLease.ts"
import * as Stores from "./infra/Stores.ts"
import { Readiness } from "./infra/telemetry/Readiness.ts"
import * as Front from "./infra/uws/Front.ts"
import { HotRoutes } from "./infra/uws/HotRoute.ts"
import { sayStoresReady } from "./Start.ts"
import * as DocsRoutes from "./system/DocsRoutes.ts"
import * as ReadinessChecks from "./system/ReadinessChecks.ts"
import * as SystemRoutes from "./system/SystemRoutes.ts"

/** The only place that wires: each layer is given what it needs, from the stores up to the routes. */

const rateBuckets = Layer.unwrap(
  Effect.map(AppConfig, ({ limits, redisUrl }) => {
    const options = {
      rateBurst: limits.rateBurst,
      idleMillis: limits.rateBucketIdleMillis,
      leaseTokens: limits.rateLeaseTokens
    }
    if (redisUrl === undefined) return RateBuckets.layer(options)
    return RateBuckets.layerShared(options).pipe(
      Layer.provide(RedisTokenLease.layer),
      Layer.provide(Redis.layer({ url: Redacted.make(Redacted.value(redisUrl)) }))
    )
  })
)

const rates = AnonymousRates.layer.pipe(Layer.provideMerge(rateBuckets))

const blobs = Layer.unwrap(
  Effect.map(AppConfig, ({ dataDir }) => Blobs.layer({ directory: join(dataDir, "files") }))
)

/** Users, keys and files, over Postgres and the disk. The first boot comes before the directories read the tables. */
const accounts = Layer.mergeAll(Keys.layer, Users.layer, RequestCounts.layer, Files.layer, rates).pipe(
  Layer.provideMerge(Layer.merge(KeyDirectory.layer, UserDirectory.layer)),
  Layer.provide(blobs),
  Layer.provideMerge(FirstBoot.layer)
)

/** From the log upwards: ids and realtime figures are read from it, the drain carries it into ClickHouse. */
const analytics = Layer.mergeAll(
  Sites.layer,
  Stats.layer,
  Breakdowns.layer,
  SiteExport.layer,
  Imports.layer,
  VisitRebuild.layer
).pipe(
  Layer.provideMerge(Ingest.layer),
  Layer.provideMerge(
    Layer.mergeAll(
      EventDrain.layer.pipe(Layer.provideMerge(EventSink.layer), Layer.provide(FirstEvents.layer)),
      EventIds.layer,
      Realtime.layer,
      DropCounts.layer,
      EventRates.layer,
      GeoIp.layer,
      Salts.layer.pipe(Layer.provide(SaltStore.layer))
    )
  ),
  Layer.provideMerge(Layer.merge(EventLog.layer, SiteDirectory.layer))
)

const middleware = Layer.mergeAll(
  Authentication.layer,
  RateLimiting.layer,
  Faults.layer,
  JsonBody.layer,
  AccountRoutes.pagesForAdmins,
  AdminRoutes.administratorsOnly
)

const accountsRoutes = HttpApiBuilder.layer(AccountsRoomApi).pipe(
  Layer.provide([AccountRoutes.layer, AdminRoutes.layer, KeysRoutes.layer, SystemRoutes.layer])
)

const analyticsRoutes = HttpApiBuilder.layer(AnalyticsRoomApi).pipe(
  Layer.provide([
    SitesRoutes.layer,
    StatsRoutes.layer,
    StatsRoutes.publicLayer,
    ImportRoutes.layer,
    RebuildRoutes.layer
  ])
)

/** What is served beside the API, whatever the rooms. */
const besides = Layer.merge(DocsRoutes.layer, ConsoleRoutes.layer)
const besidesPaths = [...DocsRoutes.paths, ...ConsoleRoutes.paths]

const serve = <E, R>(
  routes: Layer.Layer<never, E, R>,
  known: (others: typeof besidesPaths) => KnownPaths.KnownPaths
) =>
  HttpRouter.serve(
    Layer.unwrap(
      Effect.map(AppConfig, ({ corsOrigins }) =>
        Layer.merge(routes, besides).pipe(
          Layer.provide(Edge.layer({ known: known(besidesPaths), corsOrigins: [...corsOrigins] }))
        )
      )
    ).pipe(
      Layer.provide(middleware),
      Layer.provide([Etag.layer, HttpPlatform.layer]),
      Layer.provide(NodeServices.layer)
    ),
    { routerConfig: Edge.routerConfig, disableLogger: true, disableListenLog: true }
  )

const cidrOf = ({ address, prefix }: Network): string => `${address}/${prefix}`

const front = Layer.unwrap(
  Effect.map(AppConfig, ({ corsOrigins, host, limits, port, trustProxy }) =>
    Front.layer({
      host,
      port,
      corsOrigins: [...corsOrigins],
      trustProxy: typeof trustProxy === "number" ? trustProxy : trustProxy.map(cidrOf),
      limits: {
        maxConnections: Math.min(limits.connections, (openFilesMax() ?? Infinity) - limits.filesReserved),
        maxHeaderBytes: limits.headerBytes,
        drainDeadlineMillis: limits.drainMillis
      }
    })
  )
)

/** Built after the front, and so closed before it: `/readyz` says 503 while the listener still answers. */
const drainNotice = Layer.effectDiscard(
  Effect.gen(function* () {
    const readiness = yield* Readiness
    const { limits } = yield* AppConfig
    yield* HttpServer.HttpServer
    yield* Effect.addFinalizer(() => Effect.andThen(readiness.drain, Effect.sleep(limits.drainNoticeMillis)))
  })
)

const whole = Layer.merge(
  serve(Layer.mergeAll(accountsRoutes, analyticsRoutes, ScriptRoutes.layer), (others) =>
    KnownPaths.make(Api, [...others, ...ScriptRoutes.paths])
  ),
  drainNotice
).pipe(
  Layer.provideMerge(front.pipe(Layer.provide(Layer.effect(HotRoutes, ingestRoutes)))),
  Layer.provide([ReadinessChecks.accounts, ReadinessChecks.analytics, EventMetrics.layer]),
  Layer.provideMerge(Layer.merge(accounts, analytics)),
  Layer.provideMerge(Readiness.layer),
  Layer.provideMerge(Layer.tap(Stores.layer, () => sayStoresReady))
)

const accountsAlone = Layer.merge(
  serve(accountsRoutes, (others) => KnownPaths.make(AccountsRoomApi, others)),
  drainNotice
).pipe(
  Layer.provideMerge(front.pipe(Layer.provide(Layer.succeed(HotRoutes, [])))),
  Layer.provide(ReadinessChecks.accounts),
  Layer.provideMerge(accounts),
  Layer.provideMerge(Readiness.layer),
  Layer.provideMerge(Layer.tap(Stores.postgres, () => sayStoresReady))
)

/** The server with the rooms of `ROOMS`. What is left for the caller is the configuration. */
export const layer = Layer.unwrap(
  Effect.map(AppConfig, ({ rooms }): Layer.Layer<Served, Layer.Error<typeof whole>, AppConfig> =>
    rooms.has("analytics") ? whole : accountsAlone
  )
)

/** What the start, and tests, ask of a server whatever its rooms. */
type Served = HttpServer.HttpServer | FirstBoot | Readiness | SqlClient
