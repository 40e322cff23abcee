import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { LlmRoomApi } from "#schemas/llm/LlmRoomApi.ts"
import { CurrentKey } from "#schemas/core/Authorization.ts"
import { pageOf } from "#schemas/core/Page.ts"
import { parseInstant } from "#schemas/core/Timestamp.ts"
import { type OwnSubscription, subscriptionsLimitDefault } from "#schemas/llm/Subscription.ts"
import { Users } from "#src/accounts/Users.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import { Plans } from "./Plans.ts"
import { Subscriptions, type SubscriptionState } from "./Subscriptions.ts"
import { NotFound } from "#schemas/core/Problem.ts"

const notSubscribed: OwnSubscription = { subscribed: false, plan: null, subscription: null, allowances: [] }

const ownResource = ({ allowances, plan, subscription }: SubscriptionState): OwnSubscription => ({
  subscribed: true,
  plan: {
    id: plan.id,
    name: plan.name,
    price_usd: plan.price_usd,
    scope: plan.scope,
    covers_direct_api: plan.covers_direct_api
  },
  subscription: {
    id: subscription.id,
    status: subscription.status,
    current_period_end: subscription.current_period_end.toISOString()
  },
  allowances
})

export const layer = HttpApiBuilder.group(
  LlmRoomApi,
  "subscriptions",
  Effect.fnUntraced(function* (handlers) {
    const subscriptions = yield* Subscriptions
    const plans = yield* Plans
    const users = yield* Users
    return handlers.handleAll({
      readSubscription: () =>
        CurrentKey.pipe(
          Effect.flatMap(({ ownerId }) => subscriptions.of(ownerId)),
          storeAway,
          Effect.map((state) => (state === undefined ? notSubscribed : ownResource(state)))
        ),
      listSubscriptions: ({ query }) =>
        Effect.gen(function* () {
          const page = pageOf(query, subscriptionsLimitDefault)
          const listed = yield* storeAway(subscriptions.list(query.user_id, page))
          return { object: "list" as const, data: listed.rows, meta: { ...page, total: listed.total } }
        }),
      createSubscription: ({ payload }) =>
        Effect.gen(function* () {
          yield* users.named(payload.user_id)
          if (plans.get(payload.plan_id) === undefined) {
            return yield* NotFound.of("plan_id: no such plan", { code: "plan_not_found", param: "plan_id" })
          }
          const end = parseInstant(payload.current_period_end) ?? new Date(0)
          return yield* storeAway(subscriptions.create(payload.user_id, payload.plan_id, end))
        }),
      cancelSubscription: ({ params }) => storeAway(subscriptions.cancel(params.id))
    })
  })
)
