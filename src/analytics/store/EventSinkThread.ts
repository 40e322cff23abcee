import { workerData } from "node:worker_threads"
import * as NodeWorkerRunner from "@effect/platform-node/NodeWorkerRunner"
import { Effect, Layer } from "effect"
import { RpcServer } from "effect/rpc"
import { SinkUnavailable } from "#streams/kernel/Sink.ts"
import { unpacked } from "#streams/kernel/RecordBlock.ts"
import { AppConfig } from "#src/Config.ts"
import { ClickHouse } from "#src/infra/clickhouse/ClickHouse.ts"
import { ClickHouseEndpoint } from "#src/infra/clickhouse/ClickHouseEndpoint.ts"
import * as Log from "#src/infra/telemetry/Log.ts"
import { alone, CountingLease, type CountingLeaseService } from "../counting/CountingLease.ts"
import * as EventSink from "./EventSink.ts"
import { type Now, SinkCalls, Superseded } from "./EventSinkCalls.ts"
import type { ThreadData } from "./EventSinkClient.ts"
import type { Lane } from "./VisitUpdate.ts"

/**
 * The thread of the event sink: it reads events, folds them into visits and writes blocks of columns, beside the thread that
 * accepts. Each call brings ClickHouse's address and the lease as they are at the time.
 */

const { limits, logFormat, logLevel } = workerData as ThreadData

/** As of the last call. */
let now: Now | undefined

const endpoint = Layer.succeed(ClickHouseEndpoint, {
  current: () => {
    if (now === undefined) throw new Error("there was no call yet")
    return now.endpoint
  },
  restarts: () => 0,
  pid: () => undefined,
  makeDatabase: Effect.void
})

/** Until the main thread is told. */
let supersededEpoch: number | undefined

/** The main thread waits for the lease before it calls. */
const lease: CountingLeaseService = {
  ...alone,
  held: Effect.sync(() => now?.held ?? undefined),
  superseded: (epoch) => {
    supersededEpoch = epoch
  }
}

const handlers = SinkCalls.toLayer(
  Effect.gen(function* () {
    const stored = new Set<string>()
    const { importTurnMonths: months, importTurnRows: rows } = limits
    const options = { onStored: (site: string) => void stored.add(site), importTurns: { rows, months } }
    const sink = yield* EventSink.make(options).pipe(Effect.provideService(CountingLease, lease))

    const under = <A, E>(call: Now, use: Effect.Effect<A, E | SinkUnavailable>) =>
      Effect.suspend(() => {
        now = call
        return Effect.mapError(use, (error) => {
          const epoch = supersededEpoch
          if (epoch === undefined || !(error instanceof SinkUnavailable)) return error
          supersededEpoch = undefined
          return new Superseded({ epoch, unavailable: error })
        })
      })
    const laneOf = (lane: Lane) => (lane === "live" ? sink : sink.imports)

    return SinkCalls.of({
      Write: ({ batch, lane, now: call }) =>
        Effect.map(under(call, laneOf(lane).write({ ...batch, records: unpacked(batch.records) })), () => {
          const sites = Array.from(stored)
          stored.clear()
          return { sites, stats: sink.stats() }
        }),
      Check: ({ lane, now: call }) => under(call, laneOf(lane).check),
      Rebuild: ({ isCheck, now: call, where }) =>
        Effect.map(under(call, sink.rebuild(where, isCheck)), (reconciled) => ({
          reconciled,
          stats: sink.stats()
        }))
    })
  })
)

const served = RpcServer.layer(SinkCalls, { disableTracing: true, disableFatalDefects: true }).pipe(
  Layer.provide(handlers),
  Layer.provide(ClickHouse.layer),
  Layer.provide(endpoint),
  Layer.provide(AppConfig.layerOf({ limits })),
  Layer.provide(RpcServer.layerProtocolWorkerRunner),
  Layer.provide(NodeWorkerRunner.layer),
  Layer.provideMerge(Log.layer(logLevel, undefined, logFormat))
)

Effect.runFork(Layer.launch(served))
