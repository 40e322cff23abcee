import { spawn } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Fiber, Layer, Redacted } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { AppConfig } from "#src/Config.ts"
import { done, queue } from "#src/infra/jobs/Job.ts"
import { Jobs } from "#src/infra/jobs/Jobs.ts"
import { Notices } from "#src/infra/notices/Notices.ts"
import * as Postgres from "#src/infra/postgres/Postgres.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { postgresWire } from "#test/harness/PostgresWire.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import { SeededRandom } from "#test/simulation/Seed.ts"
import { createTables, faults, handleWith, offerSome, planned, repeatedCount, unended } from "./JobLoad.ts"
import type { JobProcessOptions } from "./JobProcess.ts"
import { ends, endedOf, impatient, number } from "./JobStage.ts"

/** `JOB_KILLS=100` for a long run by hand; `SIMULATION_SEED` repeats its instants. */
const kills = Number(process.env["JOB_KILLS"] ?? 10)
const seed = Number(process.env["SIMULATION_SEED"] ?? Date.now() % 1_000_000)

const live = { excludeTestServices: true } as const

const postgres = postgresWire()

const start = async (options: JobProcessOptions) => {
  const child = spawn(
    process.execPath,
    [join(import.meta.dirname, "JobProcess.ts"), JSON.stringify(options)],
    {
      stdio: ["ignore", "pipe", "inherit"]
    }
  )
  const closed = once(child, "close")
  await Promise.race([once(child.stdout, "data"), closed])
  return {
    signal: (signal: NodeJS.Signals) => child.kill(signal),
    kill: async () => {
      child.kill("SIGKILL")
      const [, signal] = await closed
      assert.strictEqual(signal, "SIGKILL", "it ended by itself")
    }
  }
}

/** Starts and kills processes, one after the other. */
const killedTimes = async (databaseUrl: string, name: string, times: number): Promise<void> => {
  for (let n = 0; n < times; n++) {
    const random = new SeededRandom(seed * 1_000 + n + name.length)
    const child = await start({ databaseUrl, prefix: `${name}${n}`, seed: random.below(1_000_000) })
    await sleep(random.below(1_500))
    await child.kill()
  }
}

/** The jobs of one more process: with its own connections, through the wire. */
const farProcess = Effect.gen(function* () {
  const config = yield* AppConfig
  const own = Layer.succeed(AppConfig, {
    ...config,
    databaseUrl: Redacted.make(postgres.url()),
    limits: { ...config.limits, ...impatient }
  })
  return yield* Layer.build(
    Layer.fresh(Jobs.layer).pipe(
      Layer.provide(Layer.fresh(Notices.layer)),
      Layer.provideMerge(Layer.fresh(Postgres.layer)),
      Layer.provide(own)
    )
  )
})

/** Works on planned jobs in this process. */
const workHere = Effect.fnUntraced(function* (
  process: Context.Context<Jobs | SqlClient>,
  random: SeededRandom
) {
  const handle = handleWith({
    random,
    sql: yield* SqlClient,
    room: Context.get(process, SqlClient),
    isRevived: () => false,
    mostMillis: 30
  })
  yield* Context.get(process, Jobs).work(planned, { concurrency: 8, attemptMillis: 30_000, handle })
})

const clean = Effect.flatMap(
  SqlClient,
  (sql) => sql`TRUNCATE accepted, attempts, room_rows, jobs, jobs_ended, job_lanes`
)

const allEnd = eventually(
  "all jobs have ended",
  Effect.map(unended, (jobs) => jobs === 0)
)

const isRight = Effect.gen(function* () {
  yield* allEnd
  // Answers of the last attempts may be on their way.
  yield* Effect.sleep(500)
  assert.deepStrictEqual(yield* faults, [], `SIMULATION_SEED=${seed}`)
})

const stores = TestStores.layerWith({ limits: impatient }, postgres.beside)
const served = Layer.effectDiscard(createTables).pipe(
  Layer.provideMerge(Jobs.layer),
  Layer.provideMerge(Notices.layer),
  Layer.provideMerge(stores)
)

