import { assert, layer } from "@effect/vitest"
import { Effect, Exit, Layer, Scope } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import * as DurableLog from "#streams/kernel/DurableLog.ts"
import { type CallRecord, nothingDrawn } from "#streams/llm/CallRecord.ts"
import { encode } from "#streams/llm/CallRow.ts"
import { LedgerCheck } from "#src/llm/ledger/LedgerCheck.ts"
import * as LedgerSink from "#src/llm/ledger/LedgerSink.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import { askOf, dollars, limitOf, makeKey, makeUser, recordOf, subscribe, topUp } from "./LedgerProbe.ts"
import { type Side, side, sideIn, temporaryDirectory } from "./Sides.ts"

const stores = LedgerCheck.layer.pipe(
  Layer.provideMerge(TestStores.layerWith({ limits: { ledgerIdleMillis: 300, ledgerWaitMillis: 2_000 } }))
)

const live = { excludeTestServices: true } as const

const someone = Effect.fnUntraced(function* (usd: number, spendLimitUsd: number | null = null) {
  const user = yield* makeUser
  const key = yield* makeKey(user, spendLimitUsd)
  yield* topUp(user, dollars(usd))
  return { user, key, ask: askOf(user, key, dollars(0.001)) }
})

const isVerified = Effect.gen(function* () {
  const { differences } = yield* Effect.flatMap(LedgerCheck, ({ verify }) => verify)
  assert.deepStrictEqual(differences, [])
})

const credits = (user: string) => limitOf(`credits:${user}`)

/** `owner` has been silent for so long that `other` gives up its leases, as soon as nothing holds its row. */
const sweptBy = Effect.fnUntraced(function* (other: Side, owner: string) {
  const sql = yield* SqlClient
  yield* sql`UPDATE owners SET heartbeat = clock_timestamp() - interval '16 minutes' WHERE id = ${owner}`
  yield* eventually(
    "the leases are given up",
    Effect.andThen(
      other.store.sweep,
      Effect.map(sql`SELECT 1 FROM leases WHERE owner = ${owner}`, (rows) => rows.length === 0)
    )
  )
})

layer(stores, live)("the settlement of the log of calls", (it) => {
  it.effect(
    "books a call once, however often it is in the log, and a batch once, however often it comes",
    () =>
      Effect.gen(function* () {
        const { calls, ledger, store } = yield* side
        const { ask, key, user } = yield* someone(1)
        const settlement = (yield* ledger.admit(ask)).settle({ cost: dollars(0.1), tokens: 100 })
        const record = recordOf(user, key, settlement)
        calls.append(record)
        calls.append(record)
        yield* ledger.flush
        calls.append(record)
        yield* ledger.flush
        const sink = yield* LedgerSink.make(store.owner)
        const records = [{ offset: 0, appendedAtMillis: 0, payload: encode(record) }]
        yield* sink.write({ logId: 0n, from: 0, to: 1, records, token: "", recovering: true })
        assert.deepInclude(yield* credits(user), { settled: String(dollars(0.1)) })
        yield* isVerified
      }).pipe(Effect.scoped)
  )

  it.effect("books a batch wholly or not at all", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const { store } = yield* side
      const sink = yield* LedgerSink.make(store.owner)
      const { key, user } = yield* someone(1)
      const good: CallRecord = recordOf(user, key, {
        ...nothingDrawn,
        charge: "5",
        draws: [{ limit: `credits:${user}`, windowStart: 0, amount: "5", leased: true }]
      })
      const bad = { ...recordOf(user, key, { ...nothingDrawn, loss: "1" }), userId: null }
      const records = [encode(good), Buffer.from(JSON.stringify(bad))].map((payload, offset) => ({
        offset,
        appendedAtMillis: 0,
        payload
      }))
      const batch = { logId: 0n, from: 0, to: 2, records, token: "", recovering: false }
      assert.deepInclude(yield* Effect.flip(sink.write(batch)), { _tag: "SinkRefused", blames: "record" })
      const entries = yield* sql`SELECT 1 FROM entries WHERE user_id = ${user} AND kind <> 'topup'`
      assert.lengthOf(entries, 0)
      assert.deepInclude(yield* credits(user), { settled: "0", leased: "0" })
      const [owner] = yield* sql`SELECT applied::int AS applied FROM owners WHERE id = ${store.owner}`
      assert.deepStrictEqual(owner, { applied: 0 })
    }).pipe(Effect.scoped)
  )

  it.effect("at the start books what the run before has left, and then gives back what it had leased", () =>
    Effect.gen(function* () {
      const { ask, key, user } = yield* someone(1, 10)
      const dataDir = yield* temporaryDirectory
      const scope = yield* Scope.make()
      const before = yield* Scope.provide(sideIn(dataDir), scope)
      const settlement = (yield* before.ledger.admit(ask)).settle({ cost: dollars(0.07), tokens: 70 })
      yield* before.ledger.admit(ask)
      yield* Scope.close(scope, Exit.void)
      // The remains of a crash: an unsettled record, and leases not given back.
      yield* Effect.scoped(
        Effect.flatMap(
          DurableLog.open({ directory: `${dataDir}/llm/log`, consumers: ["ledger", "clickhouse"] }),
          (log) => log.appendEffect(encode(recordOf(user, key, settlement)))
        )
      )
      const sql = yield* SqlClient
      yield* sql`INSERT INTO leases (owner, limit_id, window_start, granted)
        VALUES (${before.store.owner}, ${`credits:${user}`}, 'epoch', 300000000000)`
      yield* sql`UPDATE limits SET leased = leased + 300000000000 WHERE id = ${`credits:${user}`}`
      yield* sideIn(dataDir)
      assert.deepInclude(yield* credits(user), { settled: String(dollars(0.07)), leased: "0" })
      yield* isVerified
    }).pipe(Effect.scoped)
  )
})

