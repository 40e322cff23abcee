import * as Effect from "effect/Effect"
import * as Deferred from "effect/Deferred"
import * as Queue from "effect/Queue"
import * as Supervisor from "#actors/kernel/Supervisor.ts"
import { type BenchCase, type CaseContext, type Measurement, sized } from "#bench/harness/Suite.ts"

/** The callers: how many at a time, spread over how many actors. */
export interface Callers {
  readonly callers: number
  readonly actors: number
}

type Ask = (actor: number) => Effect.Effect<number, unknown>

const askRounds = (ask: Ask, { actors, callers }: Callers, context: CaseContext) =>
  Effect.gen(function* () {
    const asksEach = Math.floor(sized(context, { tiny: 6_400, quick: 400_000, full: 1_600_000 }) / callers)
    let sum = 0
    const caller = (index: number) =>
      Effect.gen(function* () {
        for (let n = 0; n < asksEach; n++) sum += yield* ask((n * callers + index) % actors)
      })
    // Actors are built and code is compiled before the clock starts.
    yield* Effect.forEach(
      Array.from({ length: actors }, (_, actor) => actor),
      ask,
      { discard: true }
    )
    const startedAt = performance.now()
    yield* Effect.forEach(
      Array.from({ length: callers }, (_, index) => index),
      caller,
      {
        concurrency: "unbounded",
        discard: true
      }
    )
    const work = asksEach * callers
    return { work, elapsedMillis: performance.now() - startedAt, result: `${sum}` } satisfies Measurement
  })

const supervised = Effect.map(
  Supervisor.make({
    name: "bench",
    build: (_actor: number) => {
      const handlers = { add: (n: number) => Effect.sync(() => n + 1) }
      return Effect.succeed({ state: {}, handlers })
    }
  }),
  (actors): Ask =>
    (actor) =>
      actors.ask(actor, "add", 1)
)

/** The least that an actor can be with Effect's own parts: a fiber that takes from a queue and completes a deferred. */
const bare = Effect.gen(function* () {
  const queues = new Map<number, Queue.Queue<readonly [n: number, reply: Deferred.Deferred<number>]>>()
  const context = yield* Effect.context<never>()
  const scope = yield* Effect.scope
  const queueOf = (actor: number) =>
    Effect.gen(function* () {
      const queue = yield* Queue.bounded<readonly [n: number, reply: Deferred.Deferred<number>]>(4096)
      const serve = Effect.flatMap(Queue.take(queue), ([n, reply]) => Deferred.succeed(reply, n + 1))
      yield* Effect.forkIn(Effect.forever(serve, { disableYield: true }), scope)
      queues.set(actor, queue)
      return queue
    })
  return ((actor) =>
    Effect.suspend(() => {
      const reply = Deferred.makeUnsafe<number>()
      const queue = queues.get(actor)
      const sent =
        queue === undefined
          ? Effect.flatMap(Effect.provideContext(queueOf(actor), context), (made) =>
              Queue.offer(made, [1, reply])
            )
          : Queue.offer(queue, [1, reply])
      return Effect.andThen(sent, Deferred.await(reply))
    })) satisfies Ask
})

/** Our ask against a bare fiber with queue and deferred, which knows no bound, crash or passivation. */
export const askCases = (callers: Callers): ReadonlyArray<BenchCase> => {
  const group = `${callers.callers} callers, ${callers.actors} actors`
  const run = (asks: typeof supervised | typeof bare) => (context: CaseContext) =>
    Effect.runPromise(Effect.scoped(Effect.flatMap(asks, (ask) => askRounds(ask, callers, context))))
  return [
    { name: `fiber + queue + deferred, ${group}`, group, baseline: true, run: run(bare) },
    { name: `supervised ask, ${group}`, group, compared: "always", run: run(supervised) }
  ]
}
