import { Context, Effect, Layer } from "effect"
import type { BatcherStats } from "#streams/kernel/Batcher.ts"
import * as CoalescedFlush from "#streams/kernel/CoalescedFlush.ts"
import { AppConfig } from "#src/Config.ts"
import * as Drain from "#src/infra/drains/Drain.ts"
import { type ComponentState, degraded } from "#src/infra/telemetry/Readiness.ts"
import { CallLog, callLogConsumers } from "./CallLog.ts"
import * as CallSink from "./CallSink.ts"

/** Carries the log of calls into ClickHouse for as long as the layer lives. */
export class CallDrain extends Context.Service<CallDrain, Drain.Drain>()("signalbox/llm/CallDrain") {
  static readonly layer = Layer.effect(
    CallDrain,
    Effect.gen(function* () {
      const { isFailing, log } = yield* CallLog
      const { limits } = yield* AppConfig
      const drain = yield* Drain.make({
        name: "calls",
        title: "calls into ClickHouse",
        log,
        consumer: callLogConsumers.clickHouse,
        sink: yield* CallSink.make,
        metrics: {
          behind: ["signalbox_model_behind", "Calls in the log that ClickHouse does not have yet"],
          failures: ["signalbox_model_drain_failures_total", "Attempts to write calls that failed"]
        },
        ready: ["calls", (stats) => stateOf(isFailing(), stats)]
      })
      const flush = yield* CoalescedFlush.make({
        flush: drain.flush,
        // Answered calls may not be on disk yet: the batcher waits for them.
        isPending: () => log.nextOffset() > log.durableOffset() || drain.stats().behind > 0,
        everyMillis: limits.readFlushMillis
      })
      return { ...drain, flush }
    })
  )
}

/** A log that takes no records stops completions alone: the other rooms go on, and the server stays ready. */
const stateOf = (isFailing: boolean, { behind, trouble }: BatcherStats): ComponentState =>
  isFailing
    ? degraded("the log of calls takes nothing: completions answer 503")
    : Drain.stateOf(`${behind} calls on their way to ClickHouse`, "usage answers 503", trouble)
