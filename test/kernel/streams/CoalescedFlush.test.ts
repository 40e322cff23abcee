import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Scope } from "effect"
import { TestClock } from "effect/testing"
import * as CoalescedFlush from "#streams/kernel/CoalescedFlush.ts"

const everyMillis = 250

const make = (
  options: { readonly flush?: Effect.Effect<void, string>; readonly isPending?: () => boolean } = {}
) => {
  const started: Array<number> = []
  const flush = Effect.clockWith((clock) =>
    Effect.andThen(
      Effect.sync(() => started.push(clock.currentTimeMillisUnsafe())),
      options.flush ?? Effect.void
    )
  )
  return Effect.map(
    CoalescedFlush.make({ flush, isPending: options.isPending ?? (() => true), everyMillis }),
    (ask) => ({ ask, started })
  )
}

describe("a shared flush", () => {
  it.effect("starts at once when none has run lately", () =>
    Effect.gen(function* () {
      const { ask, started } = yield* make()
      yield* ask
      assert.deepStrictEqual(started, [0])
    })
  )

  it.effect("is shared by all who ask before it starts, and comes four times a second at most", () =>
    Effect.gen(function* () {
      const { ask, started } = yield* make()
      yield* ask
      const fibers = yield* Effect.forEach(Array.from({ length: 100 }), () =>
        Effect.andThen(Effect.forkChild(ask, { startImmediately: true }), (fiber) =>
          Effect.as(TestClock.adjust(10), fiber)
        )
      )
      yield* TestClock.adjust(1000)
      yield* Fiber.joinAll(fibers)
      assert.deepStrictEqual(started, [0, 250, 500, 750, 1000])
    })
  )

  it.effect("is not shared by who asks after it has started: it may not hold what came in between", () =>
    Effect.gen(function* () {
      const { ask, started } = yield* make({ flush: Effect.sleep(100) })
      const first = yield* Effect.forkChild(ask, { startImmediately: true })
      yield* TestClock.adjust(50)
      const second = yield* Effect.forkChild(ask, { startImmediately: true })
      yield* TestClock.adjust(60)
      yield* Fiber.join(first)
      assert.isUndefined(second.pollUnsafe())
      yield* TestClock.adjust(300)
      yield* Fiber.join(second)
      assert.deepStrictEqual(started, [0, 250])
    })
  )

  it.effect("does nothing when nothing is pending", () =>
    Effect.gen(function* () {
      const { ask, started } = yield* make({ isPending: () => false })
      yield* ask
      assert.deepStrictEqual(started, [])
    })
  )

  it.effect("tells all its readers when it fails, and the next one tries again", () =>
    Effect.gen(function* () {
      const { ask, started } = yield* make({ flush: Effect.fail("away") })
      assert.strictEqual(yield* Effect.flip(ask), "away")
      const next = yield* Effect.forkChild(Effect.flip(ask), { startImmediately: true })
      yield* TestClock.adjust(everyMillis)
      assert.strictEqual(yield* Fiber.join(next), "away")
      assert.strictEqual(started.length, 2)
    })
  )

  it.effect("goes on for the others when one reader goes away", () =>
    Effect.gen(function* () {
      const { ask, started } = yield* make()
      yield* ask
      const gone = yield* Effect.forkChild(ask, { startImmediately: true })
      const staying = yield* Effect.forkChild(ask, { startImmediately: true })
      yield* Fiber.interrupt(gone)
      yield* TestClock.adjust(everyMillis)
      yield* Fiber.join(staying)
      assert.strictEqual(started.length, 2)
    })
  )

  it.effect("lets nobody wait for ever when it is closed", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const { ask } = yield* Scope.provide(make({ flush: Effect.never }), scope)
      const waiting = yield* Effect.forkChild(ask, { startImmediately: true })
      yield* Scope.close(scope, Exit.void)
      assert.isTrue(Exit.isFailure(yield* Fiber.await(waiting)))
    })
  )
})
