import { Schema } from "effect"
import { PrincipalKind } from "../core/Credential.ts"
import { PathId, TopUpId, UserId } from "../core/Ids.ts"
import { line } from "../core/Text.ts"
import { Timestamp } from "../core/Timestamp.ts"

const usd = Schema.Finite.annotate({ description: "USD" })

/** Source: contract/llm#credits. */
export const Credits = Schema.Struct({
  balance_usd: usd,
  lifetime_topped_up_usd: usd,
  lifetime_spent_usd: usd,
  key: Schema.Struct({
    name: Schema.String,
    scope: Schema.String.annotate({ description: "all, models, collections, or models,collections" }),
    spend_limit_usd: Schema.NullOr(usd),
    spent_usd: usd,
    expires_at: Schema.NullOr(Timestamp)
  }).annotate({ description: "The key that asked" })
}).annotate({ identifier: "Credits", description: "The owner's credits" })
export type Credits = typeof Credits.Type

/** The fields of a key for clients of OpenRouter, where they have a meaning here. Source: contract/llm#credits. */
export const CallingKey = Schema.Struct({
  data: Schema.Struct({
    label: Schema.String.annotate({ description: "The key's name" }),
    kind: PrincipalKind,
    scope: Schema.String,
    models: Schema.NullOr(Schema.Array(Schema.String)),
    collections: Schema.NullOr(Schema.Array(Schema.String)),
    limit: Schema.NullOr(usd).annotate({ description: "What the key may spend; null: no limit" }),
    limit_remaining: Schema.NullOr(usd),
    limit_reset: Schema.Null,
    usage: usd.annotate({ description: "What the key has spent" }),
    is_free_tier: Schema.Boolean.annotate({ description: "Its owner has never topped up" }),
    expires_at: Schema.NullOr(Timestamp),
    rate_limit: Schema.Struct({ requests: Schema.Int, interval: Schema.String })
  })
}).annotate({ identifier: "CallingKey", description: "The key that asked" })
export type CallingKey = typeof CallingKey.Type

const amountExpected = "an amount between 0.000001 and 1000000000"

export const NewTopUp = Schema.Struct({
  user_id: UserId,
  amount_usd: Schema.Finite.check(
    Schema.isBetween({ minimum: 0.000001, maximum: 1_000_000_000 }, { expected: amountExpected })
  ).annotate({ description: "USD" }),
  note: Schema.optionalKey(line(0, 500))
}).annotate({ identifier: "NewTopUp" })
export type NewTopUp = typeof NewTopUp.Type

export const TopUp = Schema.Struct({
  id: TopUpId,
  user_id: UserId,
  amount_usd: usd,
  note: Schema.NullOr(Schema.String),
  created_at: Timestamp
}).annotate({ identifier: "TopUp", description: "Credits that were added" })
export type TopUp = typeof TopUp.Type

export const TopUpList = Schema.Struct({
  object: Schema.Literal("list"),
  data: Schema.Array(TopUp),
  meta: Schema.Struct({ limit: Schema.Int, offset: Schema.Int, total: Schema.Int })
}).annotate({ identifier: "TopUpList", description: "Top-ups, newest first" })

export const topUpsLimitDefault = 100

export const OfUser = {
  user_id: Schema.optionalKey(PathId.annotate({ description: "Whose (administrators only)" }))
}

/** Source: contract/http#idempotency. */
export const IdempotencyKey = line(1, 255).annotate({
  description:
    "The same key with the same body within 24 hours is answered as the first time, and nothing is done again"
})
