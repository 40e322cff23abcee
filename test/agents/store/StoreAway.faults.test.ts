import { assert, layer } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer, Logger, Redacted } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { StepStore } from "#actors/agents/StepStore.ts"
import { AppConfig } from "#src/Config.ts"
import * as Postgres from "#src/infra/postgres/Postgres.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { postgresWire } from "#test/harness/PostgresWire.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import { newSession, processLayer, rowOf, someone, stepOf } from "./Sessions.ts"

const postgres = postgresWire()

const logged: Array<string> = []
const stores = processLayer.pipe(
  Layer.provideMerge(
    TestStores.layerWith(
      { limits: { agentStoreMillis: 400, agentWriteMillis: 400, retryMaxMillis: 100 } },
      postgres.wire
    )
  ),
  Layer.provideMerge(Logger.layer([Logger.make(({ message }) => logged.push(String(message)))]))
)

/** Loses the answers that are on the wire, and mends it. */
const loseAnswers = Effect.sync(() => {
  postgres.breakWire("refuse")
  postgres.mend()
})

/** Past the wire. */
const directly = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.flatMap(TestStores, ({ databaseUrl }) =>
    Effect.provide(
      effect,
      // Fresh: the one behind the wire is not meant.
      Layer.fresh(
        Postgres.layer.pipe(Layer.provide(AppConfig.layerOf({ databaseUrl: Redacted.make(databaseUrl) })))
      )
    )
  )

const createdSession = Effect.fnUntraced(function* (...ask: Parameters<typeof newSession>) {
  const session = yield* newSession(...ask)
  yield* Effect.flatMap(StepStore, ({ create }) => create(session.facts, session.state))
  return session
})

const stepsOf = Effect.fnUntraced(function* (id: string) {
  const sql = yield* SqlClient
  const rows = yield* sql<{
    index: number
  }>`SELECT index FROM agent_steps WHERE session_id = ${id} ORDER BY index`
  return rows.map(({ index }) => index)
})

layer(stores, { excludeTestServices: true })("while Postgres is away", (it) => {
  for (const way of ["refuse", "stall"] as const) {
    it.effect(`a hello is told so within its bound; writes wait, in order, and say so once (${way})`, () =>
      Effect.gen(function* () {
        const { announced, claim, create, steps, write } = yield* StepStore
        const { facts, state } = yield* createdSession()
        const another = yield* newSession()
        const sessionId = facts.id
        logged.length = 0
        yield* postgres.cut(way)
        const waiting = yield* Effect.forkScoped(
          Effect.forEach(
            [0, 1, 2],
            (index) =>
              write({ sessionId, epoch: 1, state: { ...state, prompts: index }, steps: [stepOf(index)] }),
            { concurrency: "unbounded" }
          ),
          { startImmediately: true }
        )
        const asks = [
          Effect.asVoid(claim(sessionId)),
          create(another.facts, another.state),
          Effect.asVoid(steps(sessionId, 0)),
          Effect.asVoid(announced(sessionId, 0, 9))
        ]
        const told = yield* Effect.forEach(asks, (ask) => Effect.flip<void, { _tag: string }, never>(ask), {
          concurrency: "unbounded"
        })
        assert.deepStrictEqual([...new Set(told.map(({ _tag }) => _tag))], ["StepStoreAway"])
        yield* eventually(
          "it is told that steps wait",
          Effect.sync(() => logged.some((line) => line.includes("wait for Postgres")))
        )
        postgres.mend()
        yield* Fiber.join(waiting)
        assert.deepStrictEqual(yield* stepsOf(sessionId), [0, 1, 2])
        assert.strictEqual((yield* rowOf(sessionId))?.prompts, 2)
        assert.lengthOf(
          logged.filter((line) => line.includes("wait for Postgres")),
          1
        )
      }).pipe(Effect.scoped)
    )
  }
})

/** Asks for something that is carried out, and whose answer is lost. */
const unheard = <A, E extends { readonly _tag: string }>(
  ask: Effect.Effect<A, E>,
  isDone: Effect.Effect<boolean, unknown, SqlClient>
) =>
  Effect.gen(function* () {
    yield* postgres.cut("mute")
    const waiting = yield* Effect.forkScoped(Effect.flip(ask), { startImmediately: true })
    yield* eventually("it is carried out", directly(isDone))
    assert.strictEqual((yield* Fiber.join(waiting))._tag, "StepStoreAway")
    yield* loseAnswers
  }).pipe(Effect.scoped)

