import { Context, Effect, Layer, Schema } from "effect"
import { AppConfig } from "#src/Config.ts"
import { type JobFailure, WorkerPool, type WorkerPoolStats } from "./WorkerPool.ts"

/** A job was not done: "busy" where too many wait, "failed" where it threw, took too long or needed too much memory. */
export class JobNotDone extends Schema.TaggedError<JobNotDone>()("JobNotDone", {
  reason: Schema.Literals(["busy", "failed"]),
  problem: Schema.String
}) {
  override get message(): string {
    return `a job was not done: ${this.problem}`
  }
}

/** A job's question and its owner. */
interface JobOptions {
  /** the module whose `job` is run in a thread (see `JobModule`) */
  readonly module: URL
  /** jobs of different owners take turns */
  readonly owner: string
  /** is cloned */
  readonly ask: unknown
  /** buffers of `ask` that are moved instead */
  readonly transfer?: ReadonlyArray<ArrayBuffer>
}

/** Threads of this process for what would hold up its event loop: a bounded number for all rooms, with deadline and heap. */
export class Workers extends Context.Service<
  Workers,
  {
    /** the answer as the job gave it: its caller knows what that is */
    readonly run: (options: JobOptions) => Effect.Effect<unknown, JobNotDone>
    readonly stats: () => WorkerPoolStats
  }
>()("signalbox/infra/Workers") {
  static readonly layer = Layer.effect(
    Workers,
    Effect.gen(function* () {
      const { limits } = yield* AppConfig
      const pool = new WorkerPool({
        threads: limits.workerThreads,
        waitingMax: limits.workerWaiting,
        deadlineMillis: limits.workerMillis,
        heapMegabytes: limits.workerHeapMegabytes,
        idleMillis: limits.workerIdleMillis
      })
      yield* Effect.addFinalizer(() => Effect.promise(() => pool.stop()))
      return Workers.of({
        stats: () => pool.stats(),
        run: ({ ask, module, owner, transfer = [] }) =>
          Effect.callback<unknown, JobNotDone>((resume) => {
            const giveUp = pool.run({
              module: module.href,
              owner,
              ask,
              transfer,
              done: (answer) => resume("reason" in answer ? Effect.fail(notDone(answer)) : resultOf(answer))
            })
            return Effect.sync(giveUp)
          })
      })
    })
  )
}

const notDone = ({ problem, reason }: JobFailure): JobNotDone => new JobNotDone({ reason, problem })

const resultOf = (
  answer:
    | { readonly _tag: "Done"; readonly result: unknown }
    | { readonly _tag: "Failed"; readonly problem: string }
): Effect.Effect<unknown, JobNotDone> =>
  answer._tag === "Done"
    ? Effect.succeed(answer.result)
    : Effect.fail(new JobNotDone({ reason: "failed", problem: answer.problem }))
