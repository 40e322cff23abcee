import { assert, layer } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, Fiber, Layer, Redacted, Schema, Scope } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { AppConfig } from "#src/Config.ts"
import * as Postgres from "#src/infra/postgres/Postgres.ts"
import { type Claim, Idempotency } from "#src/infra/postgres/Idempotency.ts"
import { migrate } from "#src/infra/postgres/Migrations.ts"
import { idempotency } from "#src/llm/migrations/postgres/0011_Idempotency.ts"
import { postgresMigrations } from "#src/Migrations.ts"
import { limits as defaults } from "#src/Limits.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { makePrivateDatabase } from "#test/harness/PrivateDatabase.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import { forSeeds, SeededRandom } from "#test/simulation/Seed.ts"

const seed = Number(process.env["SIMULATION_SEED"] ?? 1)
const twins = 500

/** Beats and sweeps come often, waits are long: how fast the machine is decides nothing. */
const limits = {
  idempotencyBeatMillis: 20,
  idempotencySweepMillis: 5,
  idempotencySweepRows: 2,
  idempotencyWaitMillis: 60_000
}

const live = { excludeTestServices: true } as const

/** The result of a request: the attempt that made it. */
const Made = Schema.Struct({ attempt: Schema.Number })
type Made = typeof Made.Type

interface Process {
  readonly service: Idempotency["Service"]
  /** of its own connections */
  readonly sql: SqlClient
  /** Its claims are not renewed any more; its later words come late. */
  readonly die: Effect.Effect<void>
}

/** Connections as another process has them. */
const startPool = Layer.build(Layer.fresh(Postgres.layer))

const startProcess = Effect.fnUntraced(function* (pool: Context.Context<SqlClient>) {
  const life = yield* Scope.fork(yield* Effect.scope)
  const built = yield* Layer.build(Layer.fresh(Idempotency.layer)).pipe(
    Scope.provide(life),
    Effect.provideContext(Context.merge(yield* Effect.context<AppConfig>(), pool))
  )
  const process: Process = {
    service: Context.get(built, Idempotency),
    sql: Context.get(pool, SqlClient),
    die: Scope.close(life, Exit.void)
  }
  return process
})

const twoProcesses = Effect.all([
  Effect.flatMap(startPool, startProcess),
  Effect.flatMap(startPool, startProcess)
])

const requestOf = (key: string, body = "a") => ({ scope: "test:1", userId: "usr_1", key, request: [body] })

const answerOf = ({ attempt }: Made) => ({
  status: 200,
  contentType: "application/json",
  body: JSON.stringify({ attempt })
})

const each = <A, E, R>(
  processes: ReadonlyArray<Process>,
  one: (process: Process) => Effect.Effect<A, E, R>
) =>
  Effect.forEach(
    Array.from({ length: twins }, (_, index) => processes[index % processes.length]).flatMap(
      (process) => process ?? []
    ),
    one,
    { concurrency: "unbounded" }
  )

