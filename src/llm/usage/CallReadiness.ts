import { Effect, Layer } from "effect"
import type { BatcherStats } from "#streams/kernel/Batcher.ts"
import { troubleWords } from "#src/http/StoreTrouble.ts"
import { type ComponentState, Readiness } from "#src/infra/telemetry/Readiness.ts"
import { Settler } from "#src/llm/ledger/Settler.ts"
import { CallDrain } from "./CallDrain.ts"
import { CallLog } from "./CallLog.ts"

/** A log that takes no records stops completions alone: the other rooms go on, and the server stays ready. */
const callsState = (isFailing: boolean, { behind, trouble }: BatcherStats): ComponentState => {
  const waiting = `${behind} calls on their way to ClickHouse`
  if (isFailing)
    return { status: "degraded", detail: "the log of calls takes nothing: completions answer 503" }
  return trouble === undefined
    ? { status: "up", detail: waiting }
    : { status: "degraded", detail: `${waiting}, and usage answers 503: ${troubleWords(trouble)}` }
}

const ledgerState = (isSettled: boolean, { behind, trouble }: BatcherStats): ComponentState => {
  const waiting = `${behind} calls to book`
  const why = trouble === undefined ? "" : `: ${troubleWords(trouble)}`
  if (!isSettled)
    return {
      status: "degraded",
      detail: `${waiting} of the last run, and credits cannot be spent before${why}`
    }
  return trouble === undefined
    ? { status: "up", detail: waiting }
    : { status: "degraded", detail: `${waiting}, and balances are behind${why}` }
}

/** The lines "calls" and "ledger" of `/readyz`. */
export const layer = Layer.effectDiscard(
  Effect.gen(function* () {
    const { register } = yield* Readiness
    const { isFailing } = yield* CallLog
    const drain = yield* CallDrain
    const settler = yield* Settler
    yield* register(
      "calls",
      Effect.sync(() => callsState(isFailing(), drain.stats()))
    )
    yield* register(
      "ledger",
      Effect.sync(() => ledgerState(settler.isSettled(), settler.stats()))
    )
  })
)
