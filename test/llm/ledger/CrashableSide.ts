import { Clock, Effect, Exit, Layer, Redacted, Scope } from "effect"
import { AppConfig } from "#src/Config.ts"
import { Quarantines } from "#src/infra/drains/Quarantines.ts"
import * as Postgres from "#src/infra/postgres/Postgres.ts"
import { Readiness } from "#src/infra/telemetry/Readiness.ts"
import { wireTo } from "#test/harness/ServerStores.ts"
import { type Side, sideIn, temporaryDirectory } from "./Sides.ts"

/** A ledger that can lose its memory: its log and Postgres stay, its holds and leases are left behind. */
export interface CrashableSide {
  readonly side: () => Side
  /** Ends it without a word to Postgres, and begins anew on the same log. */
  readonly crash: Effect.Effect<void>
  readonly stop: Effect.Effect<void>
}

export const crashableSide = Effect.fnUntraced(function* (databaseUrl: string, clock: Clock.Clock) {
  const { url, wire } = yield* Effect.acquireRelease(
    Effect.promise(() => wireTo(databaseUrl, 5432)),
    ({ wire }) => Effect.promise(wire.close)
  )
  const dataDir = yield* temporaryDirectory
  const seen = Quarantines.layer.pipe(Layer.provideMerge(Readiness.layer))
  const postgres = Layer.merge(Postgres.layer, seen).pipe(
    Layer.provideMerge(
      AppConfig.layerOf({
        dataDir,
        databaseUrl: Redacted.make(url),
        // Other processes have 400 ms to give back what they only lease: enough on a machine at work.
        limits: { ledgerWaitMillis: 600, ledgerPollMillis: 200, ledgerIdleMillis: 5_000, retryMaxMillis: 200 }
      })
    )
  )
  const start = Effect.gen(function* () {
    const scope = yield* Scope.make()
    const context = yield* Layer.build(Layer.fresh(postgres)).pipe(Scope.provide(scope))
    const side = yield* sideIn(dataDir).pipe(Effect.provideContext(context), Scope.provide(scope))
    return { scope, side }
  }).pipe(Effect.provideService(Clock.Clock, clock), Effect.orDie)
  let running = yield* start
  const stop = Effect.suspend(() => Scope.close(running.scope, Exit.void))
  const crashable: CrashableSide = {
    side: () => running.side,
    stop,
    crash: Effect.gen(function* () {
      wire.breakWire("refuse")
      yield* stop
      wire.mend()
      running = yield* start
    })
  }
  return crashable
})
