import { Effect, Layer } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Breakdowns } from "./Breakdowns.ts"
import * as Counting from "#src/analytics/counting/Counting.ts"
import { DropCounts } from "./DropCounts.ts"
import { EventDrain } from "./EventDrain.ts"
import { EventIds } from "./EventIds.ts"
import { EventLog, ImportLog } from "./EventLog.ts"
import { EventSink } from "./EventSink.ts"
import { EventRates } from "./EventRates.ts"
import * as EventMetrics from "./EventMetrics.ts"
import { FirstAccepted } from "./FirstAccepted.ts"
import { FirstEvents } from "./FirstEvents.ts"
import { GeoIp } from "./GeoIp.ts"
import * as ImportRoutes from "./ImportRoutes.ts"
import { Imports } from "./Imports.ts"
import { Ingest } from "./Ingest.ts"
import { ingestRoutes } from "./IngestRoutes.ts"
import { Realtime } from "./Realtime.ts"
import * as RebuildRoutes from "./RebuildRoutes.ts"
import { Salts } from "./Salts.ts"
import { SaltStore } from "./SaltStore.ts"
import * as ScriptRoutes from "./ScriptRoutes.ts"
import { SiteDirectory } from "./SiteDirectory.ts"
import { SiteExport } from "./SiteExport.ts"
import { Sites } from "./Sites.ts"
import * as SitesRoutes from "./SitesRoutes.ts"
import { Stats } from "./Stats.ts"
import * as StatsRoutes from "./StatsRoutes.ts"
import { VisitRebuild } from "./VisitRebuild.ts"
import { AnalyticsRoomApi } from "#schemas/analytics/AnalyticsRoomApi.ts"
import type { RoomServer } from "#src/Room.ts"
import * as Stores from "#src/Stores.ts"
import { Quarantines } from "#src/system/Quarantines.ts"
import * as AnalyticsReadiness from "./AnalyticsReadiness.ts"
import { RawRoutes } from "#src/infra/uws/RawRoutes.ts"

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

const endpoints = HttpApiBuilder.layer(AnalyticsRoomApi).pipe(
  Layer.provide([
    SitesRoutes.layer,
    StatsRoutes.layer,
    StatsRoutes.publicLayer,
    ImportRoutes.layer,
    RebuildRoutes.layer
  ])
)

export const server: RoomServer = {
  served: Layer.mergeAll(
    endpoints,
    ScriptRoutes.layer,
    AnalyticsReadiness.layer,
    EventMetrics.layer,
    Quarantines.entry(
      "events",
      Effect.map(EventDrain, ({ quarantine }) => quarantine)
    ),
    Quarantines.entry(
      "imports",
      Effect.map(EventDrain, ({ importQuarantine }) => importQuarantine)
    )
  ).pipe(Layer.provide(services), Layer.provide(Stores.clickHouse)),
  raw: RawRoutes.add(ingestRoutes).pipe(Layer.provide(services), Layer.provide(Stores.clickHouse)),
  paths: ScriptRoutes.paths
}