layer(TestStores.layerWith({ limits }), live)("500 requests at once with one key, by two processes", (it) => {
  it.effect("are carried out in one transaction, the first that does not fail, and all get its result", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      yield* sql`CREATE TABLE made (attempt integer PRIMARY KEY)`
      const processes = yield* twoProcesses
      let attempts = 0
      const results = yield* each(processes, (process) => {
        const make = Effect.gen(function* () {
          const attempt = ++attempts
          yield* process.sql`INSERT INTO made (attempt) VALUES (${attempt})`
          return attempt <= 3 ? yield* Effect.fail("no luck" as const) : { attempt }
        })
        return Effect.result(process.service.inTransaction(requestOf("transaction"), Made, make))
      })
      assert.strictEqual(attempts, 4)
      const failed = results.filter(({ _tag }) => _tag === "Failure")
      assert.deepStrictEqual(
        failed.map((result) => (result._tag === "Failure" ? result.failure : undefined)),
        ["no luck", "no luck", "no luck"]
      )
      const made = results.flatMap((result) => (result._tag === "Success" ? [result.success.attempt] : []))
      assert.deepStrictEqual([made.length, new Set(made)], [twins - 3, new Set([4])])
      assert.deepStrictEqual(yield* sql`SELECT attempt FROM made`, [{ attempt: 4 }])
    }).pipe(Effect.scoped)
  )

  it.effect("have one claim, whose answer all get once it is finished", () =>
    Effect.gen(function* () {
      const processes = yield* twoProcesses
      const claim = ({ service }: Process) => service.claim(requestOf("claim"))
      const claims = yield* each(processes, claim)
      const own = claims.flatMap((one) => (one._tag === "Claimed" ? [one] : []))
      assert.strictEqual(own.length, 1)
      assert.strictEqual(claims.filter(({ _tag }) => _tag === "InFlight").length, twins - 1)
      const answer = answerOf({ attempt: 1 })
      yield* own[0]?.finish(answer) ?? Effect.void
      for (const again of yield* each(processes, claim))
        assert.deepStrictEqual(again, { _tag: "Answered", answer })
    }).pipe(Effect.scoped)
  )

  it.effect("are never carried out by two at once, whether they fail, expire or are answered", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const random = new SeededRandom(seed)
      const processes = yield* twoProcesses
      const underWay = new Map<string, number>()
      let carriedOut = 0
      yield* each(processes, ({ service }) =>
        Effect.gen(function* () {
          const key = `storm ${random.below(4)}`
          const claim = yield* service.claim(requestOf(key))
          if (claim._tag !== "Claimed") return assert.notStrictEqual(claim._tag, "OtherRequest")
          carriedOut++
          underWay.set(key, (underWay.get(key) ?? 0) + 1)
          assert.strictEqual(underWay.get(key), 1, `${key}, SIMULATION_SEED=${seed}`)
          yield* Effect.sleep(random.below(5))
          underWay.set(key, 0)
          const isAnswered = random.below(2) === 0
          yield* claim.finish(isAnswered ? answerOf({ attempt: 1 }) : undefined)
          // Answers expire at once: sweeps and claims meet at the same row.
          yield* sql`UPDATE idempotency SET created_at = created_at - interval '25 hours'
            WHERE key = ${key} AND status IS NOT NULL`
        })
      )
      assert.isAbove(carriedOut, 4)
    }).pipe(Effect.scoped)
  )

  it.effect("leave a row that was old to the one that takes it over while it is swept", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const [sweeping, { service }] = yield* twoProcesses
      const carryOut = (attempt: number, millis: number) =>
        service.inTransaction(requestOf("old"), Made, Effect.as(Effect.sleep(millis), { attempt }))
      yield* carryOut(1, 0)
      // No sweep can remove the row before the next request has it: both come with one commit.
      const taken = yield* sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`UPDATE idempotency SET created_at = created_at - interval '25 hours' WHERE key = 'old'`
          const running = yield* Effect.forkScoped(carryOut(2, 200))
          yield* eventually(
            "it waits for the row",
            Effect.map(
              sweeping.sql`SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%ON CONFLICT%'`,
              (waiting) => waiting.length > 0
            )
          )
          return running
        })
      )
      assert.deepStrictEqual(yield* Fiber.join(taken), { attempt: 2 })
      // Sweeps that waited for the row are through.
      yield* Effect.sleep(100)
      assert.deepStrictEqual(yield* carryOut(3, 0), { attempt: 2 })
    }).pipe(Effect.scoped)
  )
})

layer(TestStores.layerWith({ limits: { idempotencyWaitMillis: 50 } }), live)("one transaction", (it) => {
  it.effect("that lasts longer than its twin waits is a conflict, and its result is known afterwards", () =>
    Effect.gen(function* () {
      const [first, second] = yield* twoProcesses
      const goes = yield* Deferred.make<Made>()
      const begun = yield* Deferred.make<void>()
      const make = Effect.andThen(Deferred.succeed(begun, undefined), Deferred.await(goes))
      const running = yield* Effect.forkChild(first.service.inTransaction(requestOf("long"), Made, make))
      yield* Deferred.await(begun)
      const twin = (body?: string) =>
        second.service.inTransaction(requestOf("long", body), Made, Effect.succeed({ attempt: 2 }))
      const message = "A request with this Idempotency-Key is being served"
      assert.deepInclude(yield* Effect.flip(twin()), { _tag: "Conflict", message })
      yield* Deferred.succeed(goes, { attempt: 1 })
      yield* eventually(
        "the first has ended",
        Effect.sync(() => running.pollUnsafe() !== undefined)
      )
      assert.deepStrictEqual(yield* twin(), { attempt: 1 })
      assert.deepInclude(yield* Effect.flip(twin("b")), {
        message: "This Idempotency-Key was used for another request"
      })
    }).pipe(Effect.scoped)
  )
})

layer(TestStores.layerWith({ limits: { idempotencyWaitMillis: 50 } }), live)(
  "work in a transaction",
  (it) => {
    it.effect("waits for its own locks for longer than for a twin", () =>
      Effect.gen(function* () {
        const [{ service, sql }, other] = yield* twoProcesses
        yield* sql`CREATE TABLE locked (id integer)`
        yield* sql`INSERT INTO locked VALUES (1)`
        const begun = yield* Deferred.make<void>()
        const make = Effect.andThen(
          Deferred.succeed(begun, undefined),
          Effect.as(Effect.orDie(sql`UPDATE locked SET id = 2`), { attempt: 1 })
        )
        const made = yield* other.sql.withTransaction(
          Effect.gen(function* () {
            yield* other.sql`SELECT FROM locked FOR UPDATE`
            const running = yield* Effect.forkChild(service.inTransaction(requestOf("locks"), Made, make))
            yield* Deferred.await(begun)
            yield* Effect.sleep(500)
            return running
          })
        )
        assert.deepStrictEqual(yield* Fiber.join(made), { attempt: 1 })
      }).pipe(Effect.scoped)
    )
  }
)

