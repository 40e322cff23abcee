import { Context, Layer, Schema } from "effect"
import * as Mirror from "#src/infra/postgres/Mirror.ts"

/** A row of `subscriptions`. */
export interface SubscriptionRow {
  readonly id: string
  readonly userId: string
  readonly planId: string
  readonly status: "active" | "canceled" | "expired"
  readonly currentPeriodEnd: Date
  readonly createdAt: Date
  readonly canceledAt: Date | null
}

const decodeColumns = Schema.decodeUnknownSync(
  Schema.Struct({
    id: Schema.String,
    user_id: Schema.String,
    plan_id: Schema.String,
    status: Schema.Literals(["active", "canceled", "expired"]),
    current_period_end: Schema.Date,
    created_at: Schema.Date,
    canceled_at: Schema.NullOr(Schema.Date)
  })
)

export const subscriptionOfRow = (row: Readonly<Record<string, unknown>>): SubscriptionRow => {
  const columns = decodeColumns(row)
  return {
    id: columns.id,
    userId: columns.user_id,
    planId: columns.plan_id,
    status: columns.status,
    currentPeriodEnd: columns.current_period_end,
    createdAt: columns.created_at,
    canceledAt: columns.canceled_at
  }
}

/** Subscriptions that are not canceled, in memory, by the user who has them. */
export class SubscriptionDirectory extends Context.Service<
  SubscriptionDirectory,
  Mirror.Mirror<SubscriptionRow, "user">
>()("signalbox/llm/SubscriptionDirectory") {
  static readonly layer = Layer.effect(
    SubscriptionDirectory,
    Mirror.make<SubscriptionRow, "user">({
      table: "subscriptions",
      decode: subscriptionOfRow,
      indexes: { user: ({ userId }) => userId },
      isGone: ({ status }) => status !== "active"
    })
  )
}
