import { Layer } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import * as Counting from "#src/analytics/counting/Counting.ts"
import { DropCounts } from "./ingest/DropCounts.ts"
import { EventDrain } from "./store/EventDrain.ts"
import { EventIds } from "./ingest/EventIds.ts"
import { EventLog, ImportLog } from "./ingest/EventLog.ts"
import { EventRates } from "./ingest/EventRates.ts"
import { FirstAccepted } from "./ingest/FirstAccepted.ts"
import { FirstEvents } from "./store/FirstEvents.ts"
import { GeoIp } from "./ingest/GeoIp.ts"
import * as ImportRoutes from "./imports/ImportRoutes.ts"
import { Imports } from "./imports/Imports.ts"
import { Ingest } from "./ingest/Ingest.ts"
import { ingestRoutes } from "./ingest/IngestRoutes.ts"
import { Purges } from "./purges/Purges.ts"
import * as PurgeWorker from "./purges/PurgeWorker.ts"
import { Realtime } from "./reads/Realtime.ts"
import * as RebuildRoutes from "./store/RebuildRoutes.ts"
import { Salts } from "./ingest/Salts.ts"
import { SaltStore } from "./ingest/SaltStore.ts"
import * as ScriptRoutes from "./ingest/ScriptRoutes.ts"
import * as ThreadedEventSink from "./store/ThreadedEventSink.ts"
import { SiteDirectory } from "./sites/Sites.ts"
import { Sites } from "./sites/Sites.ts"
import * as SitesRoutes from "./sites/SitesRoutes.ts"
import { Stats } from "./reads/Stats.ts"
import * as StatsRoutes from "./reads/StatsRoutes.ts"
import { AnalyticsRoomApi } from "#schemas/analytics/AnalyticsRoomApi.ts"
import type { RoomServer } from "#src/Room.ts"
import * as Stores from "#src/Stores.ts"
import * as AnalyticsMetrics from "./AnalyticsMetrics.ts"
import * as AnalyticsReadiness from "./AnalyticsReadiness.ts"
import { RawRoutes } from "#src/front/RawRoutes.ts"

/** From the log upwards: ids and realtime figures are read from it, the drain carries it into ClickHouse. */
const services = Layer.mergeAll(Sites.layer, Stats.layer, Imports.layer, Counting.layer).pipe(
  Layer.provideMerge(Purges.layer),
  Layer.provideMerge(Ingest.layer),
  Layer.provideMerge(
    Layer.mergeAll(
      EventDrain.layer.pipe(Layer.provideMerge(ThreadedEventSink.layer), Layer.provide(FirstEvents.layer)),
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
    AnalyticsMetrics.layer,
    PurgeWorker.layer
  ).pipe(Layer.provide(services), Layer.provide(Stores.clickHouse)),
  raw: RawRoutes.add(ingestRoutes).pipe(Layer.provide(services), Layer.provide(Stores.clickHouse)),
  paths: ScriptRoutes.paths
}