layer(TestStores.layerEmpty, live)("answers of before all were in one table", (it) => {
  it.effect("are repeated after the upgrade", () =>
    Effect.gen(function* () {
      const { databaseUrl } = yield* TestStores
      const database = yield* Effect.acquireRelease(
        Effect.promise(() => makePrivateDatabase(databaseUrl)),
        ({ drop }) => Effect.promise(drop)
      )
      const config = AppConfig.layerOf({ databaseUrl: Redacted.make(database.url) })
      const pool = yield* Effect.provide(startPool, config)
      const migrateTo = (id: number) =>
        Effect.provide(migrate(postgresMigrations.filter((one) => one.id <= id)), pool)
      yield* migrateTo(idempotency.id - 1)
      yield* Context.get(pool, SqlClient)`INSERT INTO top_up_answers (user_id, key, body, answer)
        VALUES ('usr_1', 'k', '["usr_1",3,null]', '{"attempt":1}')`
      yield* migrateTo(Infinity)
      const { service } = yield* Effect.provide(startProcess(pool), config)
      const again = (request: string) =>
        service.inTransaction(
          { scope: "top-up:usr_1", userId: "usr_1", key: "k", request: [request] },
          Made,
          Effect.succeed({ attempt: 2 })
        )
      assert.deepStrictEqual(yield* again('["usr_1",3,null]'), { attempt: 1 })
      assert.strictEqual((yield* Effect.flip(again('["usr_1",4,null]')))._tag, "Conflict")
    }).pipe(Effect.scoped)
  )
})

/** The rules in memory, one request after the other. */
class Model {
  readonly rows = new Map<
    string,
    { body: string; claim: number; answer: Made | undefined; free?: "dead" | "old" }
  >()

  /** undefined: it is carried out, as `claim` */
  take(key: string, body: string, claim: number): { _tag: string; attempt?: number } | undefined {
    const row = this.rows.get(key)
    if (row === undefined || row.free !== undefined) {
      this.rows.set(key, { body, claim, answer: undefined })
      return undefined
    }
    if (row.body !== body) return { _tag: "OtherRequest" }
    return row.answer === undefined ? { _tag: "InFlight" } : { _tag: "Answered", ...row.answer }
  }

  finish(key: string, claim: number, answer: Made | undefined): void {
    const row = this.rows.get(key)
    if (row?.claim !== claim) return
    if (answer === undefined) return void this.rows.delete(key)
    row.answer = answer
    // A late answer counts where the claim was free and nothing has taken it.
    if (row.free === "dead") delete row.free
  }
}

const heard = (claim: Claim) =>
  claim._tag === "Answered"
    ? {
        _tag: claim._tag,
        attempt: Schema.decodeUnknownSync(Schema.fromJsonString(Made))(claim.answer.body).attempt
      }
    : { _tag: claim._tag }

/** The tag of an earlier request, by the text of a conflict. */
const tagOf = (message: string) => (message.endsWith("being served") ? "InFlight" : "OtherRequest")

const keys = ["x", "y", "z"] as const

