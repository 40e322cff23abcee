import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Page } from "#schemas/core/Page.ts"
import type { PlanRow } from "#schemas/llm/Plan.ts"
import type { Allowance, SubscriptionRow } from "#schemas/llm/Subscription.ts"
import { newId } from "#src/infra/crypto/Tokens.ts"
import { type BadRequest, Conflict, invalidField, type NotFound } from "#schemas/core/Problem.ts"
import { Ledger } from "./Ledger.ts"
import { allowanceOf } from "./Payment.ts"
import { Plans } from "./Plans.ts"
import { SubscriptionDirectory } from "./SubscriptionDirectory.ts"

export interface SubscriptionState {
  readonly plan: PlanRow
  readonly subscription: SubscriptionRow
  readonly allowances: ReadonlyArray<Allowance>
}

/** Users' plans, and the rest of their allowances. */
export class Subscriptions extends Context.Service<
  Subscriptions,
  {
    /** undefined: not subscribed */
    readonly of: (userId: string) => Effect.Effect<SubscriptionState | undefined, SqlError>
    /** `userId` undefined: all users' */
    readonly list: (
      userId: string | undefined,
      page: Page
    ) => Effect.Effect<{ readonly rows: ReadonlyArray<SubscriptionRow>; readonly total: number }, SqlError>
    readonly create: (
      userId: string,
      planId: string,
      currentPeriodEnd: Date
    ) => Effect.Effect<SubscriptionRow, BadRequest | Conflict | SqlError>
    /** At once. */
    readonly cancel: (id: string) => Effect.Effect<SubscriptionRow, NotFound | SqlError>
  }
>()("signalbox/llm/Subscriptions") {
  static readonly layer = Layer.effect(
    Subscriptions,
    Effect.gen(function* () {
      const directory = yield* SubscriptionDirectory
      const sql = yield* SqlClient
      return Subscriptions.of({
        of: yield* stateOf,
        list: list(directory, sql),
        create: (userId, planId, end) => create(directory, sql, userId, planId, end),
        cancel: (id) => directory.remove(id, undefined)
      })
    })
  )
}

/** The end of a period is not written down: it follows from the time. */
const asOf = (row: SubscriptionRow, nowMillis: number): SubscriptionRow =>
  row.status === "active" && row.current_period_end.getTime() <= nowMillis
    ? { ...row, status: "expired" }
    : row

interface WindowRow {
  readonly part: Allowance["window"]
  readonly used: string
  readonly resets_at: Date
}

const windows = ["hour", "day", "week"] as const

const stateOf = Effect.gen(function* () {
  const directory = yield* SubscriptionDirectory
  const plans = yield* Plans
  const sql = yield* SqlClient
  const { flush } = yield* Ledger
  return Effect.fnUntraced(function* (userId: string) {
    const subscription = directory.by("user", userId)
    const plan = subscription === undefined ? undefined : plans.get(subscription.plan_id)
    const now = yield* Clock.currentTimeMillis
    if (subscription === undefined || plan === undefined) return undefined
    if (subscription.current_period_end.getTime() <= now) return undefined
    yield* Effect.catch(flush, ({ problem }) => Effect.logDebug(`calls are not booked yet: ${problem}`))
    const rows = yield* sql<WindowRow>`
      SELECT a.part, coalesce(l.settled, 0)::text AS used,
        ledger_window(a.id, t.at) + ('1 ' || a.part)::interval AS resets_at
      FROM (SELECT ledger_now() AS at) AS t
        CROSS JOIN unnest(${windows.map((part) => allowanceOf(subscription.id, part))}::text[], ${windows}::text[]) WITH ORDINALITY AS a(id, part, place)
        LEFT JOIN limits l ON l.id = a.id AND l.window_start = ledger_window(a.id, t.at)
      ORDER BY a.place`
    const allowances = rows.map(({ part, resets_at, used }): Allowance => {
      const limit = plan.allowances[part]
      const tokens = Number(used)
      return {
        window: part,
        token_limit: limit,
        tokens_used: tokens,
        tokens_remaining: Math.max(0, limit - tokens),
        resets_at: resets_at.toISOString()
      }
    })
    return { plan, subscription, allowances }
  })
})

const list =
  (directory: SubscriptionDirectory["Service"], sql: SqlClient): Subscriptions["Service"]["list"] =>
  (userId, page) =>
    Effect.gen(function* () {
      const isOf = userId === undefined ? sql`true` : sql`user_id = ${userId}`
      const { rows, total } = yield* directory.page(isOf, "created_at DESC, id", page)
      const now = yield* Clock.currentTimeMillis
      return { rows: rows.map((row) => asOf(row, now)), total }
    })

/** The index of active subscriptions by user is unique; expired ones are taken out of it first. */
const create = (
  directory: SubscriptionDirectory["Service"],
  sql: SqlClient,
  userId: string,
  planId: string,
  end: Date
) =>
  Effect.gen(function* () {
    if (end.getTime() <= (yield* Clock.currentTimeMillis)) {
      return yield* invalidField("current_period_end", "expected an instant in the future")
    }
    yield* sql`UPDATE subscriptions SET status = 'expired'
      WHERE user_id = ${userId} AND status = 'active' AND current_period_end <= ledger_now()`
    const made = yield* directory.first(
      sql`INSERT INTO subscriptions (id, user_id, plan_id, current_period_end)
        VALUES (${newId("sub")}, ${userId}, ${planId}, ${end})
        ON CONFLICT (user_id) WHERE status = 'active' DO NOTHING RETURNING ${directory.columns}`
    )
    if (made !== undefined) return made
    return yield* Conflict.of("The user has an active subscription", {
      code: "already_subscribed",
      param: "user_id"
    })
  }).pipe(sql.withTransaction)
