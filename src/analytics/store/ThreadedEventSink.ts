import { Effect, Layer } from "effect"
import type { RpcClientError } from "effect/rpc"
import { packed } from "#streams/kernel/RecordBlock.ts"
import { type Sink, SinkUnavailable } from "#streams/kernel/Sink.ts"
import { AppConfig } from "#src/Config.ts"
import { ClickHouseEndpoint } from "#src/infra/clickhouse/ClickHouseEndpoint.ts"
import * as Log from "#src/infra/telemetry/Log.ts"
import { CountingLease } from "../counting/CountingLease.ts"
import { EventSink, type EventSinkService, type EventSinkStats } from "./EventSink.ts"
import { FirstEvents } from "./FirstEvents.ts"
import type { CallFailure, Now } from "./EventSinkCalls.ts"
import { makeClient, startThread, Uncertain } from "./EventSinkClient.ts"
import type { Lane } from "./VisitUpdate.ts"

type Client = Effect.Success<Effect.Success<ReturnType<typeof makeClient>>>

const unavailable = (problem: string, cause?: unknown) => new SinkUnavailable({ problem, cause })

/** Calls the thread under the lease, and with ClickHouse's address of now. */
const makeCall = Effect.fnUntraced(function* (start: typeof startThread, onDeath: () => void) {
  const { limits, logFormat, logLevel } = yield* AppConfig
  const { current } = yield* ClickHouseEndpoint
  const lease = yield* CountingLease
  const data = { limits, logLevel, logFormat: Log.formatOf(logFormat) }
  const client = yield* makeClient(() => start(data), onDeath)
  const ended = (cause: Error) =>
    Effect.fail(unavailable("its thread has ended, and is started again", cause))
  return <A>(
    use: (thread: Client, now: Now) => Effect.Effect<A, CallFailure | RpcClientError.RpcClientError>
  ) =>
    Effect.gen(function* () {
      const held = yield* lease.held
      return yield* use(yield* client, { endpoint: current(), held: held ?? null })
    }).pipe(
      Effect.catchTags({
        Superseded: ({ epoch, unavailable: error }) => {
          lease.superseded(epoch)
          return Effect.fail(error)
        },
        RpcClientError: ended,
        WorkerError: ended
      })
    )
})

/**
 * The event sink in a thread of its own, so that what is accepted does not wait for what is stored. `note` hears the sites whose
 * events are in the store, and in their visits.
 */
export const make = Effect.fnUntraced(function* (note: (site: string) => void, start = startThread) {
  const uncertain = new Uncertain()
  const call = yield* makeCall(start, () => uncertain.died())
  let stats: EventSinkStats = { events: 0, visitRows: 0, recomputed: 0, resident: 0 }

  const sinkOf = (lane: Lane): Sink => ({
    write: ({ outOfTurn = false, records, ...batch }) =>
      call((thread, now) => {
        const recovering = batch.recovering || uncertain.has(lane, batch.from)
        uncertain.gave(lane, batch.to)
        return thread.Write({
          now,
          lane,
          batch: { ...batch, outOfTurn, recovering, records: packed(records) }
        })
      }).pipe(
        Effect.tapErrorTag("SinkRefused", () => Effect.sync(() => uncertain.ended(lane, batch.to))),
        Effect.map((answer) => {
          uncertain.ended(lane, batch.to)
          stats = answer.stats
          answer.sites.forEach(note)
        })
      ),
    check: call((thread, now) => thread.Check({ now, lane }))
  })

  const rebuild: EventSinkService["rebuild"] = (where, isCheck) =>
    Effect.suspend(() =>
      uncertain.isWaiting
        ? Effect.fail(unavailable("a batch has to be repeated first"))
        : call((thread, now) => thread.Rebuild({ now, where, isCheck }))
    ).pipe(
      Effect.catchTag("SinkRefused", ({ cause, problem }) => Effect.fail(unavailable(problem, cause))),
      Effect.map((answer) => {
        stats = answer.stats
        return answer.reconciled
      })
    )
  const sink: EventSinkService = {
    ...sinkOf("live"),
    imports: sinkOf("imports"),
    rebuild,
    stats: () => stats
  }
  return sink
})

export const layer = Layer.effect(
  EventSink,
  Effect.flatMap(FirstEvents, ({ note }) => make(note))
)
