import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { TestServer } from "#test/harness/TestServer.ts"
import { signalbox } from "./Signalbox.ts"

const run = (...args: ReadonlyArray<string>) =>
  Effect.flatMap(TestServer, ({ adminKey, url }) =>
    Effect.promise(() => signalbox(args, { SIGNALBOX_URL: url, SIGNALBOX_KEY: adminKey }))
  )

const answerOf = (...args: ReadonlyArray<string>) =>
  Effect.map(run(...args, "--json"), ({ err, out }) => {
    assert.strictEqual(err, "")
    return JSON.parse(out)
  })

layer(TestServer.shared, { excludeTestServices: true })("signalbox", (it) => {
  it.effect("adds credits once for an idempotency key, lists what was added, and shows one's own", () =>
    Effect.gen(function* () {
      const { makeUser } = yield* TestServer
      const { id } = yield* makeUser()
      const topUp = ["credits", "topup", id, "12.5", "--note", "a gift", "--idempotency-key", "k"]
      const made = yield* answerOf(...topUp)
      assert.deepInclude(made, { user_id: id, amount_usd: 12.5, note: "a gift" })
      assert.deepStrictEqual(yield* answerOf(...topUp), made)
      const listed = yield* run("credits", "topups", "--user", id)
      assert.match(listed.out, /^ID +USER ID +AMOUNT USD +NOTE +CREATED AT$/m)
      assert.lengthOf(listed.out.match(/^top_/gm) ?? [], 1)
      assert.include((yield* run("credits", "show")).out, "Balance 0 USD")
      const refused = yield* run("credits", "topup", id, "0")
      assert.deepStrictEqual([refused.code, refused.out], [1, ""])
      assert.include(refused.err, "amount_usd")
    })
  )

  it.effect("makes plans, subscribes users to them, and cancels", () =>
    Effect.gen(function* () {
      const { makeUser } = yield* TestServer
      const { id } = yield* makeUser()
      const terms = ["--price", "5", "--hour", "10", "--day", "20", "--week", "30", "--direct"]
      const plan = yield* answerOf("plans", "create", "Small", ...terms, "--model", "sandbox/echo")
      assert.deepInclude(plan, {
        name: "Small",
        price_usd: 5,
        covers_direct_api: true,
        models: ["sandbox/echo"]
      })
      assert.deepStrictEqual(plan.allowances, { hour: 10, day: 20, week: 30 })
      assert.include((yield* run("plans", "list")).out, plan.id)
      const made = yield* answerOf("subscriptions", "create", id, plan.id, "2100-01-01T00:00:00Z")
      assert.deepInclude(made, { user_id: id, plan_id: plan.id, status: "active" })
      assert.include((yield* run("subscriptions", "list", "--user", id)).out, made.id)
      assert.include((yield* run("subscriptions", "show")).out, "Not subscribed")
      assert.deepInclude(yield* answerOf("subscriptions", "cancel", made.id), { status: "canceled" })
      assert.strictEqual((yield* run("subscriptions", "cancel", made.id)).code, 1)
    })
  )

  it.effect(
    "verifies the ledger: exit code 1, and what is wrong, where a number is not what the entries say",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        const { makeUser } = yield* TestServer
        const { id } = yield* makeUser()
        yield* run("credits", "topup", id, "1")
        const clean = yield* run("ledger", "verify")
        assert.deepStrictEqual([clean.code, clean.err], [0, ""])
        assert.include(clean.out, "every balance is right")
        yield* sql`UPDATE limits SET cap = cap + 1 WHERE id = ${`credits:${id}`}`
        const wrong = yield* run("ledger", "verify")
        assert.strictEqual(wrong.code, 1)
        assert.match(wrong.out, new RegExp(`credits:${id} +- +cap +1000000000000 +1000000000001`))
        assert.include(wrong.err, "1 numbers of the ledger are not what its entries say")
        assert.deepInclude(JSON.parse((yield* run("ledger", "verify", "--json")).out), { ok: false })
      })
  )
})
