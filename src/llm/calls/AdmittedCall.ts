import { Effect } from "effect"
import type { Admission, AdmissionAsk, AdmissionRefused } from "#src/llm/ledger/Admission.ts"
import * as CallFault from "./CallFault.ts"
import type { CallLog } from "#src/llm/usage/CallLog.ts"
import type { CallTally } from "./CallTally.ts"
import type { Ledger } from "#src/llm/ledger/Ledger.ts"

const faultOf = (refused: AdmissionRefused): CallFault.CallFault => {
  switch (refused._tag) {
    case "CreditsExhausted":
      return CallFault.insufficientCredits(refused.busy)
    case "KeyLimitReached":
      return CallFault.keySpendLimit(refused.busy)
    case "LedgerAway":
      return CallFault.overloaded("The ledger is away; nothing was charged, try again")
  }
}

/**
 * Makes a call under a hold, which is given back whatever happens unless the call settles it. A call that the ledger
 * refuses counts as one that failed.
 */
export const admittedCall = (
  ledger: Ledger["Service"],
  log: CallLog["Service"],
  tally: CallTally,
  ask: AdmissionAsk,
  make: (admission: Admission) => Effect.Effect<CallFault.CallFault | undefined>
): Effect.Effect<CallFault.CallFault | undefined> => {
  const under = (admission: Admission) =>
    Effect.ensuring(
      make(admission),
      Effect.sync(() => admission.release())
    )
  // The hot path: memory knows that the call is covered.
  const admission = ledger.admitNow(ask)
  if (admission !== undefined) return under(admission)
  return ledger.admit(ask).pipe(
    Effect.map(under),
    Effect.catch((refused) =>
      Effect.sync(() => {
        const fault = faultOf(refused)
        log.append(tally.refused(fault))
        return Effect.succeed(fault)
      })
    ),
    Effect.flatten
  )
}
