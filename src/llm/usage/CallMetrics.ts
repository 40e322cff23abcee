import { Effect, Layer } from "effect"
import * as SampledMetrics from "#actors/kernel/SampledMetrics.ts"
import { CallDrain } from "./CallDrain.ts"
import { CallLog } from "./CallLog.ts"
import { CallsUnderWay } from "#src/llm/calls/CallsUnderWay.ts"

/** Metrics of calls under way, and of the log of finished ones and its drain. */
export const layer = Layer.effectDiscard(
  Effect.gen(function* () {
    const { count: inFlight } = yield* CallsUnderWay
    const { isFailing, log } = yield* CallLog
    const drain = yield* CallDrain
    const gauge = (name: string, description: string, read: () => number): SampledMetrics.Sample => ({
      name: `signalbox_model_${name}`,
      kind: "gauge",
      description,
      read
    })
    yield* SampledMetrics.register([
      gauge("requests_in_flight", "Calls of models under way", inFlight),
      gauge("log_bytes", "Bytes of the log of calls on disk", () => log.stats().bytes),
      gauge("log_failing", "1 while the log of calls takes nothing, and calls are refused", () =>
        isFailing() ? 1 : 0
      ),
      gauge("behind", "Calls in the log that ClickHouse does not have yet", () => drain.stats().behind),
      {
        ...gauge("drain_failures_total", "Attempts to write calls that failed", () => drain.stats().failures),
        kind: "counter"
      }
    ])
  })
)
