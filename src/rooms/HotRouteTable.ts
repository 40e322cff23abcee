import { Context, Effect, Layer } from "effect"
import { HotRoutes, type HotRoute } from "#src/infra/uws/HotRoute.ts"
import { HotSockets, type HotSocketRoute } from "#src/infra/uws/HotSocket.ts"

interface Table {
  readonly routes: Array<HotRoute>
  readonly sockets: Array<HotSocketRoute>
}

/** Where each room puts what is served beside the Effect pipeline, before the front reads it. */
export class HotRouteTable extends Context.Service<HotRouteTable, Table>()("signalbox/rooms/HotRouteTable") {
  static readonly layer = Layer.effect(
    HotRouteTable,
    Effect.sync(() => ({ routes: [], sockets: [] }))
  )

  /** Adds the routes of a room. */
  static readonly add = <E, R>(routes: Effect.Effect<ReadonlyArray<HotRoute>, E, R>) =>
    Layer.effectDiscard(
      Effect.gen(function* () {
        const table = yield* HotRouteTable
        table.routes.push(...(yield* routes))
      })
    )

  /** Adds the socket routes of a room. */
  static readonly addSockets = <E, R>(sockets: Effect.Effect<ReadonlyArray<HotSocketRoute>, E, R>) =>
    Layer.effectDiscard(
      Effect.gen(function* () {
        const table = yield* HotRouteTable
        table.sockets.push(...(yield* sockets))
      })
    )

  /** For the front: all routes of the rooms that were added before. */
  static readonly hotRoutes = Layer.merge(
    Layer.effect(
      HotRoutes,
      Effect.map(HotRouteTable, ({ routes }) => routes)
    ),
    Layer.effect(
      HotSockets,
      Effect.map(HotRouteTable, ({ sockets }) => sockets)
    )
  )
}
