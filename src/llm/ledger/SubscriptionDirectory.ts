import { Context, Layer } from "effect"
import { SubscriptionRow } from "#schemas/llm/Subscription.ts"
import * as CachedTable from "#src/infra/postgres/CachedTable.ts"

/** Subscriptions that are not canceled, in memory, by the user who has them. */
export class SubscriptionDirectory extends Context.Service<
  SubscriptionDirectory,
  CachedTable.CachedTable<typeof SubscriptionRow, "user">
>()("signalbox/llm/SubscriptionDirectory") {
  static readonly layer = Layer.effect(
    SubscriptionDirectory,
    CachedTable.make({
      name: "subscriptions",
      title: "Subscription",
      model: SubscriptionRow,
      ids: "sub",
      indexes: { user: ({ user_id }) => user_id },
      gone: { is: "status <> 'active'", set: "status = 'canceled', canceled_at = clock_timestamp()" }
    })
  )
}
