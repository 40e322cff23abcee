import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { randomBytes } from "node:crypto"
import type { PicoUsd } from "#schemas/llm/Money.ts"
import { type CallRecord, nothingDrawn, type Settlement } from "#streams/llm/CallRecord.ts"
import { KeyDirectory } from "#src/accounts/Keys.ts"
import { AppConfig } from "#src/Config.ts"
import type { AdmissionAsk } from "#src/llm/ledger/Admission.ts"
import { CallLog } from "#src/llm/usage/CallLog.ts"
import { Ledger } from "#src/llm/ledger/Ledger.ts"
import { Plans } from "#src/llm/ledger/Plans.ts"
import { SubscriptionDirectory } from "#src/llm/ledger/SubscriptionDirectory.ts"
import { newId } from "#src/infra/crypto/Tokens.ts"

/** A ledger with what it needs, over the Postgres of the test's stores; each has a log, and so an owner, of its own. */
export const ledgerLayer = Ledger.layer.pipe(
  Layer.provideMerge(
    Layer.mergeAll(CallLog.layer, KeyDirectory.layer, Plans.layer, SubscriptionDirectory.layer)
  )
)

export const dollars = (amount: number): PicoUsd => BigInt(Math.round(amount * 1e6)) * 1_000_000n

export const makeUser = Effect.gen(function* () {
  const sql = yield* SqlClient
  const id = newId("usr")
  yield* sql`INSERT INTO users ${sql.insert({ id, email: `${id}@example.org`, name: "x", role: "user" })}`
  return id
})

export const makeKey = Effect.fnUntraced(function* (userId: string, spendLimitUsd: number | null = null) {
  const sql = yield* SqlClient
  const id = newId("key")
  yield* sql`INSERT INTO keys ${sql.insert({
    id,
    user_id: userId,
    name: "x",
    kind: "router",
    prefix: "sk_mr_x",
    hash: randomBytes(32),
    spend_limit_usd: spendLimitUsd
  })}`
  return id
})

export const topUp = Effect.fnUntraced(function* (userId: string, amount: PicoUsd) {
  const sql = yield* SqlClient
  const id = newId("top")
  yield* sql`INSERT INTO entries (request_id, kind, debit, credit, amount, unit, user_id)
    VALUES (${id}, 'topup', 'cash', ${`credits:${userId}`}, ${String(amount)}::text::numeric, 'pico-usd', ${userId})`
  yield* sql`INSERT INTO limits AS l (id, kind, cap) VALUES (${`credits:${userId}`}, 'credits', ${String(amount)}::text::numeric)
    ON CONFLICT (id, window_start) DO UPDATE SET cap = l.cap + excluded.cap`
})

export interface PlanTerms {
  readonly hour?: number
  readonly day?: number
  readonly week?: number
  readonly direct?: boolean
  readonly models?: ReadonlyArray<string>
  readonly until?: Date
}

const plenty = 1_000_000_000

/** Subscribes a user to a plan of these terms; answers the id of the subscription. */
export const subscribe = Effect.fnUntraced(function* (userId: string, terms: PlanTerms = {}) {
  const sql = yield* SqlClient
  const plan = newId("pln")
  const id = newId("sub")
  yield* sql`INSERT INTO plans ${sql.insert({
    id: plan,
    name: "x",
    price: 0,
    scope: "models",
    covers_direct_api: terms.direct ?? true,
    models: terms.models ?? null,
    hour_tokens: terms.hour ?? plenty,
    day_tokens: terms.day ?? plenty,
    week_tokens: terms.week ?? plenty
  })}`
  yield* sql`INSERT INTO subscriptions ${sql.insert({
    id,
    user_id: userId,
    plan_id: plan,
    current_period_end: terms.until ?? new Date("2200-01-01T00:00:00Z")
  })}`
  return id
})

/** Makes it so late on the ledger's clock, from where it goes on. */
export const setLedgerClock = Effect.fnUntraced(function* (at: Date) {
  const sql = yield* SqlClient
  const [row] = yield* sql<{ millis: string }>`
    SELECT round(extract(epoch FROM ${at}::timestamptz - clock_timestamp()) * 1000)::text AS millis`
  yield* sql.unsafe(`CREATE OR REPLACE FUNCTION ledger_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$
    SELECT clock_timestamp() + ${Number(row?.millis)} * interval '1 millisecond' $$`)
})

/** Brings the memory of this process up to date, instead of waiting for its polls. */
export const refresh = Effect.gen(function* () {
  yield* Effect.flatMap(KeyDirectory, ({ refreshNow }) => refreshNow)
  yield* Effect.flatMap(Plans, ({ refreshNow }) => refreshNow)
  yield* Effect.flatMap(SubscriptionDirectory, ({ refreshNow }) => refreshNow)
})

/** A call whose cost is so much per output token. */
export const askOf = (
  userId: string,
  keyId: string,
  perToken: PicoUsd,
  changes: Partial<AdmissionAsk> = {}
): AdmissionAsk => ({
  userId,
  keyId,
  source: "api",
  models: ["m/one"],
  promptTokens: 10,
  outputTokens: 100,
  outputTokensMin: 1,
  costOf: (tokens) => perToken * BigInt(tokens),
  ...changes
})

export const recordOf = (
  userId: string,
  keyId: string,
  settlement: Settlement = nothingDrawn,
  id = newId("req")
): CallRecord => ({
  id,
  userId,
  keyId,
  source: "api",
  startedAt: 0,
  endedAt: 0,
  requested: "m/one",
  resolved: "m/one",
  collection: "",
  kind: "chat",
  streamed: false,
  status: 200,
  errorCode: "",
  success: true,
  attempts: 1,
  promptTokens: 1,
  completionTokens: 1,
  cachedTokens: 0,
  firstTokenMillis: null,
  settlement
})

/** A row of `limits` as Postgres has it. */
export const limitOf = Effect.fnUntraced(function* (id: string) {
  const sql = yield* SqlClient
  const [row] = yield* sql<{ cap: string | null; settled: string; leased: string }>`
    SELECT cap::text, settled::text, leased::text FROM limits WHERE id = ${id} ORDER BY window_start DESC LIMIT 1`
  return row
})

/** A ledger beside others in this process, with a DATA_DIR and so a log of its own. */
export const withOwnLog = (dataDir: string) =>
  Layer.effect(
    AppConfig,
    Effect.map(AppConfig, (config) => ({ ...config, dataDir }))
  )