layer(served, live)("jobs", (it) => {
  it.effect(
    `are done once and in order while two processes are killed ${kills} times`,
    () =>
      Effect.gen(function* () {
        const { databaseUrl } = yield* TestStores
        yield* Effect.promise(() =>
          Promise.all([
            killedTimes(databaseUrl, "a", Math.ceil(kills / 2)),
            killedTimes(databaseUrl, "bb", Math.floor(kills / 2))
          ])
        )
        yield* workHere(yield* farProcess, new SeededRandom(seed))
        yield* isRight
        const repeated = yield* repeatedCount
        assert.isAbove(repeated, 0)
        yield* Effect.logInfo(
          `${kills} kills: ${(yield* endedOf("planned")).length} jobs, ${repeated} repeated, seed ${seed}`
        )
        yield* clean
      }).pipe(Effect.scoped),
    { timeout: 300_000 + kills * 60_000 }
  )

  it.effect(
    "of a process that hangs for longer than its leases go to others, and its late words do not count",
    () =>
      Effect.gen(function* () {
        const { databaseUrl } = yield* TestStores
        const hanging = yield* Effect.promise(() => start({ databaseUrl, prefix: "hanging", seed }))
        yield* workHere(yield* farProcess, new SeededRandom(seed))
        for (let n = 0; n < 3; n++) {
          yield* Effect.sleep(300)
          hanging.signal("SIGSTOP")
          yield* Effect.sleep(3_000)
          hanging.signal("SIGCONT")
          yield* Effect.sleep(700)
        }
        yield* Effect.promise(() => hanging.kill())
        yield* isRight
        assert.isAbove(yield* repeatedCount, 0)
        yield* clean
      }).pipe(Effect.scoped)
  )

  for (const way of ["refuse", "stall", "mute"] as const) {
    it.effect(`are done once and in order when Postgres is away (${way}) for a process`, () =>
      Effect.gen(function* () {
        const random = new SeededRandom(seed)
        yield* workHere(yield* farProcess, random)
        const offering = yield* Effect.forkChild(
          Effect.forEach(Array.from({ length: 300 }), (_, n) =>
            Effect.andThen(offerSome(`${way}${n}`, random), Effect.sleep(10))
          )
        )
        yield* Effect.sleep(500)
        postgres.breakWire(way)
        // For longer than its leases.
        yield* Effect.sleep(impatient.jobLeaseMillis + 1_000)
        // Connections of the time before are gone for good.
        postgres.breakWire("refuse")
        const before = yield* unended
        assert.isAbove(before, 0)
        postgres.mend()
        yield* Fiber.join(offering)
        yield* isRight
        yield* clean
      }).pipe(Effect.scoped)
    )
  }

  it.effect("are done while a snapshot is held open over thousands of them", () =>
    Effect.gen(function* () {
      const [jobs, sql] = [yield* Jobs, yield* SqlClient]
      const many = queue("many", number)
      yield* sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`SET TRANSACTION ISOLATION LEVEL REPEATABLE READ`
          yield* sql`SELECT count(*) FROM jobs`
          const offers = Array.from({ length: 5_000 }, (_, n) => ({ lane: `l${n % 50}`, payload: { n } }))
          yield* Effect.forkScoped(
            Effect.flatMap(farProcess, (far) => Context.get(far, Jobs).offer(many, offers))
          )
          yield* jobs.work(many, {
            concurrency: 50,
            attemptMillis: 10_000,
            handle: () => Effect.succeed(done())
          })
          const own = yield* farProcess
          yield* Effect.provideContext(ends("many", 5_000), Context.pick(SqlClient)(own))
        })
      )
    }).pipe(Effect.scoped)
  )

  it.effect("are done once and in order when the clock of Postgres jumps ahead and back", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const random = new SeededRandom(seed)
      const jump = (seconds: number) =>
        sql.unsafe(`CREATE OR REPLACE FUNCTION jobs_now() RETURNS timestamptz LANGUAGE sql VOLATILE
          AS $$ SELECT clock_timestamp() + interval '${seconds} seconds' $$`)
      yield* workHere(yield* farProcess, random)
      yield* workHere(yield* farProcess, random)
      for (const seconds of [3_600, 0, 3, -3, 0]) {
        for (let n = 0; n < 20; n++) {
          yield* offerSome(`clock${seconds}-${random.below(1e9)}`, random)
          yield* Effect.sleep(10)
        }
        yield* jump(seconds)
        yield* Effect.sleep(1_000)
      }
      // Put back, it holds up jobs for as long as it was put back: here for an hour, unless it is ahead once more.
      yield* jump(7_200)
      yield* isRight
      yield* jump(0)
      yield* clean
    }).pipe(Effect.scoped)
  )
})
