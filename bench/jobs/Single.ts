import { Deferred, Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { type BenchCase, type CaseContext, latencyOf, sized } from "#bench/harness/Suite.ts"
import { newId } from "#src/infra/crypto/Tokens.ts"
import { done } from "#src/infra/jobs/Job.ts"
import { Jobs } from "#src/infra/jobs/Jobs.ts"
import { JobStore } from "#src/infra/jobs/JobStore.ts"
import { costing, type Given, measured, onJobs, payload } from "./Stage.ts"

const timed = <E, R>(step: Effect.Effect<unknown, E, R>, into: Array<number>) =>
  Effect.suspend(() => {
    const startedAt = performance.now()
    return Effect.tap(step, () => Effect.sync(() => into.push(performance.now() - startedAt)))
  })

const countOf = (context: CaseContext): number => sized(context, { tiny: 10, quick: 1_000, full: 5_000 })

type StepName = "offer" | "claim" | "settle"

/** One job after the other: the latency is that of one step. */
export const oneStep =
  (name: StepName): BenchCase<Given>["run"] =>
  (context) =>
    onJobs(
      context,
      Effect.gen(function* () {
        const [jobs, store] = [yield* Jobs, new JobStore(yield* SqlClient)]
        const millis: Record<StepName, Array<number>> = { offer: [], claim: [], settle: [] }
        const once = Effect.gen(function* () {
          yield* timed(jobs.offer(measured, [{ lane: "a", payload }]), millis.offer)
          let claimed: ReadonlyArray<Parameters<JobStore["settle"]>[1][number]> = []
          const claim = Effect.map(store.claim(measured.name, "bench", 1, 60_000), (taken) => {
            claimed = taken.map((one) => ({ ...one, outcome: "done", restMillis: 0, error: null }))
          })
          yield* timed(claim, millis.claim)
          yield* timed(store.settle(measured.name, claimed), millis.settle)
        })
        const all = Effect.as(
          Effect.forEach(Array.from({ length: countOf(context) }), () => once, { discard: true }),
          countOf(context)
        )
        const measurement = yield* costing(context, all)
        return { ...measurement, latency: latencyOf(Float64Array.from(millis[name])) }
      })
    )

/** From the beginning of an offer to that of its attempt, in a worker that waits for a notice. */
export const begun: BenchCase<Given>["run"] = (context) =>
  onJobs(
    context,
    Effect.gen(function* () {
      const jobs = yield* Jobs
      const millis: Array<number> = []
      let next: Deferred.Deferred<void> | undefined
      yield* jobs.work(measured, {
        concurrency: 64,
        attemptMillis: 30_000,
        handle: () => Effect.as(next === undefined ? Effect.void : Deferred.succeed(next, undefined), done())
      })
      const once = Effect.gen(function* () {
        const attempt = yield* Deferred.make<void>()
        next = attempt
        yield* timed(
          Effect.andThen(jobs.offer(measured, [{ lane: newId("lane"), payload }]), Deferred.await(attempt)),
          millis
        )
      })
      const all = Effect.as(
        Effect.forEach(Array.from({ length: countOf(context) }), () => once, { discard: true }),
        countOf(context)
      )
      const measurement = yield* costing(context, all)
      return { ...measurement, latency: latencyOf(Float64Array.from(millis)) }
    })
  )

const batch = 10_000

/** Offers of 10,000 jobs in 1,000 lanes. */
export const offers: BenchCase<Given>["run"] = (context) =>
  onJobs(
    context,
    Effect.gen(function* () {
      const jobs = yield* Jobs
      const size = context.size === "tiny" ? 100 : batch
      const some = Array.from({ length: size }, (_, n) => ({ lane: `lane ${n % 1_000}`, payload }))
      const millis: Array<number> = []
      const times = sized(context, { tiny: 1, quick: 5, full: 15 })
      const all = Effect.forEach(Array.from({ length: times }), () =>
        timed(jobs.offer(measured, some), millis)
      )
      const measurement = yield* costing(context, Effect.as(all, times * size))
      return { ...measurement, latency: latencyOf(Float64Array.from(millis)) }
    })
  )

/** The limit of such an offer: one insert into a table with a key. */
export const inserts: BenchCase<Given>["run"] = (context) =>
  onJobs(
    context,
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const size = context.size === "tiny" ? 100 : batch
      yield* sql`DROP TABLE IF EXISTS bare_queue`
      yield* sql`CREATE TABLE bare_queue (seq bigserial PRIMARY KEY, payload jsonb NOT NULL)`
      const texts = Array.from({ length: size }, () => JSON.stringify(payload))
      const times = sized(context, { tiny: 1, quick: 5, full: 15 })
      const once = sql`INSERT INTO bare_queue (payload) SELECT p::jsonb FROM unnest(${texts}::text[]) AS p`
      const all = Effect.forEach(Array.from({ length: times }), () => once)
      return yield* costing(context, Effect.as(all, times * size))
    })
  )
