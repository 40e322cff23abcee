import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { LlmRoomApi } from "#schemas/llm/LlmRoomApi.ts"
import { CurrentKey, type Principal } from "#schemas/core/Authorization.ts"
import { pageOf } from "#schemas/core/Page.ts"
import { type CallingKey, type Credits as CreditsResource, topUpsLimitDefault } from "#schemas/llm/Credits.ts"
import { type PicoUsd, picoOfNumber, usdOf } from "#schemas/llm/Money.ts"
import type { KeyRow } from "#schemas/accounts/ApiKey.ts"
import { KeyDirectory } from "#src/accounts/Keys.ts"
import { Users } from "#src/accounts/Users.ts"
import { AppConfig } from "#src/Config.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import { Credits, type CreditSums } from "./Credits.ts"
import { makeTopUps } from "./TopUps.ts"

/** The limits of a key, in words. */
const scopeOf = ({ collections, models }: Principal): string => {
  const scopes = [...(models === null ? [] : ["models"]), ...(collections === null ? [] : ["collections"])]
  return scopes.length === 0 ? "all" : scopes.join(",")
}

interface Asked {
  readonly caller: Principal
  readonly row: KeyRow | undefined
  readonly spent: PicoUsd
  readonly sums: CreditSums
}

const creditsResource = ({ caller, row, spent, sums }: Asked): CreditsResource => ({
  balance_usd: usdOf(sums.balance),
  lifetime_topped_up_usd: usdOf(sums.lifetimeToppedUp),
  lifetime_spent_usd: usdOf(sums.lifetimeSpent),
  key: {
    name: caller.keyName,
    scope: scopeOf(caller),
    spend_limit_usd: row?.spend_limit_usd ?? null,
    spent_usd: usdOf(spent),
    expires_at: caller.expiresAt?.toISOString() ?? null
  }
})

const keyResource = ({ caller, row, spent, sums }: Asked, ratePerMinute: number): CallingKey => {
  const limit = picoOfNumber(row?.spend_limit_usd ?? Number.NaN)
  const left = limit === undefined || spent > limit ? 0n : limit - spent
  return {
    data: {
      label: caller.keyName,
      kind: caller.kind,
      scope: scopeOf(caller),
      models: caller.models,
      collections: caller.collections,
      limit: row?.spend_limit_usd ?? null,
      limit_remaining: limit === undefined ? null : usdOf(left),
      limit_reset: null,
      usage: usdOf(spent),
      is_free_tier: sums.lifetimeToppedUp === 0n,
      expires_at: caller.expiresAt?.toISOString() ?? null,
      rate_limit: { requests: caller.rateLimitPerMinute ?? ratePerMinute, interval: "60s" }
    }
  }
}

export const layer = HttpApiBuilder.group(
  LlmRoomApi,
  "credits",
  Effect.fnUntraced(function* (handlers) {
    const credits = yield* Credits
    const topUps = yield* makeTopUps
    const keys = yield* KeyDirectory
    const users = yield* Users
    const { limits } = yield* AppConfig

    const asked = Effect.gen(function* () {
      const caller = yield* CurrentKey
      const sums = yield* storeAway(credits.of(caller.ownerId))
      const spent = yield* storeAway(credits.spentBy(caller.keyId))
      return { caller, sums, spent, row: keys.get(caller.keyId) }
    })

    return handlers.handleAll({
      readCredits: () => Effect.map(asked, creditsResource),
      readKey: () => Effect.map(asked, (found) => keyResource(found, limits.ratePerMinute)),
      listTopUps: ({ query }) =>
        Effect.gen(function* () {
          const caller = yield* CurrentKey
          const userId = yield* users.meant(caller, query.user_id, "see what others have topped up")
          const page = pageOf(query, topUpsLimitDefault)
          const listed = yield* storeAway(topUps.list(userId, page))
          return { object: "list" as const, data: listed.topUps, meta: { ...page, total: listed.total } }
        }),
      topUp: ({ headers, payload }) =>
        Effect.gen(function* () {
          const caller = yield* CurrentKey
          yield* users.named(payload.user_id)
          return yield* storeAway(topUps.add(caller.ownerId, payload, headers["idempotency-key"]))
        })
    })
  })
)
