import { PgClient, make as makeClient } from "@effect/sql-pg/PgClient"
import { Context, Effect, Layer, Schedule, Schema, type Scope } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { Reactivity } from "effect/reactivity"
import { jsonFaultOf, mayBeUnfit } from "#schemas/core/JsonFitness.ts"
import * as SampledMetrics from "#actors/kernel/SampledMetrics.ts"
import { AppConfig } from "#src/Config.ts"
import type { Limits } from "#src/Limits.ts"
import { newId } from "#src/infra/crypto/Tokens.ts"
import { Notices } from "#src/infra/notices/Notices.ts"
import { degraded, Readiness, up } from "#src/infra/telemetry/Readiness.ts"
import type { NewJob, Queue } from "./Job.ts"
import { type DeadJob, JobStore, type Lateness, type QueueCounts } from "./JobStore.ts"
import { JobWorker, type WorkerOptions } from "./JobWorker.ts"

/**
 * Work that is done once, in order, whatever dies: jobs in Postgres, in lanes. A lane is worked on by one process at a
 * time, one job at a time, in the order in which its jobs were offered and committed. An accepted job is attempted until
 * it is done or dead; its outcome is written once. An attempt whose process died is made again, and is told that it is
 * repeated: an effect outside Postgres may have happened before. Source: src/docs/decisions/0022-jobs.md.
 */
export class Jobs extends Context.Service<
  Jobs,
  {
    /**
     * Adds jobs at the ends of their lanes, in the caller's transaction where there is one; answers how many were new.
     * One offer a transaction: two could wait for each other's lanes.
     */
    readonly offer: <P>(queue: Queue<P>, jobs: ReadonlyArray<NewJob<P>>) => Effect.Effect<number, SqlError>
    /**
     * Ends the rest of lanes after a failed attempt, in the caller's transaction and behind its offer to them: their first
     * jobs are due with the commit.
     */
    readonly hasten: (
      queue: { readonly name: string },
      lanes: ReadonlyArray<string>
    ) => Effect.Effect<void, SqlError>
    /** After an offer by a function of Postgres, in the caller's transaction: workers learn of it with the commit. */
    readonly offered: (queue: { readonly name: string }) => Effect.Effect<void>
    /** Works on a queue until the scope closes; then attempts under way have `jobStopMillis` to end. */
    readonly work: <P, R>(
      queue: Queue<P>,
      options: WorkerOptions<P, R>
    ) => Effect.Effect<void, never, R | Scope.Scope>
    /** Dead jobs, newest first; of all queues where it is undefined. */
    readonly dead: (
      queue: string | undefined,
      jobsMax: number
    ) => Effect.Effect<ReadonlyArray<DeadJob>, SqlError>
    /** Dead jobs wait again, at the ends of their lanes: those of the ids, or so many of the oldest. Answers how many. */
    readonly redrive: (
      queue: string,
      ids: ReadonlyArray<string> | undefined,
      jobsMax: number
    ) => Effect.Effect<number, SqlError>
    readonly counts: Effect.Effect<ReadonlyArray<QueueCounts>, SqlError>
    /** Of a queue that is worked on here, as it was lately. */
    readonly sampled: (queue: { readonly name: string }) => Sampled
    /** Deletes ended jobs that are older than their limits. */
    readonly deleteOld: Effect.Effect<void, SqlError>
  }
>()("signalbox/infra/Jobs") {
  static readonly layer: Layer.Layer<Jobs, SqlError, AppConfig | SqlClient | PgClient | Notices | Readiness> =
    Layer.effect(
      Jobs,
      Effect.suspend(() => make)
    ).pipe(Layer.provide(Reactivity.layer))
}

/** Of one queue. */
export interface Sampled extends Omit<Lateness, "queue"> {
  readonly waiting: number
  readonly dead: number
  /** how long ago its lateness was read */
  readonly ageMillis: number
}

/** All that waits, and all that is dead, is counted again after so many times as long as it took. */
const countRest = 20

const topicOf = (queue: string): string => `jobs:${queue}`

const lengthMax = 200

const isName = (text: string): boolean => text.length > 0 && text.length <= lengthMax && !text.includes("\0")

/** A job as its row holds it. A name or a payload that no row can hold is a defect of the room. */
const preparing =
  (limits: Limits) =>
  <P>({ name, payload }: Queue<P>, { id, lane, notBefore, payload: value }: NewJob<P>) =>
    Effect.map(Effect.orDie(Schema.encodeEffect(Schema.fromJsonString(payload))(value)), (text) => {
      if (!isName(lane) || (id !== undefined && !isName(id)))
        throw new Error(`lanes and ids of ${name} have 1 to ${lengthMax} characters`)
      const fault = mayBeUnfit(text) ? jsonFaultOf(JSON.parse(text), { isNulRefused: true }) : undefined
      if (fault !== undefined)
        throw new Error(`a job of ${name} cannot be stored: ${fault.field}: ${fault.text}`)
      if (Buffer.byteLength(text) > limits.jobPayloadBytes)
        throw new Error(`a job of ${name} has more than ${limits.jobPayloadBytes} bytes`)
      return { lane, id: id ?? newId("job"), payload: text, notBefore: notBefore?.toISOString() ?? "" }
    })

