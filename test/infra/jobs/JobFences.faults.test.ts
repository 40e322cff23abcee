import { assert, describe, layer } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Schema, Scope } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { AppConfig } from "#src/Config.ts"
import { dead, done, queue } from "#src/infra/jobs/Job.ts"
import { Jobs } from "#src/infra/jobs/Jobs.ts"
import { type Claimed, JobStore } from "#src/infra/jobs/JobStore.ts"
import { JobWorker } from "#src/infra/jobs/JobWorker.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { endedOf, ends, jobsWith, number, waitingOf } from "./JobStage.ts"

const leaseMillis = 60_000

const store = Effect.map(SqlClient, (sql) => new JobStore(sql))

/** Its answers take a while. */
class FarStore extends JobStore {
  override claim(...args: Parameters<JobStore["claim"]>) {
    return Effect.tap(super.claim(...args), Effect.sleep(500))
  }
}

const claimOne = (name: string) =>
  Effect.gen(function* () {
    const [claimed] = yield* (yield* store).claim(name, "w", 1, leaseMillis)
    if (claimed === undefined) return yield* Effect.die(new Error("nothing is due"))
    return claimed
  })

const settled = (claimed: Claimed, outcome: "done" | "dead" | "again") => ({
  ...claimed,
  outcome,
  restMillis: 0,
  error: outcome
})

/** The lease ends now. */
const leaseOver = (name: string) =>
  Effect.flatMap(SqlClient, (sql) => sql`UPDATE job_lanes SET due_at = now() WHERE queue = ${name}`)

/** Runs an effect while another transaction has rows or a table locked. */
const whileLocked = <A, E, R>(lock: string, effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient
    const [locked, over] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
    const other = yield* Effect.forkChild(
      sql.withTransaction(
        sql
          .unsafe(lock)
          .pipe(Effect.andThen(Deferred.succeed(locked, undefined)), Effect.andThen(Deferred.await(over)))
      )
    )
    yield* Deferred.await(locked)
    const result = yield* Effect.ensuring(effect, Deferred.succeed(over, undefined))
    yield* Fiber.join(other)
    return result
  })

const lockLane = (name: string, lane: string) =>
  `SELECT 1 FROM job_lanes WHERE queue = '${name}' AND lane = '${lane}' FOR UPDATE`

