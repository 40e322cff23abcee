import { Deferred, Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { type BenchCase, type CaseContext, sized } from "#bench/harness/Suite.ts"
import { done } from "#src/infra/jobs/Job.ts"
import { Jobs } from "#src/infra/jobs/Jobs.ts"
import { JobStore } from "#src/infra/jobs/JobStore.ts"
import { costing, fill, fillEnded, type Given, measured, onJobs, payload } from "./Stage.ts"

/** Jobs that a claim takes, and that a worker has at once. */
const atOnce = 64
const lanes = 1_000

interface Beside {
  readonly ended?: number
  /** jobs that are not waited for, due as the others are */
  readonly waiting?: number
}

const countOf = (context: CaseContext): number => sized(context, { tiny: 300, quick: 30_000, full: 80_000 })

const filled = Effect.fnUntraced(function* (context: CaseContext, { ended = 0, waiting = 0 }: Beside) {
  const sql = yield* SqlClient
  const share = sized(context, { tiny: 0.001, quick: 0.2, full: 1 })
  if (ended > 0) yield* fillEnded(context.size === "tiny" ? 100 : ended)
  if (waiting > 0) yield* fill(measured.name, waiting * share, (waiting * share) / 10)
  else yield* fill(measured.name, countOf(context) + 10_000, Math.min(lanes, countOf(context)))
  if (context.size !== "tiny") yield* sql`CHECKPOINT`
})

/** The real worker, whose handler does nothing. */
export const byWorker =
  (beside: Beside): BenchCase<Given>["run"] =>
  (context) =>
    onJobs(
      context,
      Effect.gen(function* () {
        yield* filled(context, beside)
        const count = countOf(context)
        // Compiled by then.
        const warmUp = Math.floor(count / 6)
        const [warm, over] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
        let ended = 0
        const ending = Effect.succeed(done())
        const handle = () => {
          ended++
          if (ended === warmUp) Deferred.doneUnsafe(warm, Effect.void)
          if (ended === count) Deferred.doneUnsafe(over, Effect.void)
          return ending
        }
        yield* (yield* Jobs).work(measured, { concurrency: atOnce, attemptMillis: 30_000, handle })
        yield* Deferred.await(warm)
        return yield* costing(context, Effect.as(Deferred.await(over), count - warmUp))
      })
    )

/** The same functions in a loop of one connection. */
export const byStatements =
  (beside: Beside): BenchCase<Given>["run"] =>
  (context) =>
    onJobs(
      context,
      Effect.gen(function* () {
        yield* filled(context, beside)
        const store = new JobStore(yield* SqlClient)
        const turn = Effect.gen(function* () {
          const claimed = yield* store.claim(measured.name, "bench", atOnce, 60_000)
          const ended = claimed.map((one) => ({
            ...one,
            outcome: "done" as const,
            restMillis: 0,
            error: null
          }))
          return (yield* store.settle(measured.name, ended)).size
        })
        const times = (count: number) =>
          Effect.gen(function* () {
            let ended = 0
            while (ended < count) ended += yield* turn
            return ended
          })
        const warmUp = Math.floor(countOf(context) / 6)
        yield* times(warmUp)
        return yield* costing(context, times(countOf(context) - warmUp))
      })
    )

/** The limit: a queue without lanes, order, leases or a record, whose rows are deleted by the transaction that took them. */
export const bySkipLocked: BenchCase<Given>["run"] = (context) =>
  onJobs(
    context,
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const count = countOf(context)
      yield* sql`DROP TABLE IF EXISTS bare_queue`
      yield* sql`CREATE TABLE bare_queue (seq bigint PRIMARY KEY, payload jsonb NOT NULL)`
      yield* sql`INSERT INTO bare_queue SELECT n, ${JSON.stringify(payload)}::jsonb FROM generate_series(1, ${count}::integer) AS n`
      yield* sql`ANALYZE bare_queue`
      const turn = sql.withTransaction(
        Effect.gen(function* () {
          const taken = yield* sql<{
            seq: string
          }>`SELECT seq::text, payload::text FROM bare_queue ORDER BY seq LIMIT ${atOnce} FOR UPDATE SKIP LOCKED`
          const seqs = taken.map(({ seq }) => seq)
          yield* sql`DELETE FROM bare_queue WHERE seq = ANY (${seqs}::text[]::bigint[])`
          return taken.length
        })
      )
      const all = Effect.gen(function* () {
        let ended = 0
        while (ended < count) ended += yield* turn
        return ended
      })
      return yield* costing(context, all)
    })
  )
