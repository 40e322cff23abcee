import { assert, layer } from "@effect/vitest"
import { Effect, Predicate } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { TestServer, type Answer, textOf } from "#test/harness/TestServer.ts"

const live = { excludeTestServices: true } as const

interface OpenAiError {
  readonly message: string
  readonly type: string
  readonly code: string | null
  readonly param: string | null
}

const errorOf = ({ json, status }: Answer): readonly [number, string | null] => {
  const { error } = json as { error: OpenAiError }
  return [status, error.code]
}

const partOf = (json: unknown, name: string): unknown =>
  Predicate.hasProperty(json, name) ? json[name] : undefined

const topUp = (user_id: string, amount_usd: number, key?: string) =>
  Effect.flatMap(TestServer, ({ ask }) =>
    ask("POST", "/api/v1/credits/topups", {
      json: { user_id, amount_usd },
      headers: key === undefined ? {} : { "idempotency-key": key }
    })
  )

/** A plan that also pays for direct calls, with so many tokens an hour. */
const makePlan = (changes: object = {}) =>
  Effect.flatMap(TestServer, ({ ask }) =>
    ask("POST", "/api/v1/plans", {
      json: {
        name: "Pro",
        price_usd: 19.99,
        scope: "models",
        covers_direct_api: true,
        models: "*",
        allowances: { hour: 100_000, day: 500_000, week: 2_000_000 },
        ...changes
      }
    })
  )

const nextCentury = "2100-01-01T00:00:00.000Z"

const subscribe = (user_id: string, plan_id: string, current_period_end = nextCentury) =>
  Effect.flatMap(TestServer, ({ ask }) =>
    ask("POST", "/api/v1/subscriptions", { json: { user_id, plan_id, current_period_end } })
  )

const complete = (key: string) =>
  Effect.flatMap(TestServer, ({ ask }) =>
    ask("POST", "/api/v1/chat/completions", {
      key,
      json: { model: "sandbox/echo", messages: [{ role: "user", content: "one two three" }], max_tokens: 50 }
    })
  )

const routerOf = ({ json }: Answer): { charged_usd: number; covered_by_subscription: boolean } =>
  (json as { router: { charged_usd: number; covered_by_subscription: boolean } }).router

