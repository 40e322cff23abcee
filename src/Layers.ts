import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Layer } from "effect"
import { Etag, HttpPlatform, HttpRouter, HttpServer } from "effect/http"
import type { SqlClient } from "effect/sql/SqlClient"
import type { FirstBoot } from "./accounts/FirstBoot.ts"
import { AppConfig, type Config, networksOf } from "./Config.ts"
import * as ConsoleRoutes from "./console/ConsoleRoutes.ts"
import * as Edge from "./infra/http/Edge.ts"
import * as Faults from "./infra/http/Faults.ts"
import * as JsonBody from "./infra/http/JsonBody.ts"
import * as KnownPaths from "./infra/http/KnownPaths.ts"
import { connectionsFor, type TooFewFiles } from "./infra/process/OpenFiles.ts"
import * as Stores from "./infra/Stores.ts"
import * as DiskSpace from "./infra/telemetry/DiskSpace.ts"
import { Readiness } from "./infra/telemetry/Readiness.ts"
import * as Front from "./infra/uws/Front.ts"
import * as AccountsRoom from "./rooms/AccountsRoom.ts"
import * as AgentsRoom from "./rooms/AgentsRoom.ts"
import * as AnalyticsRoom from "./rooms/AnalyticsRoom.ts"
import { HotRouteTable } from "./rooms/HotRouteTable.ts"
import * as LlmRoom from "./rooms/LlmRoom.ts"
import { sayStoresReady } from "./Start.ts"
import * as DocsRoutes from "./system/DocsRoutes.ts"
import { Quarantines } from "./system/Quarantines.ts"

/** Puts the rooms of `ROOMS` (each wired in rooms/) over the stores and behind the front. */

/** What is served beside the API, whatever the rooms. */
const besides = Layer.merge(DocsRoutes.layer, ConsoleRoutes.layer)
const besidesPaths = [...DocsRoutes.paths, ...ConsoleRoutes.paths]

const middleware = Layer.mergeAll(AccountsRoom.middleware, Faults.layer, JsonBody.layer)

/** A layer that is there or not: what it gives is nobody's business but its room's. */
const ifOn = <E, R>(isOn: boolean, layer: Layer.Layer<never, E, R>): Layer.Layer<never, E, R> =>
  isOn ? layer : Layer.empty

const pathsOf = ({ rooms }: Config): KnownPaths.KnownPaths =>
  KnownPaths.make([
    ...besidesPaths,
    ...KnownPaths.endpointsOf(AccountsRoom.api),
    ...(rooms.has("analytics") ? [...KnownPaths.endpointsOf(AnalyticsRoom.api), ...AnalyticsRoom.paths] : []),
    ...(rooms.has("llm") ? KnownPaths.endpointsOf(LlmRoom.api) : []),
    ...(rooms.has("agents") ? [...KnownPaths.endpointsOf(AgentsRoom.api), ...AgentsRoom.paths] : [])
  ])

const serve = (config: Config) =>
  HttpRouter.serve(
    Layer.mergeAll(
      AccountsRoom.routes,
      ifOn(config.rooms.has("analytics"), AnalyticsRoom.routes),
      ifOn(config.rooms.has("llm"), LlmRoom.routes),
      ifOn(config.rooms.has("agents"), AgentsRoom.routes),
      besides
    ).pipe(
      Layer.provide(Edge.layer({ known: pathsOf(config), corsOrigins: [...config.corsOrigins] })),
      Layer.provide(middleware),
      Layer.provide([Etag.layer, HttpPlatform.layer]),
      Layer.provide(NodeServices.layer)
    ),
    { routerConfig: Edge.routerConfig, disableLogger: true, disableListenLog: true }
  )

const front = ({ corsOrigins, host, limits, port, rooms, trustProxy }: Config, maxConnections: number) =>
  Front.layer({
    host,
    port,
    corsOrigins: [...corsOrigins],
    trustProxy: networksOf(trustProxy),
    limits: {
      maxConnections,
      maxHeaderBytes: limits.headerBytes,
      drainDeadlineMillis: limits.drainMillis
    }
  }).pipe(
    Layer.provide(HotRouteTable.hotRoutes),
    Layer.provide(ifOn(rooms.has("analytics"), AnalyticsRoom.hotRoutes)),
    Layer.provide(ifOn(rooms.has("llm"), LlmRoom.hotRoutes)),
    Layer.provide(ifOn(rooms.has("agents"), AgentsRoom.hotSockets)),
    Layer.provide(HotRouteTable.layer)
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

/** ClickHouse starts beside Postgres where a room counts something; the rooms that do ask for the same layer. */
const storesOf = ({ rooms }: Config) =>
  Layer.merge(
    Stores.postgres,
    ifOn(rooms.has("analytics") || rooms.has("llm") || rooms.has("agents"), Stores.clickHouse)
  )

const serverOf = (config: Config, maxConnections: number) =>
  Layer.merge(serve(config), drainNotice).pipe(
    Layer.provideMerge(front(config, maxConnections)),
    Layer.provide(AccountsRoom.checks),
    Layer.provideMerge(AccountsRoom.services),
    Layer.provideMerge(Quarantines.layer),
    Layer.provideMerge(DiskSpace.layer),
    Layer.provideMerge(Readiness.layer),
    Layer.provideMerge(Layer.tap(storesOf(config), () => sayStoresReady))
  )

/** The server with the rooms of `ROOMS`. What is left for the caller is the configuration. */
export const layer: Layer.Layer<Served, Layer.Error<ReturnType<typeof serverOf>> | TooFewFiles, AppConfig> =
  Layer.unwrap(
    Effect.gen(function* () {
      const config = yield* AppConfig
      return serverOf(config, yield* connectionsFor(config.limits))
    })
  )

/** What the start, and tests, ask of a server whatever its rooms. */
type Served = HttpServer.HttpServer | FirstBoot | Readiness | SqlClient
