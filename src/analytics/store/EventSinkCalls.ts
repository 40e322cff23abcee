import { Schema } from "effect"
import { Rpc, RpcGroup } from "effect/rpc"
import { Transferable } from "effect/workers"
import { SinkRefused, SinkUnavailable } from "#streams/kernel/Sink.ts"
import type { Lane } from "./VisitUpdate.ts"

/** Calls of the event sink in its thread (EventSinkThread.ts), from the main thread (ThreadedEventSink.ts). */

/** The address of ClickHouse, and the lease on counting, at the time of the call. */
const Now = Schema.Struct({
  endpoint: Schema.Struct({
    url: Schema.String,
    username: Schema.String,
    password: Schema.String,
    database: Schema.String
  }),
  held: Schema.NullOr(
    Schema.Struct({ epoch: Schema.Number, uncheckedTo: Schema.Number, isShared: Schema.Boolean })
  )
})

export type Now = typeof Now.Type

const Stats = Schema.Struct({
  events: Schema.Number,
  visitRows: Schema.Number,
  recomputed: Schema.Number,
  resident: Schema.Number
})

/** ClickHouse knows a later epoch than that of the call: another process counts. */
export class Superseded extends Schema.TaggedError<Superseded>()("Superseded", {
  epoch: Schema.Number,
  unavailable: SinkUnavailable
}) {}

const Failure = Schema.Union([SinkUnavailable, SinkRefused, Superseded])

export type CallFailure = typeof Failure.Type

export const lanes = ["live", "imports"] as const satisfies ReadonlyArray<Lane>

export class SinkCalls extends RpcGroup.make(
  Rpc.make("Write", {
    payload: {
      now: Now,
      lane: Schema.Literals(lanes),
      batch: Schema.Struct({
        logId: Schema.BigInt,
        from: Schema.Number,
        to: Schema.Number,
        /** a RecordBlock */
        records: Transferable.Uint8Array,
        token: Schema.String,
        recovering: Schema.Boolean,
        outOfTurn: Schema.Boolean
      })
    },
    /** `sites`: of the events that are in the store since the last answer */
    success: Schema.Struct({ sites: Schema.Array(Schema.String), stats: Stats }),
    error: Failure
  }),
  Rpc.make("Check", { payload: { now: Now, lane: Schema.Literals(lanes) }, error: Failure }),
  Rpc.make("Rebuild", {
    payload: {
      now: Now,
      where: Schema.Struct({ ofEvents: Schema.String, ofVisits: Schema.String }),
      isCheck: Schema.Boolean
    },
    success: Schema.Struct({
      reconciled: Schema.Struct({
        events: Schema.Number,
        visits: Schema.Number,
        missing: Schema.Number,
        wrong: Schema.Number,
        surplus: Schema.Number
      }),
      stats: Stats
    }),
    error: Failure
  })
) {}
