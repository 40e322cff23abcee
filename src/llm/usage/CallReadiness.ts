import { Effect, Layer } from "effect"
import { type ComponentState, Readiness } from "#src/infra/telemetry/Readiness.ts"
import { CallDrain } from "./CallDrain.ts"
import { CallLog } from "./CallLog.ts"

/** A log that takes nothing stops completions alone: the other rooms go on, and the server stays ready. */
const stateOf = (isFailing: boolean, behind: number, failuresInARow: number): ComponentState => {
  const waiting = `${behind} calls on their way to ClickHouse`
  if (isFailing)
    return { status: "degraded", detail: "the log of calls takes nothing: completions answer 503" }
  return failuresInARow > 0
    ? { status: "degraded", detail: `${waiting}, which is away: usage answers 503` }
    : { status: "up", detail: waiting }
}

/** The line "calls" of `/readyz`. */
export const layer = Layer.effectDiscard(
  Effect.gen(function* () {
    const { register } = yield* Readiness
    const { isFailing } = yield* CallLog
    const { stats } = yield* CallDrain
    yield* register(
      "calls",
      Effect.sync(() => stateOf(isFailing(), stats().behind, stats().failuresInARow))
    )
  })
)
