import { Context, Effect, Layer } from "effect"
import { HotRoutes, type HotRoute } from "./HotRoute.ts"
import { HotSockets, type HotSocketRoute } from "./HotSocket.ts"
import { type RawRoute, RawRouteList } from "./RawRoute.ts"

interface Table {
  readonly routes: Array<HotRoute>
  readonly sockets: Array<HotSocketRoute>
  readonly raw: Array<RawRoute>
}

/** The routes of each room that are served beside the Effect pipeline, before the front reads them. */
export class RawRoutes extends Context.Service<RawRoutes, Table>()("signalbox/infra/RawRoutes") {
  static readonly layer = Layer.effect(
    RawRoutes,
    Effect.sync(() => ({ routes: [], sockets: [], raw: [] }))
  )

  /** Adds the hot routes of a room. */
  static readonly add = <E, R>(routes: Effect.Effect<ReadonlyArray<HotRoute>, E, R>) =>
    Layer.effectDiscard(
      Effect.gen(function* () {
        const table = yield* RawRoutes
        table.routes.push(...(yield* routes))
      })
    )

  /** Adds the socket routes of a room. */
  static readonly addSockets = <E, R>(sockets: Effect.Effect<ReadonlyArray<HotSocketRoute>, E, R>) =>
    Layer.effectDiscard(
      Effect.gen(function* () {
        const table = yield* RawRoutes
        table.sockets.push(...(yield* sockets))
      })
    )

  /** Adds the raw routes of a room. */
  static readonly addRaw = <E, R>(raw: Effect.Effect<ReadonlyArray<RawRoute>, E, R>) =>
    Layer.effectDiscard(
      Effect.gen(function* () {
        const table = yield* RawRoutes
        table.raw.push(...(yield* raw))
      })
    )

  /** For the front: all routes of the rooms that were added before. */
  static readonly forFront = Layer.mergeAll(
    Layer.effect(
      HotRoutes,
      Effect.map(RawRoutes, ({ routes }) => routes)
    ),
    Layer.effect(
      HotSockets,
      Effect.map(RawRoutes, ({ sockets }) => sockets)
    ),
    Layer.effect(
      RawRouteList,
      Effect.map(RawRoutes, ({ raw }) => raw)
    )
  )
}
