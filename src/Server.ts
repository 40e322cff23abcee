import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Layer } from "effect"
import { Etag, HttpPlatform, HttpRouter, HttpServer } from "effect/http"
import type { SqlClient } from "effect/sql/SqlClient"
import type { FirstBoot } from "./accounts/FirstBoot.ts"
import type { Sessions } from "./accounts/sessions/Sessions.ts"
import { AppConfig, type Config, networksOf } from "./Config.ts"
import * as ConsoleRoutes from "./console/ConsoleRoutes.ts"
import * as Edge from "./http/Edge.ts"
import * as ErrorBoundary from "./http/ErrorBoundary.ts"
import * as JsonBody from "./http/JsonBody.ts"
import * as KnownPaths from "./http/KnownPaths.ts"
import { connectionsFor, type TooFewFiles } from "./infra/process/OpenFiles.ts"
import * as Stores from "./Stores.ts"
import * as DiskSpace from "./infra/telemetry/DiskSpace.ts"
import { Readiness } from "./infra/telemetry/Readiness.ts"
import { BlobStore } from "./infra/blobs/BlobStore.ts"
import { Egress } from "./infra/egress/Egress.ts"
import { Jobs } from "./infra/jobs/Jobs.ts"
import { Idempotency } from "./infra/postgres/Idempotency.ts"
import { Notices } from "./infra/notices/Notices.ts"
import { Processes } from "./infra/processes/Processes.ts"
import { Workers } from "./infra/workers/Workers.ts"
import { Secrets } from "./infra/secrets/Secrets.ts"
import * as Front from "./front/Front.ts"
import { RawRoutes } from "./front/RawRoutes.ts"
import { publish } from "./Publication.ts"
import type { Room, RoomServer } from "./Room.ts"
import { rooms } from "./Rooms.ts"
import { postgresMigrationsWith } from "./Migrations.ts"
import { middleware as accountsMiddleware } from "./accounts/Server.ts"
import { offers as accountsOffers } from "./accounts/Offers.ts"
import { sayStoresReady } from "./Start.ts"
import * as DocsRoutes from "./docs/DocsRoutes.ts"
import { Quarantines } from "#src/infra/drains/Quarantines.ts"

/** Puts the rooms of `ROOMS` over the stores and behind the front. */

/** A room that is served. */
interface Loaded extends RoomServer {
  readonly room: Room
}

/** The document and the console, which every server has beside its rooms. */
const besidesOf = (list: ReadonlyArray<Room>) =>
  Layer.merge(DocsRoutes.layerOf(publish(list)), ConsoleRoutes.layer)
const besidesPaths = [...DocsRoutes.paths, ...ConsoleRoutes.paths]

const middleware = Layer.mergeAll(accountsMiddleware, ErrorBoundary.layer, JsonBody.layer)

const merged = <E, R>(layers: ReadonlyArray<Layer.Layer<never, E, R>>): Layer.Layer<never, E, R> =>
  layers.reduce<Layer.Layer<never, E, R>>((all, layer) => Layer.merge(all, layer), Layer.empty)

const pathsOf = (loaded: ReadonlyArray<Loaded>): KnownPaths.KnownPaths =>
  KnownPaths.make([
    ...besidesPaths,
    ...loaded.flatMap(({ paths, room }) => [...KnownPaths.endpointsOf(room.api), ...paths])
  ])

const serve = (config: Config, list: ReadonlyArray<Room>, loaded: ReadonlyArray<Loaded>) =>
  HttpRouter.serve(
    Layer.merge(merged(loaded.map(({ served }) => served)), besidesOf(list)).pipe(
      Layer.provide(Edge.layer({ known: pathsOf(loaded), corsOrigins: [...config.corsOrigins] })),
      Layer.provide(middleware),
      Layer.provide([Etag.layer, HttpPlatform.layer]),
      Layer.provide(NodeServices.layer)
    ),
    { routerConfig: Edge.routerConfig, disableLogger: true, disableListenLog: true }
  )

const front = (
  { corsOrigins, host, limits, port, trustProxy }: Config,
  loaded: ReadonlyArray<Loaded>,
  maxConnections: number
) =>
  Front.layer({
    host,
    port,
    corsOrigins: [...corsOrigins],
    trustProxy: networksOf(trustProxy),
    limits: {
      maxConnections,
      maxHeaderBytes: limits.headerBytes,
      slowUploadWindowMillis: limits.slowBodyMillis,
      drainDeadlineMillis: limits.drainMillis
    }
  }).pipe(
    Layer.provide(RawRoutes.forFront),
    Layer.provide(merged(loaded.map(({ raw }) => raw))),
    Layer.provide(RawRoutes.layer)
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

/** ClickHouse starts beside Postgres where a room needs it; its layers ask for the same one. */
const storesOf = (list: ReadonlyArray<Room>, loaded: ReadonlyArray<Loaded>) => {
  const postgres = Stores.postgresWith(postgresMigrationsWith(list))
  return loaded.some(({ room }) => room.needs.includes("clickhouse"))
    ? Layer.merge(postgres, Stores.clickHouse)
    : postgres
}

const serverOf = (
  config: Config,
  list: ReadonlyArray<Room>,
  loaded: ReadonlyArray<Loaded>,
  maxConnections: number
) =>
  Layer.merge(serve(config, list, loaded), drainNotice).pipe(
    Layer.provideMerge(front(config, loaded, maxConnections)),
    Layer.provideMerge(accountsOffers),
    Layer.provideMerge(Jobs.layer),
    Layer.provideMerge(
      Layer.mergeAll(
        Quarantines.layer,
        Secrets.layer,
        Notices.layer,
        Egress.layer,
        Idempotency.layer,
        Processes.layer,
        Workers.layer,
        BlobStore.layer
      )
    ),
    Layer.provideMerge(DiskSpace.layer),
    Layer.provideMerge(Readiness.layer),
    Layer.provideMerge(Layer.tap(storesOf(list, loaded), () => sayStoresReady))
  )

const isServed = ({ rooms: named }: Config, { name }: Room): boolean => name === "accounts" || named.has(name)

const load = (room: Room): Effect.Effect<Loaded> =>
  Effect.map(
    Effect.promise(() => room.server()),
    (server) => ({ ...server, room })
  )

/** The server with those of the rooms that `ROOMS` names. The caller provides the configuration. */
export const layerOf = (
  list: ReadonlyArray<Room>
): Layer.Layer<Served, Layer.Error<ReturnType<typeof serverOf>> | TooFewFiles, AppConfig> =>
  Layer.unwrap(
    Effect.gen(function* () {
      const config = yield* AppConfig
      const loaded = yield* Effect.forEach(
        list.filter((room) => isServed(config, room)),
        load
      )
      return serverOf(config, list, loaded, yield* connectionsFor(config.limits))
    })
  )

export const layer = layerOf(rooms)

/** The services that the start and tests use of a server with any rooms. */
type Served = HttpServer.HttpServer | FirstBoot | Readiness | Sessions | SqlClient
