import { HttpApi } from "effect/http-api"
import { strictBodies } from "../core/StrictBodies.ts"
import { ImportApi } from "./ImportApi.ts"
import { RebuildApi } from "./RebuildApi.ts"
import { SitesApi } from "./Site.ts"
import { PublicStatsApi, StatsApi } from "./StatsApi.ts"

/** The endpoints of analytics that pass the Effect pipeline. */
export class AnalyticsRoomApi extends HttpApi.make("signalbox")
  .add(SitesApi)
  .add(StatsApi)
  .add(PublicStatsApi)
  .add(ImportApi)
  .add(RebuildApi)
  .annotate(HttpApi.PayloadParseOptions, strictBodies) {}
