import { Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { picoOfNumber } from "#schemas/llm/Money.ts"
import { type NewPlan, PlanRow } from "#schemas/llm/Plan.ts"
import * as CachedTable from "#src/infra/postgres/CachedTable.ts"

/** All plans, in memory. They do not change: the promise for a period stays. */
export class Plans extends Context.Service<
  Plans,
  CachedTable.CachedTable<typeof PlanRow> & {
    readonly create: (plan: NewPlan) => Effect.Effect<PlanRow, SqlError>
  }
>()("signalbox/llm/Plans") {
  static readonly layer = Layer.effect(
    Plans,
    Effect.map(
      CachedTable.make({
        name: "plans",
        title: "Plan",
        model: PlanRow,
        ids: "pln",
        indexes: {},
        computed: {
          price_usd: "(price * 1e-12)::float8",
          models: `coalesce(to_jsonb(models), '"*"')`,
          allowances: "json_build_object('hour', hour_tokens, 'day', day_tokens, 'week', week_tokens)"
        }
      }),
      (plans) => ({
        ...plans,
        create: ({ allowances, covers_direct_api, models, name, price_usd, scope }) =>
          plans.insert(
            { name, scope, covers_direct_api },
            {
              price: picoOfNumber(price_usd) ?? 0n,
              models: models === "*" ? null : models,
              hour_tokens: allowances.hour,
              day_tokens: allowances.day,
              week_tokens: allowances.week
            }
          )
      })
    )
  )
}
