import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { picoOfNumber } from "#schemas/llm/Money.ts"
import type { NewPlan } from "#schemas/llm/Plan.ts"
import { newId } from "#src/infra/crypto/Tokens.ts"
import { PlanDirectory, planOfRow, type PlanRow } from "./PlanDirectory.ts"

/** Plans. They do not change: the promise for a period stays. */
export class Plans extends Context.Service<
  Plans,
  {
    readonly list: () => ReadonlyArray<PlanRow>
    readonly get: (id: string) => PlanRow | undefined
    readonly create: (plan: NewPlan) => Effect.Effect<PlanRow, SqlError>
  }
>()("signalbox/llm/Plans") {
  static readonly layer = Layer.effect(
    Plans,
    Effect.gen(function* () {
      const directory = yield* PlanDirectory
      const sql = yield* SqlClient
      return Plans.of({
        list: () => Array.from(directory.all()).sort((a, b) => a.createdAt.getTime() - b.createdAt.getTime()),
        get: (id) => directory.get(id),
        create: (plan) =>
          Effect.map(insert(sql, plan), (row) => {
            directory.applyLocal(row)
            return row
          })
      })
    })
  )
}

type Row = Record<string, unknown>

const insert = (sql: SqlClient, plan: NewPlan) =>
  Effect.map(
    sql<Row>`INSERT INTO plans (id, name, price, scope, covers_direct_api, models, hour_tokens, day_tokens, week_tokens)
      VALUES (${newId("pln")}, ${plan.name}, ${String(picoOfNumber(plan.price_usd) ?? 0n)}::text::numeric, ${plan.scope},
        ${plan.covers_direct_api}, ${plan.models === "*" ? null : plan.models}::text[],
        ${String(plan.allowances.hour)}::text::bigint, ${String(plan.allowances.day)}::text::bigint,
        ${String(plan.allowances.week)}::text::bigint) RETURNING *`,
    (rows) => planOfRow(rows[0] ?? {})
  )
