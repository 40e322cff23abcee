import { Effect, Layer } from "effect"
import { CreditLeases } from "#actors/llm/CreditLeases.ts"
import * as SampledMetrics from "#actors/kernel/SampledMetrics.ts"
import { Settler } from "./Settler.ts"

/** Metrics of the ledger: calls in line, refusals, and how far Postgres is behind the log of calls. */
export const layer = Layer.effectDiscard(
  Effect.gen(function* () {
    const leases = yield* CreditLeases
    const settler = yield* Settler
    yield* SampledMetrics.register([
      {
        name: "signalbox_ledger_waiting",
        kind: "gauge",
        description: "Calls that wait for what other calls hold",
        read: () => leases.stats().waiting
      },
      {
        name: "signalbox_ledger_asked_total",
        kind: "counter",
        description: "Calls for which no lease in memory was enough",
        read: () => leases.stats().asked
      },
      {
        name: "signalbox_ledger_refused_total",
        kind: "counter",
        description: "Calls that were refused for want of credits, caps or allowances",
        read: () => leases.stats().refused
      },
      {
        name: "signalbox_ledger_behind",
        kind: "gauge",
        description: "Calls in the log that Postgres has not booked yet",
        read: () => settler.stats().behind
      },
      {
        name: "signalbox_ledger_booking_failures_total",
        kind: "counter",
        description: "Attempts to book calls that failed",
        read: () => settler.stats().failures
      }
    ])
  })
)
