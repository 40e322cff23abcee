import { Effect, Layer } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Breakdowns } from "#src/analytics/Breakdowns.ts"
import * as Counting from "#src/analytics/counting/Counting.ts"
import { DropCounts } from "#src/analytics/DropCounts.ts"
import { EventDrain } from "#src/analytics/EventDrain.ts"
import { EventIds } from "#src/analytics/EventIds.ts"
import { EventLog, ImportLog } from "#src/analytics/EventLog.ts"
import { EventSink } from "#src/analytics/EventSink.ts"
import { EventRates } from "#src/analytics/EventRates.ts"
import * as EventMetrics from "#src/analytics/EventMetrics.ts"
import { FirstAccepted } from "#src/analytics/FirstAccepted.ts"
import { FirstEvents } from "#src/analytics/FirstEvents.ts"
import { GeoIp } from "#src/analytics/GeoIp.ts"
import * as ImportRoutes from "#src/analytics/ImportRoutes.ts"
import { Imports } from "#src/analytics/Imports.ts"
import { Ingest } from "#src/analytics/Ingest.ts"
import { ingestRoutes } from "#src/analytics/IngestRoutes.ts"
import { Realtime } from "#src/analytics/Realtime.ts"
import * as RebuildRoutes from "#src/analytics/RebuildRoutes.ts"
import { Salts } from "#src/analytics/Salts.ts"
import { SaltStore } from "#src/analytics/SaltStore.ts"
import * as ScriptRoutes from "#src/analytics/ScriptRoutes.ts"
import { SiteDirectory } from "#src/analytics/SiteDirectory.ts"
import { SiteExport } from "#src/analytics/SiteExport.ts"
import { Sites } from "#src/analytics/Sites.ts"
import * as SitesRoutes from "#src/analytics/SitesRoutes.ts"
import { Stats } from "#src/analytics/Stats.ts"
import * as StatsRoutes from "#src/analytics/StatsRoutes.ts"
import { VisitRebuild } from "#src/analytics/VisitRebuild.ts"
import { AnalyticsRoomApi } from "#schemas/Api.ts"
import * as Stores from "#src/infra/Stores.ts"
import { Quarantines } from "#src/system/Quarantines.ts"
import * as ReadinessChecks from "#src/system/ReadinessChecks.ts"
import { HotRouteTable } from "./HotRouteTable.ts"

/** From the log upwards: ids and realtime figures are read from it, the drain carries it into ClickHouse. */
const services = Layer.mergeAll(
  Sites.layer,
  Stats.layer,
  Breakdowns.layer,
  SiteExport.layer,
  Imports.layer,
  VisitRebuild.layer,
  Counting.layer
).pipe(
  Layer.provideMerge(Ingest.layer),
  Layer.provideMerge(
    Layer.mergeAll(
      EventDrain.layer.pipe(Layer.provideMerge(EventSink.layer), Layer.provide(FirstEvents.layer)),
      EventIds.layer,
      Realtime.layer,
      DropCounts.layer,
      EventRates.layer,
      FirstAccepted.layer,
      GeoIp.layer,
      Salts.layer.pipe(Layer.provide(SaltStore.layer))
    )
  ),
  Layer.provideMerge(
    Layer.mergeAll(EventLog.layer, ImportLog.layer, SiteDirectory.layer, Counting.leaseLayer)
  )
)

export const api = AnalyticsRoomApi

export const paths = ScriptRoutes.paths

const apiRoutes = HttpApiBuilder.layer(AnalyticsRoomApi).pipe(
  Layer.provide([
    SitesRoutes.layer,
    StatsRoutes.layer,
    StatsRoutes.publicLayer,
    ImportRoutes.layer,
    RebuildRoutes.layer
  ])
)

export const routes = Layer.mergeAll(
  apiRoutes,
  ScriptRoutes.layer,
  ReadinessChecks.analytics,
  EventMetrics.layer,
  Quarantines.entry(
    "events",
    Effect.map(EventDrain, ({ quarantine }) => quarantine)
  ),
  Quarantines.entry(
    "imports",
    Effect.map(EventDrain, ({ importQuarantine }) => importQuarantine)
  )
).pipe(Layer.provide(services), Layer.provide(Stores.clickHouse))

export const hotRoutes = HotRouteTable.add(ingestRoutes).pipe(
  Layer.provide(services),
  Layer.provide(Stores.clickHouse)
)