layer(jobsWith({ jobLeaseMillis: 1_500 }), { excludeTestServices: true })("jobs, where two meet", (it) => {
  describe("a lease that is over", () => {
    it.effect("settles nothing, not even in one statement with the lease after it", () =>
      Effect.gen(function* () {
        const [jobs, jobStore] = [yield* Jobs, yield* store]
        yield* jobs.offer(queue("fenced", number), [{ id: "j", lane: "a", payload: { n: 0 } }])
        const first = yield* claimOne("fenced")
        yield* leaseOver("fenced")
        const second = yield* claimOne("fenced")
        assert.isTrue(second.repeated)
        const held = yield* jobStore.settle("fenced", [settled(first, "dead"), settled(second, "again")])
        assert.deepStrictEqual(held, new Set([second.epoch]))
        assert.isEmpty(yield* endedOf("fenced"))
        assert.deepStrictEqual(yield* waitingOf("fenced"), { lanes: 1, jobs: 1 })
        const third = yield* claimOne("fenced")
        assert.deepStrictEqual(
          yield* jobStore.extend("fenced", [second, third], leaseMillis),
          new Set([third.epoch])
        )
        assert.strictEqual((yield* jobStore.settle("fenced", [settled(third, "done")])).size, 1)
        assert.deepStrictEqual(yield* waitingOf("fenced"), { lanes: 0, jobs: 0 })
      })
    )

    it.effect(
      "and an attempt that is sent back for want of another leave no attempt, and the lane late",
      () =>
        Effect.gen(function* () {
          const [jobs, jobStore, sql] = [yield* Jobs, yield* store, yield* SqlClient]
          yield* jobs.offer(queue("sent-back", number), [{ lane: "a", payload: { n: 0 } }])
          const ended = (outcome: "busy" | "withdrawn" | "again") =>
            Effect.gen(function* () {
              const claimed = yield* claimOne("sent-back")
              yield* jobStore.settle("sent-back", [{ ...claimed, outcome, restMillis: 0, error: null }])
              const [lane] = yield* sql<{ since: Date | null }>`SELECT busy_since AS since FROM job_lanes
              WHERE queue = 'sent-back'`
              return {
                attempts: claimed.attempts,
                repeated: claimed.repeated,
                since: lane?.since ?? undefined
              }
            })
          const first = yield* ended("busy")
          assert.isDefined(first.since)
          assert.deepStrictEqual(yield* ended("busy"), first)
          yield* sql`UPDATE job_lanes SET busy_since = now() - interval '1 minute' WHERE queue = 'sent-back'`
          const [late] = yield* jobStore.lateness(["sent-back"])
          assert.isAtLeast(late?.busyMillis ?? 0, 60_000)
          assert.isUndefined((yield* ended("withdrawn")).since)
          yield* ended("busy")
          const made = yield* ended("again")
          assert.deepStrictEqual(made, { attempts: 1, repeated: false, since: undefined })
          assert.deepStrictEqual((yield* jobStore.lateness(["sent-back", "none"]))[1], {
            queue: "none",
            lateMillis: 0,
            busyMillis: 0
          })
        })
    )

    it.effect(
      "is settled once, where the answer was lost and it is settled again, and lengthens no other",
      () =>
        Effect.gen(function* () {
          const [jobs, jobStore, sql] = [yield* Jobs, yield* store, yield* SqlClient]
          const lane = sql`SELECT due_at::text, waiting, holder FROM job_lanes WHERE queue = 'answerless'`
          yield* jobs.offer(
            queue("answerless", number),
            [0, 1, 2].map((n) => ({ lane: "a", payload: { n } }))
          )
          const first = yield* claimOne("answerless")
          yield* jobStore.settle("answerless", [settled(first, "done")])
          const free = yield* lane
          assert.isEmpty(yield* jobStore.settle("answerless", [settled(first, "done")]))
          assert.deepStrictEqual(yield* lane, free)
          yield* claimOne("answerless")
          const held = yield* lane
          assert.isEmpty(yield* jobStore.extend("answerless", [first], 10 * leaseMillis))
          assert.deepStrictEqual(yield* lane, held)
        })
    )

    it.effect("again and again, since its processes die, makes the job dead", () =>
      Effect.gen(function* () {
        const jobs = yield* Jobs
        const fatal = queue("fatal", number, { attemptsMax: 2 })
        yield* jobs.offer(fatal, [{ lane: "a", payload: { n: 0 } }])
        for (const attempt of [1, 2]) {
          assert.strictEqual((yield* claimOne("fatal")).attempts, attempt)
          yield* leaseOver("fatal")
        }
        let begun = 0
        const handle = () => Effect.sync(() => (begun++, done()))
        yield* jobs.work(fatal, { concurrency: 1, attemptMillis: 1_000, handle })
        yield* ends("fatal", 1)
        const [row] = yield* endedOf("fatal")
        assert.include(row, {
          outcome: "dead",
          last_error: "the processes that attempted it ended before it did"
        })
        assert.strictEqual(begun, 0)
      }).pipe(Effect.scoped)
    )
  })

  describe("a lane that a transaction has locked", () => {
    it.effect("holds up neither the leases nor the settlements of others", () =>
      Effect.gen(function* () {
        const jobs = yield* Jobs
        const busy = queue("busy", number)
        const go = yield* Deferred.make<void>()
        const begun: Array<string> = []
        yield* jobs.work(busy, {
          concurrency: 8,
          attemptMillis: 60_000,
          handle: ({ lane }) =>
            Effect.gen(function* () {
              begun.push(lane)
              if (lane === "long") yield* Effect.sleep(2_000)
              else yield* Deferred.await(go)
              return done()
            })
        })
        yield* jobs.offer(
          busy,
          ["locked", "long", "other"].map((lane) => ({ lane, payload: { n: 0 } }))
        )
        yield* eventually(
          "all have begun",
          Effect.sync(() => begun.length === 3)
        )
        // For longer than a lease.
        yield* whileLocked(
          lockLane("busy", "locked"),
          Effect.gen(function* () {
            yield* Deferred.succeed(go, undefined)
            yield* ends("busy", 2)
          })
        )
        yield* ends("busy", 3)
        // The lease of the locked one could not be lengthened: it may have come again.
        assert.sameMembers(
          begun.filter((lane) => lane !== "locked"),
          ["long", "other"]
        )
      }).pipe(Effect.scoped, Effect.timeout("60 seconds"))
    )

    it.effect(
      "takes no connection of requests, and holds up no other lane, where its jobs end with a change",
      () =>
        Effect.gen(function* () {
          const [jobs, sql] = [yield* Jobs, yield* SqlClient]
          yield* sql`CREATE TABLE changed_lanes (lane text)`
          const changing = queue("changing", number)
          const go = yield* Deferred.make<void>()
          let begun = 0
          yield* jobs.work(changing, {
            concurrency: 32,
            attemptMillis: 60_000,
            handle: ({ lane }) =>
              Effect.gen(function* () {
                begun++
                yield* Deferred.await(go)
                return done(sql`INSERT INTO changed_lanes VALUES (${lane})`)
              })
          })
          // More than there are connections; a send that is large may hold as many for as long.
          const locked = Array.from({ length: 16 }, (_, n) => `a${n}`)
          yield* jobs.offer(
            changing,
            [...locked, "free"].map((lane) => ({ lane, payload: { n: 0 } }))
          )
          yield* eventually(
            "all have begun",
            Effect.sync(() => begun === 17)
          )
          yield* whileLocked(
            "SELECT 1 FROM job_lanes WHERE queue = 'changing' AND lane <> 'free' FOR UPDATE",
            Effect.andThen(Deferred.succeed(go, undefined), ends("changing", 1)).pipe(
              Effect.timeout("20 seconds")
            )
          )
          yield* ends("changing", 17)
          assert.lengthOf(yield* sql`SELECT FROM changed_lanes`, 17)
          assert.lengthOf(yield* sql`SELECT DISTINCT lane FROM changed_lanes`, 17)
        }).pipe(Effect.scoped, Effect.timeout("60 seconds"))
    )

    it.effect("is left out when old lanes are deleted, which takes statements of a limited size", () =>
      Effect.gen(function* () {
        const [jobs, jobStore, sql] = [yield* Jobs, yield* store, yield* SqlClient]
        const old = queue("old", number)
        const lanes = ["a", "b", "c", "d", "e"]
        yield* jobs.offer(
          old,
          lanes.map((lane) => ({ lane, payload: { n: 0 } }))
        )
        yield* Effect.forEach(lanes, () =>
          Effect.flatMap(claimOne("old"), (claimed) =>
            jobStore.settle("old", [settled(claimed, claimed.lane === "a" ? "dead" : "done")])
          )
        )
        yield* sql`UPDATE jobs_ended SET ended_at = now() - interval '2 hours' WHERE queue = 'old'`
        yield* sql`UPDATE job_lanes SET rests_until = now() - interval '2 hours' WHERE queue = 'old'`
        yield* whileLocked(lockLane("old", "b"), jobStore.deleteOld(3_600_000, 9 * 3_600_000, 2))
        assert.deepStrictEqual(yield* sql`SELECT lane FROM job_lanes WHERE queue = 'old'`, [{ lane: "b" }])
        assert.deepStrictEqual(
          (yield* endedOf("old")).map(({ outcome }) => outcome),
          ["dead"]
        )
      }).pipe(Effect.timeout("30 seconds"))
    )
  })

  describe("offers at the same time", () => {
    it.effect("of the same ids in other lanes and another order wait for each other in no circle", () =>
      Effect.gen(function* () {
        const jobs = yield* Jobs
        const clashing = queue("clashing", number)
        const ids = Array.from({ length: 400 }, (_, n) => `i${n}`)
        for (let round = 0; round < 4; round++) {
          const added = yield* Effect.forEach(
            [ids, ids.toReversed()],
            (order, n) =>
              jobs.offer(
                clashing,
                order.map((id) => ({ id: `${round}${id}`, lane: `l${n}`, payload: { n } }))
              ),
            { concurrency: 2 }
          )
          assert.strictEqual(added[0]! + added[1]!, ids.length)
        }
        assert.deepStrictEqual(yield* waitingOf("clashing"), { lanes: 4 * ids.length, jobs: 4 * ids.length })
      })
    )

    it.effect("of ids that wait leave lanes, leases and their order as they were", () =>
      Effect.gen(function* () {
        const [jobs, jobStore, sql] = [yield* Jobs, yield* store, yield* SqlClient]
        const twice = queue("twice", number)
        const job = { id: "x", lane: "a", payload: { n: 0 } }
        yield* jobs.offer(twice, [job])
        const held = yield* claimOne("twice")
        assert.strictEqual(
          yield* jobs.offer(twice, [job, { ...job, id: "y" }, job, { ...job, lane: "b" }]),
          1
        )
        assert.isEmpty(yield* jobStore.claim("twice", "other", 8, leaseMillis))
        assert.deepStrictEqual(
          yield* sql`SELECT lane, waiting, due_at < 'infinity' AS is_due FROM job_lanes WHERE queue = 'twice' ORDER BY 1`,
          [
            { lane: "a", waiting: 2, is_due: true },
            { lane: "b", waiting: 0, is_due: false }
          ]
        )
        yield* jobStore.settle("twice", [settled(held, "done")])
        assert.strictEqual((yield* claimOne("twice")).id, "y")
      })
    )

    it.effect("in the order of the list, whatever their ids", () =>
      Effect.gen(function* () {
        const [jobs, jobStore] = [yield* Jobs, yield* store]
        const ids = ["c", "a", "b"]
        yield* jobs.offer(
          queue("listed", number),
          ids.map((id) => ({ id, lane: "a", payload: { n: 0 } }))
        )
        for (const id of ids) {
          const claimed = yield* claimOne("listed")
          assert.strictEqual(claimed.id, id)
          yield* jobStore.settle("listed", [settled(claimed, "done")])
        }
      })
    )
  })

  it.effect("a dead job whose id waits stays dead, and two of one id come one after the other", () =>
    Effect.gen(function* () {
      const jobs = yield* Jobs
      const doubled = queue("doubled", number)
      const scope = yield* Scope.make()
      const handle = () => Effect.succeed(dead("no"))
      yield* Scope.provide(jobs.work(doubled, { concurrency: 1, attemptMillis: 1_000, handle }), scope)
      for (const n of [1, 2]) {
        yield* jobs.offer(doubled, [{ id: "x", lane: "a", payload: { n } }])
        yield* ends("doubled", n)
      }
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual(yield* jobs.redrive("doubled", undefined, 10), 1)
      assert.strictEqual(yield* jobs.redrive("doubled", ["x"], 10), 0)
      const [kept] = yield* jobs.dead("doubled", 10)
      assert.deepStrictEqual(kept?.payload, { n: 2 })
    })
  )

  it.effect("a stop waits for the answer of a claim, and leaves no attempt open", () =>
    Effect.gen(function* () {
      const [jobs, sql, { limits }] = [yield* Jobs, yield* SqlClient, yield* AppConfig]
      const caught = queue("caught", number)
      yield* jobs.offer(caught, [{ lane: "a", payload: { n: 0 } }])
      const options = { concurrency: 1, attemptMillis: 1_000, handle: () => Effect.succeed(done()) }
      const worker = new JobWorker(caught, options, { store: new FarStore(sql), sql, holder: "w", limits })
      const running = yield* Effect.forkChild(worker.run)
      const opened = sql`SELECT open FROM jobs WHERE queue = 'caught' AND open`
      yield* eventually(
        "it is taken",
        Effect.map(opened, ({ length }) => length === 1)
      )
      yield* worker.stop
      yield* Fiber.interrupt(running)
      assert.deepStrictEqual(yield* opened, [])
    }).pipe(Effect.timeout("30 seconds"))
  )

  it.effect("a long lane makes no statement long", () =>
    Effect.gen(function* () {
      const [jobs, jobStore, sql] = [yield* Jobs, yield* store, yield* SqlClient]
      const long = queue("long", number)
      const some = Array.from({ length: 4_000 }, (_, n) => ({
        id: `${n}`,
        lane: `l${n % 8}`,
        payload: { n }
      }))
      yield* jobs.offer(long, some)
      // Counted since the connection last reported, which may be before this transaction: only the difference is its own.
      const readSoFar = Effect.map(
        sql<{ rows: number }>`SELECT (idx_tup_fetch + seq_tup_read)::int AS rows
          FROM pg_stat_xact_user_tables WHERE relname = 'jobs'`,
        ([row]) => row?.rows ?? Number.NaN
      )
      const read = sql.withTransaction(
        Effect.gen(function* () {
          const before = yield* readSoFar
          const claimed = yield* jobStore.claim("long", "w", 8, leaseMillis)
          assert.lengthOf(claimed, 8)
          yield* jobStore.settle(
            "long",
            claimed.map((one) => settled(one, "done"))
          )
          yield* jobs.offer(long, some.slice(-8))
          return (yield* readSoFar) - before
        })
      )
      assert.isBelow(yield* read, 200)
      yield* sql`ANALYZE jobs`
      yield* sql`ANALYZE job_lanes`
      assert.isBelow(yield* read, 200)
    })
  )

  it.effect("a lane that counts jobs which are not there is empty again, and takes new ones", () =>
    Effect.gen(function* () {
      const [jobs, jobStore, sql] = [yield* Jobs, yield* store, yield* SqlClient]
      const drifted = queue("drifted", number)
      yield* jobs.offer(drifted, [{ lane: "a", payload: { n: 0 } }])
      yield* sql`DELETE FROM jobs WHERE queue = 'drifted'`
      assert.isEmpty(yield* jobStore.claim("drifted", "w", 1, leaseMillis))
      yield* jobs.offer(drifted, [{ id: "new", lane: "a", payload: { n: 0 } }])
      assert.strictEqual((yield* claimOne("drifted")).id, "new")
      assert.deepStrictEqual(yield* waitingOf("drifted"), { lanes: 1, jobs: 1 })
    })
  )

  it.effect("a payload that Postgres cannot hold is refused by its field", () =>
    Effect.gen(function* () {
      const jobs = yield* Jobs
      const texts = queue("unfit", Schema.Struct({ text: Schema.String }))
      for (const text of ["a\u0000b", "a\ud800b"]) {
        const exit = yield* Effect.exit(jobs.offer(texts, [{ lane: "a", payload: { text } }]))
        assert.match(String(exit), /a job of unfit cannot be stored: text: expected/)
      }
      assert.strictEqual(yield* jobs.offer(texts, [{ lane: "a", payload: { text: "\\u0000" } }]), 1)
    })
  )
})
