import { assert, describe, layer } from "@effect/vitest"
import { Deferred, Effect, Schema } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { eventually } from "#test/harness/Eventually.ts"
import { again, dead, done, type Job, later, queue, withdrawn } from "#src/infra/jobs/Job.ts"
import { Jobs } from "#src/infra/jobs/Jobs.ts"
import { endedOf, ends, jobsWith, number, type Numbered, waitingOf } from "./JobStage.ts"

const served = jobsWith({})

const patient = { concurrency: 8, attemptMillis: 30_000 }

layer(served, { excludeTestServices: true })("jobs", (it) => {
  describe("a lane", () => {
    it.effect("is worked on in the order of the offers, one job at a time, beside others", () =>
      Effect.gen(function* () {
        const jobs = yield* Jobs
        const ordered = queue("ordered", number)
        const seen: Array<string> = []
        let atOnce = 0
        const busy = new Set<string>()
        yield* jobs.work(ordered, {
          ...patient,
          handle: (job: Job<Numbered>) =>
            Effect.gen(function* () {
              assert.isFalse(busy.has(job.lane))
              busy.add(job.lane)
              atOnce = Math.max(atOnce, busy.size)
              yield* Effect.sleep(5)
              seen.push(`${job.lane}${job.payload.n}`)
              busy.delete(job.lane)
              return done()
            })
        })
        const lanes = ["a", "b", "c"]
        yield* jobs.offer(
          ordered,
          lanes.flatMap((lane) => Array.from({ length: 5 }, (_, n) => ({ lane, payload: { n } })))
        )
        yield* jobs.offer(ordered, [{ lane: "a", payload: { n: 5 } }])
        yield* eventually(
          "all were seen",
          Effect.sync(() => seen.length === 16)
        )
        assert.deepStrictEqual(
          seen.filter((one) => one.startsWith("a")),
          ["a0", "a1", "a2", "a3", "a4", "a5"]
        )
        assert.isAbove(atOnce, 1)
        yield* ends("ordered", 16)
        assert.deepStrictEqual(yield* waitingOf("ordered"), { lanes: 0, jobs: 0 })
      }).pipe(Effect.scoped, Effect.timeout("60 seconds"))
    )

    it.effect("rests after an outcome for as long as that says, and others do not", () =>
      Effect.gen(function* () {
        const jobs = yield* Jobs
        const resting = queue("resting", number)
        const seen: Array<string> = []
        yield* jobs.work(resting, {
          ...patient,
          handle: ({ lane }) =>
            Effect.sync(() => {
              seen.push(lane)
              return done(undefined, lane === "fast" ? 0 : 3_600_000)
            })
        })
        yield* jobs.offer(resting, [
          { lane: "slow", payload: { n: 0 } },
          { lane: "slow", payload: { n: 1 } },
          { lane: "empty", payload: { n: 0 } },
          { lane: "fast", payload: { n: 0 } },
          { lane: "fast", payload: { n: 1 } }
        ])
        yield* eventually(
          "all were seen",
          Effect.sync(() => seen.filter((lane) => lane === "fast").length === 2)
        )
        // An empty lane that rests goes on resting when a job comes.
        yield* ends("resting", 4)
        yield* jobs.offer(
          resting,
          ["slow", "empty"].map((lane) => ({ lane, payload: { n: 2 } }))
        )
        yield* jobs.offer(resting, [{ lane: "fast", payload: { n: 2 } }])
        yield* eventually(
          "all were seen",
          Effect.sync(() => seen.filter((lane) => lane === "fast").length === 3)
        )
        assert.sameMembers(
          seen.filter((lane) => lane !== "fast"),
          ["slow", "empty"]
        )
      }).pipe(Effect.scoped, Effect.timeout("60 seconds"))
    )

    it.effect("waits for the instant of its first job", () =>
      Effect.gen(function* () {
        const jobs = yield* Jobs
        const timed = queue("timed", number)
        const seen: Array<number> = []
        yield* jobs.offer(timed, [
          { lane: "far", payload: { n: 0 }, notBefore: new Date(Date.now() + 3_600_000) },
          { lane: "far", payload: { n: 1 } },
          { lane: "near", payload: { n: 2 } },
          { lane: "near", payload: { n: 3 }, notBefore: new Date(Date.now() + 3_600_000) },
          { lane: "soon", payload: { n: 4 }, notBefore: new Date(Date.now() + 100) }
        ])
        yield* jobs.work(timed, {
          ...patient,
          handle: ({ payload }) => Effect.sync(() => (seen.push(payload.n), done()))
        })
        yield* eventually(
          "all were seen",
          Effect.sync(() => seen.length === 2)
        )
        yield* Effect.sleep(100)
        assert.sameMembers(seen, [2, 4])
        assert.deepStrictEqual(yield* waitingOf("timed"), { lanes: 3, jobs: 3 })
      }).pipe(Effect.scoped, Effect.timeout("60 seconds"))
    )
  })

  describe("an offer", () => {
    it.effect("is there with its transaction, or not at all", () =>
      Effect.gen(function* () {
        const jobs = yield* Jobs
        const sql = yield* SqlClient
        const offered = queue("offered", number)
        yield* jobs
          .offer(offered, [{ lane: "a", payload: { n: 0 } }])
          .pipe(Effect.andThen(Effect.fail("changed my mind")), sql.withTransaction, Effect.flip)
        assert.deepStrictEqual(yield* waitingOf("offered"), { lanes: 0, jobs: 0 })
        yield* sql.withTransaction(jobs.offer(offered, [{ lane: "a", payload: { n: 0 } }]))
        assert.deepStrictEqual(yield* waitingOf("offered"), { lanes: 1, jobs: 1 })
      }).pipe(Effect.scoped, Effect.timeout("60 seconds"))
    )

    it.effect("leaves out jobs whose id waits, in any lane, and counts the others", () =>
      Effect.gen(function* () {
        const jobs = yield* Jobs
        const once = queue("once", number)
        const job = { id: "x", lane: "a", payload: { n: 0 } }
        assert.strictEqual(yield* jobs.offer(once, [job, job]), 1)
        assert.strictEqual(
          yield* jobs.offer(once, [
            { ...job, lane: "b" },
            { lane: "b", payload: { n: 1 } },
            { ...job, lane: "c" }
          ]),
          1
        )
        assert.deepStrictEqual(yield* waitingOf("once"), { lanes: 2, jobs: 2 })
        const seen: Array<number> = []
        yield* jobs.work(once, {
          ...patient,
          handle: ({ payload }) => Effect.sync(() => (seen.push(payload.n), done()))
        })
        yield* ends("once", 2)
        // Ended: the id may come again.
        assert.strictEqual(yield* jobs.offer(once, [job]), 1)
        yield* eventually(
          "all were seen",
          Effect.sync(() => seen.length === 3)
        )
      }).pipe(Effect.scoped, Effect.timeout("60 seconds"))
    )

    it.effect("refuses names and payloads that are too long", () =>
      Effect.gen(function* () {
        const jobs = yield* Jobs
        const text = queue("texts", Schema.String)
        const exits = yield* Effect.forEach(
          [
            { lane: "", payload: "" },
            { lane: "a".repeat(201), payload: "" },
            { lane: "a", id: "b".repeat(201), payload: "" },
            { lane: "a", payload: "c".repeat(256 * 1024) }
          ],
          (job) => Effect.exit(jobs.offer(text, [job]))
        )
        assert.deepStrictEqual(
          exits.map(({ _tag }) => _tag),
          ["Failure", "Failure", "Failure", "Failure"]
        )
        assert.deepStrictEqual(yield* waitingOf("texts"), { lanes: 0, jobs: 0 })
        assert.throws(() => queue("Not a name", Schema.String), /no name/)
      })
    )
  })

  describe("an attempt", () => {
    it.effect("that fails, defects, hangs or says so is made again, with its number", () =>
      Effect.gen(function* () {
        const jobs = yield* Jobs
        const failing = queue("failing", Schema.String)
        const attempts: Array<string> = []
        const handles: Readonly<Record<string, Effect.Effect<ReturnType<typeof done>, Error>>> = {
          fails: Effect.fail(new Error("no")),
          defects: Effect.die(new Error("broken")),
          hangs: Effect.onInterrupt(Effect.never, () => Effect.sync(() => attempts.push("hangs no more"))),
          stuck: Effect.uninterruptible(Effect.never),
          again: Effect.succeed(again("in a moment", 10))
        }
        // Cut off in the middle: they may have had their effect.
        const isCut = (lane: string) => lane === "hangs" || lane === "stuck"
        yield* jobs.work(failing, {
          concurrency: 8,
          attemptMillis: 200,
          handle: ({ attempt, payload, repeated }) =>
            Effect.suspend(() => {
              attempts.push(`${payload} ${attempt}${repeated ? " repeated" : ""}`)
              return attempt === 1 ? (handles[payload] ?? Effect.never) : Effect.succeed(done())
            })
        })
        yield* jobs.offer(
          failing,
          Object.keys(handles).map((lane) => ({ lane, payload: lane }))
        )
        yield* ends("failing", 5)
        const ended = yield* endedOf("failing")
        assert.sameMembers(
          attempts,
          Object.keys(handles)
            .flatMap((lane) => [`${lane} 1`, `${lane} 2${isCut(lane) ? " repeated" : ""}`])
            .concat("hangs no more")
        )
        assert.deepStrictEqual(Object.fromEntries(ended.map((row) => [row.lane, row.last_error])), {
          fails: "no",
          defects: "broken",
          hangs: "the attempt had not ended after 200 ms",
          stuck: "the attempt had not ended after 200 ms",
          again: "in a moment"
        })
        assert.isTrue(
          ended.every(
            ({ attempts, lane, outcome, repeated }) =>
              attempts === 2 && outcome === "done" && repeated === isCut(lane)
          )
        )
      }).pipe(Effect.scoped, Effect.timeout("60 seconds"))
    )

    it.effect("is the last one after as many as the queue allows; the lane goes on", () =>
      Effect.gen(function* () {
        const jobs = yield* Jobs
        const short = queue("short", number, { attemptsMax: 3 })
        const seen: Array<number> = []
        yield* jobs.work(short, {
          ...patient,
          handle: ({ payload }) =>
            Effect.suspend(() => {
              seen.push(payload.n)
              return payload.n === 0 ? Effect.fail("never") : Effect.succeed(done())
            })
        })
        yield* jobs.offer(short, [
          { id: "bad", lane: "a", payload: { n: 0 } },
          { lane: "a", payload: { n: 1 } }
        ])
        yield* ends("short", 2)
        assert.deepStrictEqual(seen, [0, 0, 0, 1])
        const [letter] = yield* jobs.dead("short", 10)
        assert.include(letter, { id: "bad", lane: "a", attempts: 3, error: "never" })
        assert.deepStrictEqual(letter?.payload, { n: 0 })
      }).pipe(Effect.scoped, Effect.timeout("60 seconds"))
    )

    it.effect("that comes back later is no failure, and counts anew", () =>
      Effect.gen(function* () {
        const jobs = yield* Jobs
        const often = queue("often", number, { attemptsMax: 2 })
        const attempts: Array<number> = []
        yield* jobs.work(often, {
          ...patient,
          handle: ({ attempt }) => Effect.sync(() => (attempts.push(attempt) < 5 ? later(1) : done()))
        })
        yield* jobs.offer(often, [{ lane: "a", payload: { n: 0 } }])
        yield* ends("often", 1)
        assert.deepStrictEqual(attempts, [1, 1, 1, 1, 1])
      }).pipe(Effect.scoped, Effect.timeout("60 seconds"))
    )

    it.effect("that was not made leaves number and mark as they were", () =>
      Effect.gen(function* () {
        const jobs = yield* Jobs
        const early = queue("early", number)
        const seen: Array<string> = []
        const outcomes = [
          withdrawn(1),
          done(Effect.fail("its end is not known")),
          withdrawn(1),
          again("no", 1),
          withdrawn(1),
          done()
        ]
        yield* jobs.work(early, {
          ...patient,
          handle: ({ attempt, repeated }) =>
            Effect.sync(() => {
              seen.push(`${attempt}${repeated ? " repeated" : ""}`)
              return outcomes[seen.length - 1] ?? dead("too often")
            })
        })
        yield* jobs.offer(early, [{ lane: "a", payload: { n: 0 } }])
        yield* ends("early", 1)
        assert.deepStrictEqual(seen, ["1", "1", "2 repeated", "2 repeated", "3 repeated", "3 repeated"])
        const [row] = yield* endedOf("early")
        assert.include(row, { attempts: 3, outcome: "done", repeated: true })
      }).pipe(Effect.scoped, Effect.timeout("60 seconds"))
    )

    it.effect("ends with its change in one transaction, or fails with it", () =>
      Effect.gen(function* () {
        const jobs = yield* Jobs
        const sql = yield* SqlClient
        const changing = queue("changing", number)
        yield* sql`CREATE TABLE changed (n integer PRIMARY KEY)`
        yield* jobs.work(changing, {
          ...patient,
          handle: ({ attempt, payload }) =>
            Effect.succeed(
              done(
                attempt === 1
                  ? Effect.andThen(sql`INSERT INTO changed VALUES (${payload.n + 100})`, Effect.fail("no"))
                  : sql`INSERT INTO changed VALUES (${payload.n})`
              )
            )
        })
        yield* jobs.offer(changing, [{ lane: "a", payload: { n: 1 } }])
        yield* ends("changing", 1)
        assert.deepStrictEqual(yield* sql`SELECT n FROM changed`, [{ n: 1 }])
        const [row] = yield* endedOf("changing")
        assert.include(row, { attempts: 2, outcome: "done", last_error: "no", repeated: true })
      }).pipe(Effect.scoped, Effect.timeout("60 seconds"))
    )
  })

  it.effect("dead jobs are revived in their order, marked as repeated", () =>
    Effect.gen(function* () {
      const jobs = yield* Jobs
      const letters = queue("letters", number)
      const seen: Array<string> = []
      let isWell = false
      yield* jobs.work(letters, {
        ...patient,
        handle: ({ payload, repeated }) =>
          Effect.sync(() => {
            seen.push(`${payload.n}${repeated ? " repeated" : ""}`)
            return isWell ? done() : dead("gone")
          })
      })
      yield* jobs.offer(
        letters,
        [0, 1, 2, 3].map((n) => ({ id: `l${n}`, lane: "a", payload: { n } }))
      )
      yield* ends("letters", 4)
      yield* eventually(
        "dead jobs are counted",
        Effect.map(jobs.counts, (counts) => counts.find((one) => one.queue === "letters")?.dead === 4)
      )
      isWell = true
      assert.strictEqual(yield* jobs.redrive("letters", ["l2", "none"], 10), 1)
      yield* eventually(
        "all were seen",
        Effect.sync(() => seen.length === 5)
      )
      assert.strictEqual(yield* jobs.redrive("letters", undefined, 2), 2)
      assert.strictEqual(yield* jobs.redrive("letters", undefined, 2), 1)
      assert.strictEqual(yield* jobs.redrive("letters", undefined, 2), 0)
      yield* eventually(
        "all were seen",
        Effect.sync(() => seen.length === 8)
      )
      assert.deepStrictEqual(seen.slice(4), ["2 repeated", "0 repeated", "1 repeated", "3 repeated"])
    }).pipe(Effect.scoped, Effect.timeout("60 seconds"))
  )

  it.effect("a stop waits for attempts under way, and gives back the lanes of those that do not end", () =>
    Effect.gen(function* () {
      const jobs = yield* Jobs
      const stopping = queue("stopping", number)
      const begun = yield* Deferred.make<void>()
      yield* jobs.offer(stopping, [
        { lane: "quick", payload: { n: 0 } },
        { lane: "quick", payload: { n: 1 } }
      ])
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* jobs.work(stopping, {
            ...patient,
            handle: () =>
              Effect.as(Effect.andThen(Deferred.succeed(begun, undefined), Effect.sleep(300)), done())
          })
          yield* Deferred.await(begun)
        })
      )
      assert.lengthOf(yield* endedOf("stopping"), 1)
      assert.deepStrictEqual(yield* waitingOf("stopping"), { lanes: 1, jobs: 1 })
    }).pipe(Effect.timeout("60 seconds"))
  )
})