layer(TestServer.shared, live)("credits over HTTP", (it) => {
  it.effect("GET /credits says what there is, and what the key that asks may spend and has spent", () =>
    Effect.gen(function* () {
      const { ask, makeKey, makeUser } = yield* TestServer
      const person = yield* makeUser()
      const key = yield* makeKey(
        {
          kind: "router",
          name: "mine",
          models: ["sandbox/echo"],
          spend_limit_usd: 2,
          expires_at: nextCentury
        },
        person.key
      )
      yield* topUp(person.id, 10.5)
      const called = yield* complete(key.key)
      assert.strictEqual(called.status, 200, JSON.stringify(called.json))
      const { charged_usd } = routerOf(called)
      assert.isAbove(charged_usd, 0)
      const read = yield* ask("GET", "/api/v1/credits", { key: key.key })
      assert.deepStrictEqual(read.json, {
        balance_usd: Number((10.5 - charged_usd).toFixed(12)),
        lifetime_topped_up_usd: 10.5,
        lifetime_spent_usd: charged_usd,
        key: {
          name: "mine",
          scope: "models",
          spend_limit_usd: 2,
          spent_usd: charged_usd,
          expires_at: nextCentury
        }
      })
      const own = yield* ask("GET", "/api/v1/credits", { key: person.key })
      assert.deepStrictEqual(partOf(own.json, "key"), {
        name: "test",
        scope: "all",
        spend_limit_usd: null,
        spent_usd: 0,
        expires_at: null
      })
    })
  )

  it.effect("GET /key tells a client of OpenRouter about its key", () =>
    Effect.gen(function* () {
      const { ask, makeKey, makeUser } = yield* TestServer
      const person = yield* makeUser()
      const key = yield* makeKey({ kind: "router", name: "mine", spend_limit_usd: 2.5 }, person.key)
      const { json } = yield* ask("GET", "/api/v1/key", { key: key.key })
      assert.deepStrictEqual(json, {
        data: {
          label: "mine",
          kind: "router",
          scope: "all",
          models: null,
          collections: null,
          limit: 2.5,
          limit_remaining: 2.5,
          limit_reset: null,
          usage: 0,
          is_free_tier: true,
          expires_at: null,
          rate_limit: { requests: 1_000_000, interval: "60s" }
        }
      })
    })
  )

  it.effect("POST /credits/topups adds exactly what was asked, for administrators alone", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      const person = yield* makeUser()
      const made = yield* ask("POST", "/api/v1/credits/topups", {
        json: { user_id: person.id, amount_usd: 0.1, note: "a gift" }
      })
      assert.strictEqual(made.status, 201)
      assert.deepInclude(made.json, { user_id: person.id, amount_usd: 0.1, note: "a gift" })
      yield* topUp(person.id, 0.2)
      const { json } = yield* ask("GET", "/api/v1/credits", { key: person.key })
      assert.strictEqual(partOf(json, "balance_usd"), 0.3)
      const refused = yield* ask("POST", "/api/v1/credits/topups", {
        key: person.key,
        json: { user_id: person.id, amount_usd: 5 }
      })
      assert.strictEqual(refused.status, 403)
      for (const amount_usd of [0, -1, 1e-9, 1e12, "5", null]) {
        const bad = yield* ask("POST", "/api/v1/credits/topups", { json: { user_id: person.id, amount_usd } })
        assert.deepStrictEqual(errorOf(bad), [400, "invalid_value"], String(amount_usd))
      }
      const nobody = yield* topUp(`usr_${"0".repeat(22)}`, 1)
      assert.deepStrictEqual(errorOf(nobody), [404, "user_not_found"])
      const listed = yield* ask("GET", "/api/v1/credits/topups?limit=1", { key: person.key })
      assert.deepInclude(listed.json, { object: "list", meta: { limit: 1, offset: 0, total: 2 } })
    })
  )

  it.effect("the same Idempotency-Key adds once: replayed for 24 hours, 409 for another body", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      const sql = yield* SqlClient
      const person = yield* makeUser()
      const first = yield* topUp(person.id, 3, "k-1")
      const again = yield* topUp(person.id, 3, "k-1")
      assert.deepStrictEqual([again.status, again.json], [201, first.json])
      assert.deepStrictEqual(errorOf(yield* topUp(person.id, 4, "k-1")), [409, "idempotency_conflict"])
      yield* topUp(person.id, 3, "k-2")
      const balance = Effect.map(ask("GET", "/api/v1/credits", { key: person.key }), ({ json }) =>
        partOf(json, "balance_usd")
      )
      assert.strictEqual(yield* balance, 6)
      yield* sql`UPDATE idempotency SET created_at = created_at - interval '25 hours' WHERE key = 'k-1'`
      yield* topUp(person.id, 3, "k-1")
      assert.strictEqual(yield* balance, 9)
    })
  )

  it.effect("the same Idempotency-Key at the same time adds once: the others are 409 or replayed", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      const person = yield* makeUser()
      const answers = yield* Effect.forEach(Array.from({ length: 20 }), () => topUp(person.id, 1, "k-3"), {
        concurrency: "unbounded"
      })
      for (const answer of answers) {
        if (answer.status !== 201) assert.deepStrictEqual(errorOf(answer), [409, "idempotency_conflict"])
      }
      const { json } = yield* ask("GET", "/api/v1/credits", { key: person.key })
      assert.strictEqual(partOf(json, "balance_usd"), 1)
    })
  )
})

