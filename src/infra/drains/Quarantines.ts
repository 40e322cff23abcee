import { Context, Effect, Layer, type Scope } from "effect"
import * as SampledMetrics from "#actors/kernel/SampledMetrics.ts"
import type { LogName } from "#schemas/system/QuarantineApi.ts"
import type { LogQuarantine } from "#streams/kernel/LogQuarantine.ts"
import { type ComponentState, Readiness } from "../telemetry/Readiness.ts"

/** The quarantines of this server's consumers, as they register; counted in `/metrics` and on the line of `/readyz`. */
export class Quarantines extends Context.Service<
  Quarantines,
  {
    readonly register: (name: LogName, quarantine: LogQuarantine) => Effect.Effect<void, never, Scope.Scope>
    readonly all: () => ReadonlyMap<LogName, LogQuarantine>
  }
>()("signalbox/infra/Quarantines") {
  static readonly layer = Layer.effect(
    Quarantines,
    Effect.gen(function* () {
      const found = new Map<LogName, LogQuarantine>()
      const { register } = yield* Readiness
      yield* register(
        "quarantine",
        Effect.sync(() => stateOf(found))
      )
      return Quarantines.of({
        all: () => found,
        register: (name, quarantine) =>
          Effect.andThen(
            Effect.acquireRelease(
              Effect.sync(() => found.set(name, quarantine)),
              () => Effect.sync(() => found.delete(name))
            ),
            SampledMetrics.register(samplesOf(quarantine), { log: name })
          )
      })
    })
  )
}

/** Nothing else waits for these records, so the server is ready; an operator should look at them. */
const stateOf = (found: ReadonlyMap<LogName, LogQuarantine>): ComponentState => {
  const counts = Array.from(found, ([name, quarantine]) => ({ name, ...quarantine.stats() }))
  const aside = counts
    .filter(({ records }) => records > 0)
    .map(({ name, records }) => `${records} of ${name}`)
  const lost = counts.filter(({ dropped }) => dropped > 0).map(({ dropped, name }) => `${dropped} of ${name}`)
  if (aside.length === 0 && lost.length === 0) return { status: "up" }
  const parts = [
    ...(aside.length === 0 ? [] : [`records set aside: ${aside.join(", ")} (signalbox log quarantine list)`]),
    ...(lost.length === 0 ? [] : [`lost, as the quarantine was full: ${lost.join(", ")}`])
  ]
  return { status: "degraded", detail: parts.join("; ") }
}

const samplesOf = ({ stats }: LogQuarantine): ReadonlyArray<SampledMetrics.Sample> => [
  [
    "signalbox_quarantine_records",
    "Accepted records that were set aside because their store takes them in no company",
    () => stats().records
  ],
  ["signalbox_quarantine_bytes", "Bytes of the records that were set aside", () => stats().bytes],
  [
    "signalbox_quarantine_lost_total",
    "Records that went from the quarantine because it was full",
    () => stats().dropped
  ]
]
