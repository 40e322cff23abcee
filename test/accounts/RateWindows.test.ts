import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as References from "effect/References"
import { TestClock } from "effect/testing"
import { RateBuckets } from "#actors/accounts/RateBuckets.ts"
import { RateWindowTable, type WindowAsk } from "#actors/accounts/RateWindow.ts"
import { TokenLease } from "#actors/accounts/TokenLease.ts"

const ask = (changes: Partial<WindowAsk> = {}): WindowAsk => ({
  subject: "Sends usr_1",
  limit: 3,
  seconds: 60,
  cost: 1,
  ...changes
})

describe("a window", () => {
  it("begins with the first take, admits its limit, and ends after its seconds, not before", () => {
    const windows = new RateWindowTable(10)
    const taken = [1_000.5, 30_000, 60_000].map((at) => windows.take(ask(), at))
    assert.deepStrictEqual(
      taken.map(({ allowed, remaining, resetSeconds }) => [allowed, remaining, resetSeconds]),
      [
        [true, 2, 60],
        [true, 1, 32],
        [true, 0, 2]
      ]
    )
    const refused = { allowed: false, limit: 3, remaining: 0, resetSeconds: 1, retryAfterSeconds: 1 }
    assert.deepStrictEqual(windows.take(ask(), 61_000.4), refused)
    const next = { allowed: true, limit: 3, remaining: 2, resetSeconds: 60, retryAfterSeconds: 0 }
    assert.deepStrictEqual(windows.take(ask(), 61_000.5), next)
  })

  it("takes a cost whole or not at all", () => {
    const windows = new RateWindowTable(10)
    assert.strictEqual(windows.take(ask({ cost: 2 }), 0).remaining, 1)
    assert.deepInclude(windows.take(ask({ cost: 2 }), 1), { allowed: false, remaining: 1 })
    assert.deepInclude(windows.take(ask(), 2), { allowed: true, remaining: 0 })
  })

  it("keeps subjects apart, is swept once it has ended, and beyond the room for windows the first is forgotten", () => {
    const windows = new RateWindowTable(2)
    const take = (subject: string, at: number) => windows.take(ask({ subject, limit: 1 }), at).allowed
    assert.deepStrictEqual(
      [take("a", 0), take("b", 1), take("a", 2), take("c", 3)],
      [true, true, false, true]
    )
    assert.deepInclude(windows, { size: 2, refused: 1, forgotten: 1 })
    assert.deepStrictEqual([take("b", 4), take("a", 5)], [false, true])
    windows.sweep(60_003)
    assert.deepInclude(windows, { size: 1, refused: 2, forgotten: 2 })
  })

  it("follows a limit that changes: a smaller one leaves nothing, and nothing below it", () => {
    const windows = new RateWindowTable(10)
    windows.take(ask({ cost: 3 }), 0)
    assert.deepInclude(windows.take(ask({ limit: 1 }), 1), { allowed: false, limit: 1, remaining: 0 })
    assert.deepInclude(windows.take(ask({ limit: 5 }), 2), { allowed: true, limit: 5, remaining: 1 })
  })
})

const quiet = Effect.provideService(References.MinimumLogLevel, "None")

describe("the windows of a process", () => {
  it.effect("go by monotonic time: a clock that is set does not end them", () =>
    Effect.gen(function* () {
      const { stats, takeWindow } = yield* RateBuckets
      yield* takeWindow(ask({ limit: 1 }))
      yield* TestClock.setTime(59_999)
      assert.isFalse((yield* takeWindow(ask({ limit: 1 }))).allowed)
      assert.deepInclude(stats(), { buckets: 1, refused: 1, sharing: "alone" })
      yield* TestClock.adjust("3 minutes")
      assert.strictEqual(stats().buckets, 0, "swept")
      assert.isTrue((yield* takeWindow(ask({ limit: 1 }))).allowed)
    }).pipe(Effect.provide(RateBuckets.layer()))
  )

  it.effect("go on from the count that was shared while the store is away, and are shared again", () => {
    let delayMillis = 0
    const asked: Array<WindowAsk> = []
    const store = Layer.succeed(TokenLease, {
      acquire: () => Effect.die("these tests have no buckets"),
      takeWindow: (one) =>
        Effect.suspend(() => {
          asked.push(one)
          return Effect.succeed({ allowed: true, used: 7, leftMillis: 30_000 })
        }).pipe(Effect.delay(delayMillis)),
      ping: Effect.void
    })
    const of10 = ask({ limit: 10 })
    return Effect.gen(function* () {
      const { stats, takeWindow } = yield* RateBuckets
      assert.deepInclude(yield* takeWindow(of10), { allowed: true, remaining: 3, resetSeconds: 30 })
      delayMillis = 1_000
      const waiting = yield* Effect.forkChild(takeWindow(of10))
      yield* TestClock.adjust(250)
      assert.deepInclude(yield* Fiber.join(waiting), { allowed: true, remaining: 2 })
      assert.deepInclude(stats(), { sharing: "away", leaseFailures: 1 })
      assert.deepInclude(yield* takeWindow(ask({ limit: 10, cost: 3 })), { allowed: false, remaining: 2 })
      yield* TestClock.adjust("1 second")
      assert.strictEqual(stats().sharing, "shared")
      delayMillis = 0
      assert.isFalse((yield* takeWindow(ask({ limit: 10, cost: 3 }))).allowed, "known without a question")
      assert.strictEqual(asked.length, 1)
      yield* takeWindow(of10)
      assert.strictEqual(asked.length, 2)
    }).pipe(Effect.provide(Layer.provide(RateBuckets.layerShared(), store)), quiet)
  })
})