const make = Effect.gen(function* () {
  const { limits } = yield* AppConfig
  const sql = yield* SqlClient
  const notices = yield* Notices
  const { config } = yield* PgClient
  const own = yield* makeClient({ ...config, minConnections: 0, maxConnections: limits.jobConnections })
  const store = new JobStore(own)
  const offering = new JobStore(sql)
  const holder = newId("wrk")
  const { sampled, watch } = yield* watching(store)

  const prepared = preparing(limits)
  const offered = ({ name }: { readonly name: string }) => sql.afterCommit(notices.publish(topicOf(name)))

  const offer = Effect.fn("Jobs.offer")(function* <P>(queue: Queue<P>, jobs: ReadonlyArray<NewJob<P>>) {
    if (jobs.length === 0) return 0
    if (jobs.length > limits.jobsPerOffer)
      return yield* Effect.die(new Error(`${jobs.length} jobs of ${queue.name} in one offer`))
    const added = yield* offering.offer(
      queue.name,
      yield* Effect.forEach(jobs, (job) => prepared(queue, job))
    )
    yield* offered(queue)
    return added
  })

  const work = Effect.fnUntraced(function* <P, R>(queue: Queue<P>, options: WorkerOptions<P, R>) {
    const context = yield* Effect.context<R>()
    const handle: WorkerOptions<P, never>["handle"] = (job) =>
      Effect.provideContext(options.handle(job), context)
    if (queue.isKept)
      yield* Effect.forkScoped(
        Effect.retry(store.keep(queue.name), Schedule.spaced(limits.retryMaxMillis)).pipe(Effect.orDie)
      )
    const worker = new JobWorker(queue, { ...options, handle }, { store, sql, holder, limits })
    yield* notices.subscribe(topicOf(queue.name), worker.wake)
    yield* Effect.forkScoped(worker.run)
    yield* Effect.forkScoped(Effect.repeat(worker.renew, Schedule.spaced(limits.jobLeaseMillis / 3)))
    const lookMillis = Math.min(Math.max(options.attemptMillis / 10, 10), 1_000)
    yield* Effect.forkScoped(Effect.repeat(worker.expire, Schedule.spaced(lookMillis)))
    yield* Effect.addFinalizer(() => worker.stop)
    yield* watch(queue.name, worker)
  })

  return Jobs.of({
    offer,
    hasten: (queue, lanes) => Effect.andThen(offering.hasten(queue.name, lanes), offered(queue)),
    offered,
    work,
    dead: (queue, jobsMax) => offering.dead(queue, jobsMax),
    redrive: (queue, ids, jobsMax) =>
      Effect.tap(offering.redrive(queue, ids, jobsMax), () =>
        sql.afterCommit(notices.publish(topicOf(queue)))
      ),
    counts: offering.counts,
    sampled,
    deleteOld: store.deleteOld(limits.jobsDoneMillis, limits.jobsDeadMillis, limits.jobsDeletedAtOnce)
  })
})

/** Shows queues on `/metrics`, and on `/readyz` where one is late: those that are worked on here. */
const watching = Effect.fnUntraced(function* (store: JobStore) {
  const { limits } = yield* AppConfig
  const { register } = yield* Readiness
  const counted = new Map<string, QueueCounts>()
  const lateness = new Map<string, Lateness>()
  let readAt = performance.now()
  const worked = new Set<string>()
  const read = Effect.gen(function* () {
    const found = worked.size === 0 ? [] : yield* store.lateness([...worked])
    for (const one of found) lateness.set(one.queue, one)
    readAt = performance.now()
  }).pipe(Effect.catch((error) => Effect.logDebug("the lateness of jobs was not read", error)))
  yield* Effect.forkScoped(Effect.repeat(read, Schedule.spaced(limits.jobCountsMillis)))
  const count = Effect.gen(function* () {
    const began = performance.now()
    const counts = worked.size === 0 ? [] : yield* store.counts
    counted.clear()
    for (const one of counts) counted.set(one.queue, one)
    yield* Effect.sleep(countRest * (performance.now() - began))
  }).pipe(Effect.catch((error) => Effect.logDebug("jobs were not counted", error)))
  yield* Effect.forkScoped(Effect.repeat(count, Schedule.spaced(limits.jobCountsMillis)))

  const sampled = ({ name }: { readonly name: string }): Sampled => ({
    waiting: counted.get(name)?.waiting ?? 0,
    dead: counted.get(name)?.dead ?? 0,
    lateMillis: lateness.get(name)?.lateMillis ?? 0,
    busyMillis: lateness.get(name)?.busyMillis ?? 0,
    ageMillis: performance.now() - readAt
  })
  const state = Effect.sync(() => {
    const late = [...worked].flatMap((name) => {
      const { lateMillis } = sampled({ name })
      return lateMillis > limits.jobLateMillis ? [`${name} for ${Math.round(lateMillis / 1000)} s`] : []
    })
    return late.length === 0 ? up : degraded(`jobs are due and not begun: ${late.join(", ")}`)
  })
  yield* register("jobs", state)

  const watch = Effect.fnUntraced(function* (queue: string, { counts }: Pick<JobWorker<never>, "counts">) {
    yield* Effect.acquireRelease(
      Effect.sync(() => worked.add(queue)),
      () => Effect.sync(() => worked.delete(queue))
    )
    const of = (name: keyof Sampled) => () => sampled({ name: queue })[name]
    yield* SampledMetrics.register(
      [
        ["signalbox_jobs_done_total", "Jobs done by this process", () => counts.done],
        ["signalbox_jobs_dead_total", "Jobs given up by this process", () => counts.dead],
        ["signalbox_jobs_failed_total", "Attempts that failed and are made again", () => counts.failed],
        ["signalbox_jobs_repeated_total", "Attempts after one of unknown end", () => counts.repeated],
        ["signalbox_jobs_late_total", "Attempts that had lost their lease", () => counts.late],
        ["signalbox_jobs_waiting", "Jobs that are not ended", of("waiting")],
        ["signalbox_jobs_dead", "Jobs that were given up and are kept", of("dead")],
        ["signalbox_jobs_late_seconds", "Time for which a lane has been due", () => of("lateMillis")() / 1000]
      ],
      { queue }
    )
  })
  return { sampled, watch }
})
