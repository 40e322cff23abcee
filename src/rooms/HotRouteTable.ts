import { Context, Effect, Layer } from "effect"
import { HotRoutes, type HotRoute } from "#src/infra/uws/HotRoute.ts"

/** Where each room puts the routes that are served beside the Effect pipeline, before the front reads them. */
export class HotRouteTable extends Context.Service<HotRouteTable, Array<HotRoute>>()(
  "signalbox/rooms/HotRouteTable"
) {
  static readonly layer = Layer.effect(
    HotRouteTable,
    Effect.sync(() => [])
  )

  /** Adds the routes of a room. */
  static readonly add = <E, R>(routes: Effect.Effect<ReadonlyArray<HotRoute>, E, R>) =>
    Layer.effectDiscard(
      Effect.gen(function* () {
        const table = yield* HotRouteTable
        table.push(...(yield* routes))
      })
    )

  /** For the front: all routes of the rooms that were added before. */
  static readonly hotRoutes = Layer.effect(HotRoutes, HotRouteTable)
}
