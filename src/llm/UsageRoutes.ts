import { Context, Effect } from "effect"
import { HttpApi, HttpApiBuilder } from "effect/http-api"
import type { SqlError } from "effect/sql/SqlError"
import { CurrentKey } from "#schemas/core/Authorization.ts"
import { NestedServiceUnavailable } from "#schemas/core/NestedProblem.ts"
import { type PicoUsd, usdOf } from "#schemas/llm/Money.ts"
import { UsageApi } from "#schemas/llm/UsageApi.ts"
import { nestedStoreAway } from "#src/infra/http/StoreAway.ts"
import { Usage } from "./Usage.ts"

/** What the overview of usage tells of a user's credits. The ledger provides it. */
export class CreditTotals extends Context.Service<
  CreditTotals,
  {
    readonly of: (userId: string) => Effect.Effect<
      {
        readonly balance: PicoUsd
        readonly lifetimeToppedUp: PicoUsd
        readonly lifetimeSpent: PicoUsd
      },
      SqlError
    >
  }
>()("signalbox/llm/CreditTotals") {}

const away = () =>
  Effect.fail(
    NestedServiceUnavailable.of("The usage store is away; nothing is lost, and calls go on: try again later")
  )

const stores = {
  SinkUnavailable: away,
  ClickHouseUnavailable: away,
  ClickHouseFailed: Effect.die
}

export const layer = HttpApiBuilder.group(
  HttpApi.make("signalbox").add(UsageApi),
  "usage",
  Effect.fnUntraced(function* (handlers) {
    const usage = yield* Usage
    const credits = yield* CreditTotals
    return handlers.handleAll({
      readUsage: ({ query }) =>
        Effect.gen(function* () {
          const { userId } = yield* CurrentKey
          if (query.window !== undefined) {
            return yield* Effect.catchTags(usage.ofWindow(userId, query.window, query.source), stores)
          }
          const windows = yield* Effect.catchTags(usage.windows(userId, query.source), stores)
          const totals = yield* nestedStoreAway(credits.of(userId))
          return {
            usage: windows,
            credits: {
              balanceUsd: usdOf(totals.balance),
              lifetimeToppedUpUsd: usdOf(totals.lifetimeToppedUp),
              lifetimeSpentUsd: usdOf(totals.lifetimeSpent)
            }
          }
        })
    })
  })
)