layer(stores, live)("leases", (it) => {
  it.effect("that nobody uses are given back", () =>
    Effect.gen(function* () {
      const { ledger } = yield* side
      const { ask, user } = yield* someone(100)
      const admission = yield* ledger.admit(ask)
      admission.release()
      assert.notStrictEqual((yield* credits(user))?.leased, "0")
      yield* eventually(
        "the idle lease is given back",
        Effect.map(credits(user), (row) => row?.leased === "0")
      )
      yield* isVerified
    }).pipe(Effect.scoped)
  )

  it.effect("of another process are recalled before a call is cut or refused", () =>
    Effect.gen(function* () {
      const [one, other] = [yield* side, yield* side]
      const { ask, user } = yield* someone(0.3)
      // Leased by one, and not held.
      const admission = yield* one.ledger.admit(ask)
      admission.release()
      assert.notStrictEqual((yield* credits(user))?.leased, "0")
      const all = yield* other.ledger.admit({ ...ask, outputTokens: 300 })
      assert.deepInclude(all, { outputTokens: 300, clamped: false })
      all.release()
    }).pipe(Effect.scoped)
  )

  it.effect("that calls of another process hold are waited for", () =>
    Effect.gen(function* () {
      const [one, other] = [yield* side, yield* side]
      const { ask } = yield* someone(0.1)
      const admission = yield* one.ledger.admit(ask)
      const [waited] = yield* Effect.all(
        [
          other.ledger.admit(ask),
          Effect.delay(
            Effect.sync(() => admission.release()),
            100
          )
        ],
        { concurrency: 2 }
      )
      assert.deepInclude(waited, { outputTokens: 100, clamped: false })
    }).pipe(Effect.scoped)
  )

  it.effect("of a process that has been silent for 15 minutes are given up by others", () =>
    Effect.gen(function* () {
      const [dead, alive] = [yield* side, yield* side]
      const { ask, user } = yield* someone(0.1)
      yield* dead.ledger.admit(ask)
      yield* alive.store.sweep
      assert.notStrictEqual((yield* credits(user))?.leased, "0", "it has not been silent yet")
      yield* sweptBy(alive, dead.store.owner)
      assert.deepInclude(yield* credits(user), { leased: "0" })
      assert.deepInclude(yield* alive.ledger.admit(ask), { outputTokens: 100, clamped: false })
      yield* isVerified
    }).pipe(Effect.scoped)
  )

  it.effect("that others have given up are not used any more once their process hears of it", () =>
    Effect.gen(function* () {
      const [silent, alive] = [yield* side, yield* side]
      const { ask } = yield* someone(100)
      const lease = yield* silent.ledger.admit(ask)
      lease.release()
      const held = silent.ledger.admitNow(ask)
      assert.isDefined(held)
      yield* sweptBy(alive, silent.store.owner)
      yield* silent.store.heartbeat
      assert.isUndefined(silent.ledger.admitNow(ask))
      // It ends with nothing to give back.
      held.release()
      assert.deepInclude(yield* silent.ledger.admit(ask), { outputTokens: 100 })
      yield* isVerified
    }).pipe(Effect.scoped)
  )

  it.effect(
    "that were given up are settled as far as something is left; the rest is the platform's loss",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        const [late, alive] = [yield* side, yield* side]
        const { ask, key, user } = yield* someone(0.13, 10)
        const admission = yield* late.ledger.admit(ask)
        yield* sweptBy(alive, late.store.owner)
        const others = (yield* alive.ledger.admit(ask)).settle({ cost: dollars(0.1), tokens: 100 })
        alive.calls.append(recordOf(user, key, others))
        yield* eventually(
          "only what was charged is taken",
          Effect.map(credits(user), (row) => row?.leased === "0" && row.settled === String(dollars(0.1)))
        )
        const record = recordOf(user, key, admission.settle({ cost: dollars(0.1), tokens: 100 }))
        late.calls.append(record)
        yield* late.ledger.flush
        const entries =
          yield* sql`SELECT kind, amount::text FROM entries WHERE request_id = ${record.id} ORDER BY kind`
        assert.deepStrictEqual(entries, [
          { kind: "charge", amount: String(dollars(0.03)) },
          { kind: "loss:beyond_hold", amount: String(dollars(0.07)) }
        ])
        assert.deepInclude(yield* credits(user), { settled: String(dollars(0.13)) })
        assert.deepInclude(yield* limitOf(`key:${key}`), { settled: String(dollars(0.13)) })
        yield* isVerified
      }).pipe(Effect.scoped)
  )

  it.effect("that were given up and leased anew for the same call are drawn from once a window", () =>
    Effect.gen(function* () {
      const [late, alive] = [yield* side, yield* side]
      const { ask, key, user } = yield* someone(1)
      const subscription = yield* subscribe(user)
      yield* late.refresh
      const admission = yield* late.ledger.admit(ask)
      yield* sweptBy(alive, late.store.owner)
      yield* late.store.heartbeat
      assert.strictEqual(yield* Effect.promise(() => admission.extend(150)), 150)
      const settlement = admission.settle({ cost: 1n, tokens: 160 })
      assert.deepStrictEqual(
        settlement.draws.map(({ amount, limit }) => [limit.split(":")[2], amount]),
        [
          ["day", "160"],
          ["hour", "160"],
          ["week", "160"]
        ]
      )
      late.calls.append(recordOf(user, key, settlement))
      yield* late.ledger.flush
      assert.deepInclude(yield* limitOf(`allowance:${subscription}:week`), { settled: "160" })
      yield* isVerified
    }).pipe(Effect.scoped)
  )
})