/** Each step is done to Postgres and to the model, and both are seen to say the same. */
const simulate = Effect.fnUntraced(function* (random: SeededRandom, prefix: string) {
  const sql = yield* SqlClient
  const pool = yield* startPool
  const pick = <A>(from: ReadonlyArray<A>): A =>
    from[random.below(from.length)] ?? assert.fail("nothing to pick")
  const model = new Model()
  const processes = [yield* startProcess(pool), yield* startProcess(pool)]
  const claims: Array<{
    key: string
    claim: number
    process: Process
    finish: (made?: Made) => Effect.Effect<void>
  }> = []
  const seen = new Map<string, number>()
  const count = (what: string) => seen.set(what, (seen.get(what) ?? 0) + 1)

  const claim = (key: string, body: string, number: number) =>
    Effect.gen(function* () {
      const process = pick(processes)
      const claimed = yield* process.service.claim(requestOf(prefix + key, body))
      const expected = model.take(key, body, number)
      count(claimed._tag)
      assert.deepStrictEqual(heard(claimed), expected ?? { _tag: "Claimed" })
      if (claimed._tag !== "Claimed") return
      const finish = (made?: Made) => claimed.finish(made === undefined ? undefined : answerOf(made))
      claims.push({ key, claim: number, process, finish })
    })

  const finish = (number: number) =>
    Effect.gen(function* () {
      if (claims.length === 0) return
      const [one] = claims.splice(random.below(claims.length), 1)
      if (one === undefined) return
      const answer = random.below(3) > 0 ? { attempt: number } : undefined
      count(model.rows.get(one.key)?.claim === one.claim ? "finished" : "too late")
      yield* one.finish(answer)
      model.finish(one.key, one.claim, answer)
    })

  const transaction = (key: string, body: string, number: number) =>
    Effect.gen(function* () {
      const isToFail = random.below(3) === 0
      const made = yield* pick(processes)
        .service.inTransaction(
          requestOf(prefix + key, body),
          Made,
          isToFail ? Effect.fail({ _tag: "NoLuck" } as const) : Effect.succeed({ attempt: number })
        )
        .pipe(
          Effect.map(({ attempt }) => ({ _tag: "Answered", attempt })),
          Effect.catchTag("NoLuck", ({ _tag }) => Effect.succeed({ _tag })),
          Effect.catchTag("Conflict", ({ message }) => Effect.succeed({ _tag: tagOf(message) }))
        )
      count(`transaction: ${made._tag}`)
      // One that fails leaves what was there, to be taken by the next.
      const before = model.rows.get(key)
      const expected = model.take(key, body, number)
      if (expected !== undefined) return assert.deepStrictEqual(made, expected)
      if (isToFail && before === undefined) model.rows.delete(key)
      if (isToFail && before !== undefined) model.rows.set(key, before)
      if (!isToFail) model.finish(key, number, { attempt: number })
      assert.deepStrictEqual(made, isToFail ? { _tag: "NoLuck" } : { _tag: "Answered", attempt: number })
    })

  const dead = new Set<Process>()
  const death = Effect.gen(function* () {
    const died = processes.splice(random.below(processes.length), 1)
    for (const process of died) {
      dead.add(process)
      yield* process.die
    }
    processes.push(yield* startProcess(pool))
  })

  /** Time passes by which a process counts as dead: the others renew their claims. */
  const silence = Effect.gen(function* () {
    const millis = defaults.idempotencyDeadMillis + 1_000
    yield* sql`UPDATE idempotency SET alive_at = alive_at - ${millis} * interval '1 millisecond'
      WHERE starts_with(key, ${prefix})`
    const ofLiving = claims.flatMap(({ claim: number, key, process }) =>
      !dead.has(process) && model.rows.get(key)?.claim === number ? [prefix + key] : []
    )
    yield* eventually(
      "the claims of the living are renewed",
      Effect.map(
        sql`SELECT 1 FROM idempotency WHERE key = ANY(${ofLiving}::text[]) AND status IS NULL
          AND alive_at < clock_timestamp() - ${defaults.idempotencyDeadMillis} * interval '1 millisecond'`,
        (late) => late.length === 0
      )
    )
    for (const [key, row] of model.rows) {
      const isDead = !ofLiving.includes(prefix + key)
      if (row.answer === undefined && isDead) row.free ??= "dead"
    }
  })

  const expire = (key: string) =>
    Effect.gen(function* () {
      yield* sql`UPDATE idempotency SET created_at = created_at - interval '25 hours' WHERE key = ${prefix + key}`
      const row = model.rows.get(key)
      if (row !== undefined) row.free = "old"
    })

  for (let step = 1; step <= 200; step++) {
    const [key, body] = [pick(keys), pick(["a", "a", "b"])]
    const chosen = random.below(100)
    if (chosen < 40) yield* claim(key, body, step)
    else if (chosen < 65) yield* finish(step)
    else if (chosen < 80) yield* transaction(key, body, step)
    else if (chosen < 87) yield* expire(key)
    else if (chosen < 93) yield* silence
    else yield* death
  }
  return seen
})

layer(TestStores.layerWith({ limits }), live)("random claims, answers, deaths and expiries", (it) => {
  it.effect("are answered as by a model that knows one request after the other", () =>
    Effect.gen(function* () {
      const seen = new Map<string, number>()
      yield* forSeeds(6, (random, simulated) =>
        Effect.scoped(
          Effect.map(simulate(random, `${simulated} `), (counts) =>
            counts.forEach((count, outcome) => seen.set(outcome, (seen.get(outcome) ?? 0) + count))
          )
        )
      )
      const ofTransactions = ["Answered", "InFlight", "NoLuck", "OtherRequest"].map(
        (tag) => `transaction: ${tag}`
      )
      const outcomes = [
        "Claimed",
        "InFlight",
        "OtherRequest",
        "Answered",
        "finished",
        "too late",
        ...ofTransactions
      ]
      for (const outcome of outcomes) assert.isAbove(seen.get(outcome) ?? 0, 0, outcome)
    })
  )
})
