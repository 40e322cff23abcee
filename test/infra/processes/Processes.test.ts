import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer, Redacted } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { AppConfig, type Config } from "#src/Config.ts"
import { isAlive, Processes } from "#src/infra/processes/Processes.ts"
import { migrate } from "#src/infra/postgres/Migrations.ts"
import { postgresMigrations } from "#src/Migrations.ts"
import { type Limits, limits } from "#src/Limits.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { postgresWire } from "#test/harness/PostgresWire.ts"
import { TestStores } from "#test/harness/TestStores.ts"

const live = { excludeTestServices: true } as const

/** One more server process, until the scope closes. */
const processOf = Effect.fnUntraced(function* (changes: Partial<Config>, limits: Partial<Limits> = {}) {
  const config = yield* AppConfig
  const changed = { ...config, ...changes, limits: { ...config.limits, ...limits } }
  const built = yield* Layer.build(
    Layer.fresh(Processes.layer).pipe(Layer.provide(Layer.succeed(AppConfig, changed)))
  )
  return Context.get(built, Processes)
})

const member = { host: "10.0.0.5", port: 7000, secret: Redacted.make("secret"), silentSeconds: 12 }

const rowOf = (id: string) =>
  Effect.flatMap(SqlClient, (sql) =>
    Effect.map(
      sql<{ started_at: Date; alive_at: Date }>`SELECT * FROM processes WHERE id = ${id}`,
      ([row]) => row
    )
  )

const setSilent = (id: string, seconds: number) =>
  Effect.flatMap(
    SqlClient,
    (sql) =>
      sql`UPDATE processes SET alive_at = clock_timestamp() - ${seconds} * interval '1 second' WHERE id = ${id}`
  )

layer(TestStores.layer, live)("server processes", (it) => {
  it.effect("are alive until they end in peace, or are silent for 20 s", () =>
    Effect.gen(function* () {
      const one = yield* processOf({})
      const two = yield* processOf({})
      const gone = yield* Effect.scoped(processOf({}))
      assert.strictEqual(new Set([one.id, two.id, gone.id]).size, 3)
      const all = [one.id, two.id, gone.id, "prc_unknown"]
      assert.deepStrictEqual(yield* one.alive(all), new Set([one.id, two.id]))
      assert.deepStrictEqual(yield* one.alive([]), new Set())
      assert.isUndefined(yield* rowOf(gone.id))
      yield* setSilent(two.id, 15)
      assert.deepStrictEqual(yield* one.alive(all), new Set([one.id, two.id]))
      yield* setSilent(two.id, 21)
      assert.deepStrictEqual(yield* one.alive(all), new Set([one.id]))
    }).pipe(Effect.scoped)
  )

  it.effect(
    "note that they are alive, also when their row was taken away, with the time of their start",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        const { alive, id } = yield* processOf({}, { processBeatMillis: 20 })
        const before = yield* rowOf(id)
        yield* setSilent(id, 30)
        yield* eventually(
          "it is alive again",
          Effect.map(alive([id]), (ids) => ids.has(id))
        )
        yield* sql`DELETE FROM processes WHERE id = ${id}`
        yield* eventually(
          "it is there again",
          Effect.map(rowOf(id), (row) => row !== undefined)
        )
        const started = (yield* rowOf(id))?.started_at.getTime() ?? 0
        assert.closeTo(started, before?.started_at.getTime() ?? 0, 50)
      }).pipe(Effect.scoped)
  )

  it.effect("tell others of their cluster where they are, while they live", () =>
    Effect.gen(function* () {
      const alone = yield* processOf({})
      const { id } = yield* processOf({ cluster: member })
      assert.deepStrictEqual(yield* alone.addressOf(id), { host: "10.0.0.5", port: 7000 })
      assert.isUndefined(yield* alone.addressOf(alone.id))
      assert.isUndefined(yield* alone.addressOf("prc_unknown"))
      yield* setSilent(id, 21)
      assert.isUndefined(yield* alone.addressOf(id))
    }).pipe(Effect.scoped)
  )

  it.effect("of an earlier version are alive for this one, until they are silent", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const before = (id: number) => postgresMigrations.filter((migration) => migration.id < id)
      const seen = yield* sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`CREATE SCHEMA earlier`
          yield* sql`SET LOCAL search_path TO earlier`
          yield* migrate(before(15))
          yield* sql`INSERT INTO agent_owners (id, heartbeat_at) VALUES
            ('own_1', now()), ('own_2', now() - interval '21 seconds')`
          yield* migrate(before(16))
          return yield* sql`SELECT s.id FROM processes AS s WHERE ${isAlive(sql, sql`s.id`, limits)}`
        })
      )
      assert.deepStrictEqual(seen, [{ id: "own_1" }])
      yield* sql`DROP SCHEMA earlier CASCADE`
    }).pipe(Effect.scoped)
  )

  it.effect("are forgotten an hour after their last word, by those that come later", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      yield* sql`INSERT INTO processes (id, started_at, alive_at) VALUES
        ('prc_old', now(), now() - interval '61 minutes'), ('prc_silent', now(), now() - interval '59 minutes')`
      yield* processOf({})
      assert.isUndefined(yield* rowOf("prc_old"))
      assert.isDefined(yield* rowOf("prc_silent"))
    }).pipe(Effect.scoped)
  )
})

const postgres = postgresWire()

layer(TestStores.layerWith({}, postgres.wire), live)("a server process whose connections are lost", (it) => {
  it.effect("goes on to note that it is alive, by others", () =>
    Effect.gen(function* () {
      const { alive, id } = yield* processOf({}, { processBeatMillis: 300 })
      yield* postgres.lose
      yield* Effect.sleep(400)
      yield* eventually(
        "it notes it again",
        Effect.gen(function* () {
          yield* Effect.timeout(setSilent(id, 30), 1_000)
          yield* Effect.sleep(1_000)
          return (yield* Effect.timeout(alive([id]), 1_000)).has(id)
        })
      )
    }).pipe(Effect.scoped)
  )
})
