import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import * as Supervisor from "#actors/kernel/Supervisor.ts"
import { type CaseContext, type Measurement, sized } from "#bench/harness/Suite.ts"

/** Heap that stays once everything collectable is gone. */
const settledHeapBytes = (): number => {
  setFlagsFromString("--expose-gc")
  const collect = runInNewContext("gc") as () => void
  collect()
  return process.memoryUsage().heapUsed
}

const weigh = (context: CaseContext, makeOne: (index: number) => Effect.Effect<unknown, unknown>) =>
  Effect.gen(function* () {
    const work = sized(context, { tiny: 500, full: 20_000 })
    const before = settledHeapBytes()
    const startedAt = performance.now()
    yield* Effect.forEach(
      Array.from({ length: work }, (_, index) => index),
      makeOne,
      { discard: true }
    )
    const elapsedMillis = performance.now() - startedAt
    // One turn of the loop, in which every fiber comes to its wait.
    yield* Effect.sleep(1)
    const bytesPerActor = Math.round((settledHeapBytes() - before) / work)
    return { work, elapsedMillis, figures: { bytesPerActor } } satisfies Measurement
  })

export const idleSupervised = (context: CaseContext): Promise<Measurement> =>
  Effect.runPromise(
    Effect.scoped(
      Effect.gen(function* () {
        const actors = yield* Supervisor.make({
          name: "bench",
          maxResidentActors: 1_000_000,
          build: (_actor: number) =>
            Effect.succeed({ state: {}, handlers: { add: (n: number) => Effect.succeed(n + 1) } })
        })
        return yield* weigh(context, (index) => actors.acquire(index))
      })
    )
  )

export const idleBare = (context: CaseContext): Promise<Measurement> =>
  Effect.runPromise(
    Effect.scoped(
      Effect.gen(function* () {
        const scope = yield* Effect.scope
        return yield* weigh(context, () =>
          Effect.flatMap(Queue.bounded<number>(4096), (queue) =>
            Effect.forkIn(Effect.forever(Queue.take(queue), { disableYield: true }), scope)
          )
        )
      })
    )
  )
