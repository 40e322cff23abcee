import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { LlmRoomApi } from "#schemas/llm/LlmRoomApi.ts"
import { storeAwayUntimed } from "#src/http/StoreAway.ts"
import { Ledger } from "./Ledger.ts"
import { LedgerCheck } from "./LedgerCheck.ts"
import { ServiceUnavailable } from "#schemas/core/Problem.ts"

export const layer = HttpApiBuilder.group(
  LlmRoomApi,
  "ledger",
  Effect.fnUntraced(function* (handlers) {
    const { flush } = yield* Ledger
    const { verify } = yield* LedgerCheck
    return handlers.handleAll({
      verifyLedger: () =>
        Effect.gen(function* () {
          yield* Effect.mapError(flush, ({ problem }) =>
            ServiceUnavailable.of(`Calls that have ended are not booked: ${problem}`)
          )
          return yield* storeAwayUntimed(verify)
        })
    })
  })
)
