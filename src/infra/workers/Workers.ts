import { Context, Effect, Layer, Schema } from "effect"
import * as SampledMetrics from "#actors/kernel/SampledMetrics.ts"
import { AppConfig } from "#src/Config.ts"
import type { JobKind } from "./Job.ts"
import { startRunner } from "./Runners.ts"
import { type JobResult, WorkerPool, type WorkerPoolStats } from "./WorkerPool.ts"

/** A job was not done. `reason`: see `JobFailure`. */
export class JobNotDone extends Schema.TaggedError<JobNotDone>()("JobNotDone", {
  reason: Schema.Literals(["busy", "deadline", "memory", "failed"]),
  problem: Schema.String
}) {
  override get message(): string {
    return `a job was not done: ${this.problem}`
  }
}

/** A job's question and its owner. */
interface JobOptions {
  readonly kind: JobKind
  /** jobs of different owners take turns */
  readonly owner: string
  /** Is cloned. A process is sent the bytes of a `Uint8Array` as they are: they must not change until it answers. */
  readonly ask: unknown
  /** buffers of `ask` that are moved to a thread instead */
  readonly transfer?: ReadonlyArray<ArrayBuffer>
}

/**
 * Jobs that would hold up the event loop, or that may fail badly on input of strangers: done in threads and processes, a
 * bounded number for all rooms, each with the deadline and the memory of its kind.
 */
export class Workers extends Context.Service<
  Workers,
  {
    /** The answer as the job gave it: its caller knows what that is. A job whose caller is interrupted is ended. */
    readonly run: (options: JobOptions) => Effect.Effect<unknown, JobNotDone>
    readonly stats: Readonly<Record<JobKind["isolation"], () => WorkerPoolStats>>
  }
>()("signalbox/infra/Workers") {
  static readonly layer = Layer.effect(
    Workers,
    Effect.gen(function* () {
      const { limits } = yield* AppConfig
      const poolOf = (workers: number) =>
        new WorkerPool({
          start: startRunner,
          workers,
          waitingMax: limits.workerWaiting,
          startMillis: limits.workerStartMillis,
          leaveMillis: limits.workerLeaveMillis,
          idleMillis: limits.workerIdleMillis
        })
      const pools = { thread: poolOf(limits.workerThreads), process: poolOf(limits.workerProcesses) }
      for (const [isolation, pool] of Object.entries(pools)) {
        yield* Effect.addFinalizer(() => Effect.promise(() => pool.stop()))
        yield* SampledMetrics.register(
          [
            ["signalbox_workers", "Threads and processes for jobs", () => pool.stats().workers],
            ["signalbox_worker_jobs_waiting", "Jobs that wait for one", () => pool.stats().waiting],
            ["signalbox_worker_jobs_failed_total", "Jobs that were not done", () => pool.stats().failed]
          ],
          { isolation }
        )
      }
      return Workers.of({
        stats: { thread: () => pools.thread.stats(), process: () => pools.process.stats() },
        run: ({ ask, kind, owner, transfer = [] }) =>
          Effect.callback<unknown, JobNotDone>((resume) => {
            const done = (result: JobResult): void => resume(answerOf(result))
            const giveUp = pools[kind.isolation].run({ kind, owner, ask, transfer, done })
            return Effect.sync(giveUp)
          })
      })
    })
  )
}

const answerOf = (result: JobResult): Effect.Effect<unknown, JobNotDone> =>
  "reason" in result
    ? Effect.fail(new JobNotDone({ reason: result.reason, problem: result.problem }))
    : Effect.succeed(result.result)
