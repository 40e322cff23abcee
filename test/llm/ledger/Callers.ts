import { Effect } from "effect"
import { type Admission, type AdmissionAsk, type AdmissionRefused } from "#src/llm/ledger/Admission.ts"
import { recordOf } from "./LedgerProbe.ts"
import type { Side } from "./Sides.ts"

export interface Served {
  readonly admission: Admission
  /** pico-USD */
  readonly charged: bigint
  /** tokens of allowances */
  readonly drawn: number
}

/** A call that is admitted, lasts a while and costs what `costOf` says of the output tokens it may have. */
export const call = (
  { calls, ledger }: Pick<Side, "calls" | "ledger">,
  ask: AdmissionAsk,
  lastsMillis: number,
  tokensUsed: (allowed: number) => number
): Effect.Effect<Served, AdmissionRefused> =>
  Effect.gen(function* () {
    const admission = ledger.admitNow(ask) ?? (yield* ledger.admit(ask))
    yield* Effect.sleep(lastsMillis)
    const tokens = tokensUsed(admission.outputTokens)
    const settlement = admission.settle({ cost: ask.costOf(tokens), tokens: ask.promptTokens + tokens })
    calls.append(recordOf(ask.userId, ask.keyId, settlement))
    const drawn = settlement.draws.find(({ limit }) => limit.endsWith(":hour"))
    return { admission, charged: BigInt(settlement.charge), drawn: Number(drawn?.amount ?? 0) }
  })