layer(TestServer.shared, live)("plans and subscriptions over HTTP", (it) => {
  it.effect("administrators make plans, which everybody may read", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      const person = yield* makeUser()
      const made = yield* makePlan({ models: ["sandbox/echo"] })
      assert.strictEqual(made.status, 201)
      assert.deepInclude(made.json, { name: "Pro", price_usd: 19.99, models: ["sandbox/echo"] })
      const id = textOf(made, "id")
      assert.match(id, /^pln_/)
      const read = yield* ask("GET", `/api/v1/plans/${id}`, { key: person.key })
      assert.deepStrictEqual(read.json, made.json)
      assert.deepStrictEqual(errorOf(yield* ask("GET", "/api/v1/plans/pln_x")), [404, "plan_not_found"])
      const refused = yield* ask("POST", "/api/v1/plans", { key: person.key, json: {} })
      assert.strictEqual(refused.status, 403)
      for (const allowances of [
        { hour: 1, day: 1 },
        { hour: -1, day: 1, week: 1 },
        { hour: 1.5, day: 1, week: 1 }
      ]) {
        assert.strictEqual((yield* makePlan({ allowances })).status, 400, JSON.stringify(allowances))
      }
    })
  )

  it.effect("GET /subscription has the shapes of the contract, subscribed or not", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      const person = yield* makeUser()
      const read = Effect.map(ask("GET", "/api/v1/subscription", { key: person.key }), ({ json }) => json)
      const none = { subscribed: false, plan: null, subscription: null, allowances: [] }
      assert.deepStrictEqual(yield* read, none)
      const plan = textOf(yield* makePlan(), "id")
      const made = yield* subscribe(person.id, plan)
      assert.strictEqual(made.status, 201)
      const called = yield* complete(person.key)
      assert.deepInclude(routerOf(called), { charged_usd: 0, covered_by_subscription: true })
      const { total_tokens: used } = (called.json as { usage: { total_tokens: number } }).usage
      const json = yield* read
      const { allowances, ...rest } = json as {
        allowances: ReadonlyArray<{ window: string; resets_at: string }>
      }
      assert.deepStrictEqual(rest, {
        subscribed: true,
        plan: { id: plan, name: "Pro", price_usd: 19.99, scope: "models", covers_direct_api: true },
        subscription: { id: textOf(made, "id"), status: "active", current_period_end: nextCentury }
      })
      const limits = { hour: 100_000, day: 500_000, week: 2_000_000 }
      assert.deepStrictEqual(
        allowances.map((allowance) => ({ ...allowance, resets_at: undefined })),
        (["hour", "day", "week"] as const).map((window) => ({
          window,
          token_limit: limits[window],
          tokens_used: used,
          tokens_remaining: limits[window] - used,
          resets_at: undefined
        }))
      )
      const [hour, day, week] = allowances.map(({ resets_at }) => resets_at)
      assert.match(hour ?? "", /:00:00\.000Z$/)
      assert.match(day ?? "", /T00:00:00\.000Z$/)
      assert.strictEqual(new Date(week ?? "").getUTCDay(), 1)
      const canceled = yield* ask("DELETE", `/api/v1/subscriptions/${textOf(made, "id")}`)
      assert.deepInclude(canceled.json, { status: "canceled" })
      assert.deepStrictEqual(yield* read, none)
    })
  )

  it.effect("a user has one active subscription; a canceled or ended one makes room", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      const sql = yield* SqlClient
      const person = yield* makeUser()
      const plan = textOf(yield* makePlan(), "id")
      const first = textOf(yield* subscribe(person.id, plan), "id")
      assert.deepStrictEqual(errorOf(yield* subscribe(person.id, plan)), [409, "already_subscribed"])
      yield* ask("DELETE", `/api/v1/subscriptions/${first}`)
      const second = textOf(yield* subscribe(person.id, plan), "id")
      yield* sql`UPDATE subscriptions SET current_period_end = now() - interval '1 second' WHERE id = ${second}`
      const listed = yield* ask("GET", `/api/v1/subscriptions?user_id=${person.id}`)
      const statuses = (listed.json as { data: ReadonlyArray<{ status: string }> }).data.map(
        ({ status }) => status
      )
      assert.deepStrictEqual(statuses, ["expired", "canceled"])
      assert.strictEqual((yield* subscribe(person.id, plan)).status, 201)
      const gone = yield* ask("DELETE", `/api/v1/subscriptions/${first}`)
      assert.deepStrictEqual(errorOf(gone), [404, "subscription_not_found"])
    })
  )

  it.effect("what a subscription names has to be there, and its end to come", () =>
    Effect.gen(function* () {
      const { makeUser } = yield* TestServer
      const person = yield* makeUser()
      const plan = textOf(yield* makePlan(), "id")
      const nobody = `usr_${"0".repeat(22)}`
      const noPlan = `pln_${"0".repeat(22)}`
      assert.deepStrictEqual(errorOf(yield* subscribe(nobody, plan)), [404, "user_not_found"])
      assert.deepStrictEqual(errorOf(yield* subscribe(person.id, noPlan)), [404, "plan_not_found"])
      const past = yield* subscribe(person.id, plan, "2020-01-01T00:00:00Z")
      assert.deepStrictEqual(errorOf(past), [400, "invalid_value"])
    })
  )
})

layer(TestServer.own(), live)("GET /admin/ledger/verify", (it) => {
  it.effect("answers exact sums, and that every number is what the entries say", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      const sql = yield* SqlClient
      const person = yield* makeUser()
      yield* topUp(person.id, 0.000001)
      const clean = yield* ask("GET", "/api/v1/admin/ledger/verify")
      assert.deepStrictEqual(clean.json, {
        ok: true,
        toppedUp: "1000000",
        charged: "0",
        loss: "0",
        losses: [],
        estimates: [],
        leased: "0",
        entries: "1",
        differenceCount: 0,
        differences: []
      })
      yield* sql`UPDATE limits SET settled = settled + 1 WHERE id = 'loss:failed_try'`
      const forged = yield* ask("GET", "/api/v1/admin/ledger/verify")
      assert.deepStrictEqual(partOf(forged.json, "differences"), [
        {
          limit: "loss:failed_try",
          windowStart: null,
          what: "settled",
          expected: null,
          found: "1"
        }
      ])
      yield* sql`UPDATE limits SET settled = settled - 1 WHERE id = 'loss:failed_try'`
      yield* sql`UPDATE limits SET cap = cap + 1 WHERE id = ${`credits:${person.id}`}`
      const wrong = yield* ask("GET", "/api/v1/admin/ledger/verify")
      assert.deepInclude(wrong.json, { ok: false, differenceCount: 1 })
      assert.deepStrictEqual(partOf(wrong.json, "differences"), [
        {
          limit: `credits:${person.id}`,
          windowStart: null,
          what: "cap",
          expected: "1000000",
          found: "1000001"
        }
      ])
      assert.strictEqual((yield* ask("GET", "/api/v1/admin/ledger/verify", { key: person.key })).status, 403)
    })
  )
})