layer(stores, live)("what the database keeps", (it) => {
  it.effect("entries are only ever added", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const { user } = yield* someone(1)
      yield* Effect.flip(sql`UPDATE entries SET amount = 1 WHERE user_id = ${user}`)
      yield* Effect.flip(sql`DELETE FROM entries WHERE user_id = ${user}`)
      yield* Effect.flip(sql`TRUNCATE entries`)
      assert.deepInclude(yield* credits(user), { cap: String(dollars(1)) })
      yield* isVerified
    })
  )

  it.effect("a balance cannot become negative, by whatever statement", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const { user } = yield* someone(1)
      const id = `credits:${user}`
      yield* Effect.flip(sql`UPDATE limits SET settled = cap + 1 WHERE id = ${id}`)
      yield* Effect.flip(sql`UPDATE limits SET settled = cap, leased = 1 WHERE id = ${id}`)
      yield* Effect.flip(sql`UPDATE limits SET leased = -1 WHERE id = ${id}`)
    })
  )

  it.effect("verify names every number that is not what the entries say", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const { verify } = yield* LedgerCheck
      const { key, user } = yield* someone(1, 2)
      yield* sql`UPDATE limits SET cap = cap + 7, settled = 5, leased = 3 WHERE id = ${`credits:${user}`}`
      yield* sql`UPDATE limits SET cap = cap + 1 WHERE id = ${`key:${key}`}`
      const { differenceCount, differences } = yield* verify
      assert.strictEqual(differenceCount, 4)
      const cap = String(dollars(1))
      assert.deepStrictEqual(differences, [
        {
          limit: `credits:${user}`,
          windowStart: null,
          what: "cap",
          expected: cap,
          found: String(dollars(1) + 7n)
        },
        { limit: `credits:${user}`, windowStart: null, what: "leased", expected: null, found: "3" },
        { limit: `credits:${user}`, windowStart: null, what: "settled", expected: null, found: "5" },
        {
          limit: `key:${key}`,
          windowStart: null,
          what: "cap",
          expected: String(dollars(2)),
          found: String(dollars(2) + 1n)
        }
      ])
      yield* sql`UPDATE limits SET cap = ${cap}::text::numeric, settled = 0, leased = 0 WHERE id = ${`credits:${user}`}`
      yield* sql`UPDATE limits SET cap = cap - 1 WHERE id = ${`key:${key}`}`
      yield* isVerified
    })
  )
})
