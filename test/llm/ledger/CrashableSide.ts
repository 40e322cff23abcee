import { Clock, Effect, Exit, Layer, Redacted, Scope } from "effect"
import { AppConfig } from "#src/Config.ts"
import { Quarantines } from "#src/infra/drains/Quarantines.ts"
import * as Postgres from "#src/infra/postgres/Postgres.ts"
import { Readiness } from "#src/infra/telemetry/Readiness.ts"
import { startProxy } from "#test/harness/TcpProxy.ts"
import { type Side, sideIn, temporaryDirectory } from "./Sides.ts"

/** A ledger that can lose its memory: its log and Postgres stay, its holds and leases are left behind. */
export interface CrashableSide {
  readonly side: () => Side
  /** Ends it without a word to Postgres, and begins anew on the same log. */
  readonly crash: Effect.Effect<void>
  readonly stop: Effect.Effect<void>
}

export const crashableSide = Effect.fnUntraced(function* (databaseUrl: string, clock: Clock.Clock) {
  const direct = new URL(databaseUrl)
  const proxy = yield* Effect.acquireRelease(
    Effect.promise(() => startProxy({ host: direct.hostname, port: Number(direct.port || 5432) })),
    ({ close }) => Effect.promise(close)
  )
  const through = new URL(databaseUrl)
  through.hostname = "127.0.0.1"
  through.port = String(proxy.port)
  const dataDir = yield* temporaryDirectory
  const seen = Quarantines.layer.pipe(Layer.provideMerge(Readiness.layer))
  const postgres = Layer.merge(Postgres.layer, seen).pipe(
    Layer.provideMerge(
      AppConfig.layerOf({
        dataDir,
        databaseUrl: Redacted.make(through.href),
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
      proxy.breakWire("refuse")
      yield* stop
      proxy.mend()
      running = yield* start
    })
  }
  return crashable
})
