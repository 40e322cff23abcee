import { assert, describe, it } from "@effect/vitest"
import { Cause, Deferred, Effect, Exit, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { gathering } from "#src/infra/postgres/Gathering.ts"

const forkAll = <B, E>(ask: (n: number) => Effect.Effect<B, E>, asks: ReadonlyArray<number>) =>
  Effect.forEach(asks, (n) => Effect.forkChild(Effect.exit(ask(n)), { startImmediately: true }))

const answersOf = <B, E>(fibers: ReadonlyArray<Fiber.Fiber<Exit.Exit<B, E>>>) =>
  Effect.map(
    Effect.forEach(fibers, (fiber) => Fiber.join(fiber)),
    (exits) => exits.map((exit) => (Exit.isSuccess(exit) ? exit.value : "failed"))
  )

const bounds = { most: 10, millis: 1_000 }

describe("asks that are gathered", () => {
  it.effect("go together while a statement is under way, so many at once, and each has its own answer", () =>
    Effect.gen(function* () {
      const ran: Array<ReadonlyArray<number>> = []
      const first = yield* Deferred.make<void>()
      const ask = yield* gathering({ ...bounds, most: 3 }, (asks: ReadonlyArray<number>) =>
        Effect.gen(function* () {
          ran.push(asks)
          if (ran.length === 1) yield* Deferred.await(first)
          return asks.map((n) => n * 10)
        })
      )
      const before = yield* forkAll(ask, [1])
      while (ran.length === 0) yield* Effect.yieldNow
      const meanwhile = yield* forkAll(ask, [2, 3, 4, 5])
      yield* Deferred.succeed(first, undefined)
      assert.deepStrictEqual(yield* answersOf([...before, ...meanwhile]), [10, 20, 30, 40, 50])
      assert.deepStrictEqual(ran, [[1], [2, 3, 4], [5]])
      // It goes on after it has had nothing to do.
      assert.strictEqual(yield* ask(6), 60)
    })
  )

  it.effect("wait for the first of two statements that ends, where two may be under way", () =>
    Effect.gen(function* () {
      const ran: Array<ReadonlyArray<number>> = []
      const ends = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const ask = yield* gathering({ ...bounds, atOnce: 2 }, (asks: ReadonlyArray<number>) =>
        Effect.gen(function* () {
          const end = ends[ran.length]
          ran.push(asks)
          if (end !== undefined) yield* Deferred.await(end)
          return asks.map((n) => n * 10)
        })
      )
      const fibers: Array<Fiber.Fiber<Exit.Exit<number, unknown>>> = []
      for (const n of [1, 2]) {
        fibers.push(...(yield* forkAll(ask, [n])))
        while (ran.length < n) yield* Effect.yieldNow
      }
      fibers.push(...(yield* forkAll(ask, [3, 4])))
      for (let turn = 0; turn < 10; turn++) yield* Effect.yieldNow
      assert.deepStrictEqual(ran, [[1], [2]])
      if (ends[1] !== undefined) yield* Deferred.succeed(ends[1], undefined)
      while (ran.length < 3) yield* Effect.yieldNow
      assert.deepStrictEqual(ran, [[1], [2], [3, 4]])
      if (ends[0] !== undefined) yield* Deferred.succeed(ends[0], undefined)
      assert.deepStrictEqual(yield* answersOf(fibers), [10, 20, 30, 40])
    })
  )

  it.effect("fail alone: those beside one that fails have their answers", () =>
    Effect.gen(function* () {
      const ask = yield* gathering(bounds, (asks: ReadonlyArray<number>) =>
        asks.includes(2) ? Effect.fail("refused") : Effect.succeed(asks.map((n) => n * 10))
      )
      const fibers = yield* forkAll(ask, [1, 2, 3])
      assert.deepStrictEqual(yield* answersOf(fibers), [10, "failed", 30])
    })
  )

  it.effect("go on behind a defect and an interruption", () =>
    Effect.gen(function* () {
      const ask = yield* gathering(bounds, (asks: ReadonlyArray<number>) =>
        asks.includes(1) ? Effect.die(new Error("a defect")) : Effect.succeed(asks)
      )
      const [died] = yield* answersOf(yield* forkAll(ask, [1]))
      assert.strictEqual(died, "failed")
      const [left] = yield* forkAll(ask, [2])
      if (left !== undefined) yield* Fiber.interrupt(left)
      assert.strictEqual(yield* ask(3), 3)
    })
  )

  it.effect("go on behind a statement that cannot be made", () =>
    Effect.gen(function* () {
      const ask = yield* gathering(bounds, (asks: ReadonlyArray<number>) => {
        if (asks.includes(1)) throw new Error("a defect")
        return Effect.succeed(asks)
      })
      const fibers = yield* forkAll(ask, [1, 2])
      assert.deepStrictEqual(yield* answersOf(fibers), ["failed", 2])
      assert.strictEqual(yield* ask(3), 3)
    })
  )

  it.effect("are not carried out once they are withdrawn, where it says so, and those beside them are", () =>
    Effect.gen(function* () {
      const done: Array<number> = []
      const begun = yield* Deferred.make<void>()
      const going = yield* Deferred.make<void>()
      const ask = yield* gathering(bounds, (asks: ReadonlyArray<number>, areWanted) =>
        Effect.gen(function* () {
          yield* Deferred.succeed(begun, undefined)
          yield* Deferred.await(going)
          if (!areWanted()) return yield* Effect.fail("withdrawn")
          done.push(...asks)
          return asks
        })
      )
      const [left, stays] = yield* forkAll(ask, [1, 2])
      yield* Deferred.await(begun)
      const [later] = yield* forkAll(ask, [3])
      if (left === undefined || stays === undefined || later === undefined) return assert.fail()
      yield* Fiber.interrupt(left)
      yield* Fiber.interrupt(later)
      yield* Deferred.succeed(going, undefined)
      assert.deepStrictEqual(yield* answersOf([stays]), [2])
      assert.strictEqual(yield* ask(4), 4)
      assert.deepStrictEqual(done, [2, 4])
    })
  )

  it.effect("do not wait for ever behind a connection that hangs, whose asks are withdrawn", () =>
    Effect.gen(function* () {
      const wanted: Array<() => boolean> = []
      const ask = yield* gathering(bounds, (asks: ReadonlyArray<number>, areWanted) => {
        if (!asks.includes(1)) return Effect.succeed(asks)
        wanted.push(areWanted)
        return Effect.uninterruptible(Effect.never)
      })
      const hanging = yield* forkAll(ask, [1])
      while (wanted.length === 0) yield* Effect.yieldNow
      const behind = yield* forkAll(ask, [2, 3])
      assert.isTrue(wanted[0]?.())
      yield* TestClock.adjust(bounds.millis)
      assert.deepStrictEqual(yield* answersOf([...hanging, ...behind]), ["failed", 2, 3])
      // A failure can be tried again, which a defect is not.
      const [late] = yield* Effect.forEach(hanging, (fiber) => Fiber.join(fiber))
      assert.isTrue(late !== undefined && Exit.isFailure(late) && Cause.hasFails(late.cause))
      assert.isFalse(wanted[0]?.())
    })
  )
})
