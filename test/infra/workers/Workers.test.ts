import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer } from "effect"
import { AppConfig } from "#src/Config.ts"
import { FairQueue } from "#src/infra/workers/WorkerPool.ts"
import { Workers } from "#src/infra/workers/Workers.ts"
import type { TestAsk } from "./TestJobs.ts"

const module = new URL("./TestJobs.ts", import.meta.url)

const ask = (value: TestAsk, owner = "one") =>
  Effect.flatMap(Workers, ({ run }) => run({ module, owner, ask: value }))

const pool = (changes: object = {}) =>
  Effect.provide(
    Workers.layer.pipe(
      Layer.provide(AppConfig.layerOf({ limits: { workerThreads: 1, workerMillis: 5_000, ...changes } }))
    )
  )

const failure = <A, E>(exit: Exit.Exit<A, E>): string =>
  Exit.isFailure(exit) ? String(exit.cause) : assert.fail("it was done")

describe("work beside the event loop", () => {
  it.live("is done in a thread, whose answer comes back; buffers may be moved", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* ask({ _tag: "Echo", value: { a: [1, "ü"] } }), { a: [1, "ü"] })
      const bytes = new Uint8Array([1, 2, 3])
      const { run } = yield* Workers
      const answer = yield* run({
        module,
        owner: "one",
        ask: { _tag: "Bytes", bytes },
        transfer: [bytes.buffer]
      })
      assert.deepStrictEqual([answer, bytes.length], [new Uint8Array([2, 3, 4]), 0])
    }).pipe(pool())
  )

  it.live(
    "fails alone: a job that throws, takes too long or needs too much memory is told so, the next one is done",
    () =>
      Effect.gen(function* () {
        const all = yield* Effect.all(
          [
            Effect.exit(ask({ _tag: "Throw" })),
            Effect.exit(ask({ _tag: "Spin", millis: 60_000 })),
            Effect.exit(ask({ _tag: "Hoard" })),
            Effect.exit(ask({ _tag: "Echo", value: 1 }))
          ],
          { concurrency: "unbounded" }
        )
        assert.match(failure(all[0]), /as it was asked/)
        assert.match(failure(all[1]), /no answer in 6000 ms/)
        assert.match(failure(all[2]), /memory/)
        assert.deepStrictEqual(all[3], Exit.succeed(1))
        assert.strictEqual((yield* Workers).stats().failed, 3)
      }).pipe(pool({ workerMillis: 6_000, workerHeapMegabytes: 64 }))
  )

  it.live("takes turns between owners, and refuses what is too much to wait", () =>
    Effect.gen(function* () {
      const order: Array<string> = []
      const told = (owner: string) =>
        Effect.tap(ask({ _tag: "Spin", millis: 5 }, owner), () => Effect.sync(() => order.push(owner)))
      const greedy = yield* Effect.forEach([1, 2, 3, 4, 5], () => Effect.forkChild(told("greedy")))
      yield* Effect.yieldNow
      const honest = yield* Effect.forkChild(told("honest"))
      yield* Effect.forEach([...greedy, honest], (fiber) => Fiber.join(fiber))
      assert.isAtMost(order.indexOf("honest"), 2, order.join())
      const many = yield* Effect.all(
        Array.from({ length: 20 }, () => Effect.exit(ask({ _tag: "Spin", millis: 1 }))),
        { concurrency: "unbounded" }
      )
      assert.isAbove(
        many.filter((exit) => Exit.isFailure(exit) && failure(exit).includes("wait already")).length,
        0
      )
    }).pipe(pool({ workerWaiting: 10 }))
  )

  it("queues owners in turns", () => {
    const queue = new FairQueue<string>()
    for (const item of ["a1", "a2", "a3"]) queue.push("a", item)
    queue.push("b", "b1")
    queue.push("a", "a4")
    queue.remove("a", "a2")
    queue.remove("b", "never")
    const all = [queue.size, ...Array.from({ length: 5 }, () => queue.shift())]
    assert.deepStrictEqual(all, [4, "a1", "b1", "a3", "a4", undefined])
  })
})
