import { Effect } from "effect"
import { type Admission, type AdmissionAsk, type AdmissionRefused } from "#src/llm/Admission.ts"
import type { CallLog } from "#src/llm/CallLog.ts"
import type { LedgerServices } from "./LedgerProbe.ts"
import { recordOf } from "./LedgerProbe.ts"

export interface Served {
  readonly admission: Admission
  readonly charged: bigint
}

/** One process's side of many calls: its ledger and its log. */
export interface Side {
  readonly ledger: LedgerServices
  readonly calls: CallLog["Service"]
}

/** A call that is admitted, lasts a while and costs what `costOf` says of the output tokens it may have. */
export const call = (
  { calls, ledger }: Side,
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
    return { admission, charged: BigInt(settlement.charge) }
  })