layer(stores, { excludeTestServices: true })("an answer that is lost", (it) => {
  it.effect("of a write: it is carried out once, and what came behind it follows", () =>
    Effect.gen(function* () {
      const { write } = yield* StepStore
      const { facts, state } = yield* createdSession()
      const sessionId = facts.id
      const writeStep = (index: number) =>
        write({ sessionId, epoch: 1, state: { ...state, prompts: index }, steps: [stepOf(index)] })
      yield* writeStep(0)
      yield* postgres.cut("mute")
      const first = yield* Effect.forkScoped(writeStep(1), { startImmediately: true })
      yield* eventually(
        "the step is stored",
        directly(Effect.map(stepsOf(sessionId), (all) => all.length === 2))
      )
      const behind = yield* Effect.forkScoped(
        Effect.forEach([2, 3], writeStep, { concurrency: "unbounded" }),
        { startImmediately: true }
      )
      assert.isUndefined(first.pollUnsafe(), "the answer was heard")
      yield* loseAnswers
      yield* Fiber.join(first)
      yield* Fiber.join(behind)
      assert.deepStrictEqual(yield* stepsOf(sessionId), [0, 1, 2, 3])
      assert.deepInclude(yield* rowOf(sessionId), { steps: 4, prompts: 3, epoch: 1 })
    }).pipe(Effect.scoped)
  )

  it.effect(
    "of a write, when somebody else has claimed the session since: ownership is lost, the step is there",
    () =>
      Effect.gen(function* () {
        const { write } = yield* StepStore
        const { facts, state } = yield* createdSession()
        const sessionId = facts.id
        yield* postgres.cut("mute")
        const first = yield* Effect.forkScoped(
          Effect.exit(write({ sessionId, epoch: 1, state, steps: [stepOf(0)] })),
          { startImmediately: true }
        )
        yield* eventually(
          "the step is stored",
          directly(Effect.map(stepsOf(sessionId), (all) => all.length === 1))
        )
        const claimed = yield* directly(
          Effect.flatMap(StepStore, ({ claim }) => claim(sessionId)).pipe(
            Effect.provide(Layer.fresh(processLayer))
          )
        )
        assert.deepStrictEqual([claimed?.epoch, claimed?.recent], [2, [stepOf(0)]])
        yield* loseAnswers
        const exit = yield* Fiber.join(first)
        assert.isTrue(Exit.isFailure(exit))
        assert.deepStrictEqual(yield* stepsOf(sessionId), [0])
      }).pipe(Effect.scoped)
  )

  it.effect("of a hello: a claim is made again with a higher epoch, and a new session does not count", () =>
    Effect.gen(function* () {
      const { claim, create } = yield* StepStore
      const of = yield* someone
      const { facts } = yield* createdSession({}, yield* someone)
      const lost = yield* newSession({}, of)
      yield* unheard(
        claim(facts.id),
        Effect.map(rowOf(facts.id), (row) => row?.epoch === 2)
      )
      assert.strictEqual((yield* Effect.retry(claim(facts.id), { times: 20 }))?.epoch, 3)
      yield* unheard(
        create(lost.facts, lost.state),
        Effect.map(rowOf(lost.facts.id), (row) => row !== undefined)
      )
      for (let made = 0; made < 8; made++) {
        const next = yield* newSession({}, of)
        yield* Effect.retry(create(next.facts, next.state), { while: ({ _tag }) => _tag === "StepStoreAway" })
      }
      assert.isUndefined(yield* rowOf(lost.facts.id))
    })
  )

  it.effect(
    "again and again, of connections that are killed: every step is there once, and the last state",
    () =>
      Effect.gen(function* () {
        const { write } = yield* StepStore
        const of = yield* Effect.all(Array.from({ length: 20 }, () => someone))
        const sessions = yield* Effect.forEach(of, (one) => createdSession({}, one))
        const indexes = Array.from({ length: 30 }, (_, index) => index)
        const writing = yield* Effect.forkScoped(
          Effect.forEach(
            sessions,
            ({ facts, state }) =>
              Effect.forEach(indexes, (index) =>
                write({
                  sessionId: facts.id,
                  epoch: 1,
                  state: { ...state, prompts: index },
                  steps: [stepOf(index)]
                })
              ),
            { concurrency: "unbounded" }
          )
        )
        const kill = Effect.flatMap(
          SqlClient,
          (sql) => sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
          WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE 'WITH given%'`
        )
        let kills = 0
        yield* directly(
          Effect.gen(function* () {
            while (writing.pollUnsafe() === undefined && kills < 15) {
              kills += (yield* kill).length > 0 ? 1 : 0
              yield* Effect.sleep(15)
            }
          })
        )
        yield* Fiber.join(writing)
        assert.isAbove(kills, 2, "nothing was killed")
        for (const { facts } of sessions) {
          assert.deepStrictEqual(yield* stepsOf(facts.id), indexes)
          assert.deepInclude(yield* rowOf(facts.id), { steps: 30, prompts: 29 })
        }
      }).pipe(Effect.scoped)
  )
})
