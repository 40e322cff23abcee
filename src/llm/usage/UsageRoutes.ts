import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { LlmRoomApi } from "#schemas/llm/LlmRoomApi.ts"
import { CurrentKey } from "#schemas/core/Authorization.ts"
import { usdOf } from "#schemas/llm/Money.ts"
import type { SinkUnavailable } from "#streams/kernel/Sink.ts"
import type { ClickHouseUnavailable } from "#src/infra/clickhouse/ClickHouseFailed.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import { troubleText } from "#src/http/StoreTrouble.ts"
import { Credits } from "#src/llm/ledger/Credits.ts"
import { Usage } from "./Usage.ts"
import { ServiceUnavailable } from "#schemas/core/Problem.ts"

const away = (error: SinkUnavailable | ClickHouseUnavailable) =>
  Effect.fail(ServiceUnavailable.of(`${troubleText("The usage store", error)}; calls go on`))

const stores = {
  SinkUnavailable: away,
  ClickHouseUnavailable: away,
  ClickHouseFailed: Effect.die
}

export const layer = HttpApiBuilder.group(
  LlmRoomApi,
  "usage",
  Effect.fnUntraced(function* (handlers) {
    const usage = yield* Usage
    const credits = yield* Credits
    return handlers.handleAll({
      readUsage: ({ query }) =>
        Effect.gen(function* () {
          const { ownerId: userId } = yield* CurrentKey
          if (query.window !== undefined) {
            return yield* Effect.catchTags(usage.ofWindow(userId, query.window, query.source), stores)
          }
          const windows = yield* Effect.catchTags(usage.windows(userId, query.source), stores)
          const totals = yield* storeAway(credits.of(userId))
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
