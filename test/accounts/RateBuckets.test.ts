import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as References from "effect/References"
import { TestClock } from "effect/testing"
import type { LeaseWanted } from "#actors/accounts/RateBucket.ts"
import { RateBuckets, type RateOptions } from "#actors/accounts/RateBuckets.ts"
import type { RateDecision } from "#actors/accounts/RateWindow.ts"
import { LeaseUnavailable, TokenLease } from "#actors/accounts/TokenLease.ts"
import { forSeeds } from "#test/simulation/Seed.ts"

const quiet = Effect.provideService(References.MinimumLogLevel, "None")
const alone = (options?: Partial<RateOptions>) => Effect.provide(RateBuckets.layer(options))
const times = <A>(count: number, effect: Effect.Effect<A>) =>
  Effect.forEach(Array.from({ length: count }), () => effect)
const allowedOf = (decisions: ReadonlyArray<RateDecision>): number =>
  decisions.filter(({ allowed }) => allowed).length

describe("a key's bucket", () => {
  it.effect("lets the burst through at once, then the rate", () =>
    Effect.gen(function* () {
      const { takeNow } = yield* RateBuckets
      const take = Effect.sync(() => takeNow("key_1", 600) ?? assert.fail("alone, every answer is immediate"))
      assert.strictEqual(allowedOf(yield* times(200, take)), 120)
      yield* TestClock.adjust("1 second")
      assert.strictEqual(allowedOf(yield* times(200, take)), 10)
    }).pipe(alone())
  )

  it.effect("says limit, what remains, when it is full again, and when to come back", () =>
    Effect.gen(function* () {
      const { takeNow } = yield* RateBuckets
      const first = { allowed: true, limit: 600, remaining: 119, resetSeconds: 1, retryAfterSeconds: 0 }
      assert.deepStrictEqual(takeNow("key_1", 600), first)
      const last = { allowed: true, limit: 600, remaining: 0, resetSeconds: 12, retryAfterSeconds: 0 }
      assert.deepStrictEqual(takeNow("key_1", 600, 120, 119), last)
      assert.deepStrictEqual(takeNow("key_1", 600), { ...last, allowed: false, retryAfterSeconds: 1 })
      assert.strictEqual(takeNow("key_1", 600, 120, 35)?.retryAfterSeconds, 4)
    }).pipe(alone())
  )

  it.effect("admits again after the seconds of retryAfterSeconds", () =>
    Effect.gen(function* () {
      const { takeNow } = yield* RateBuckets
      takeNow("key_1", 7, 3, 3)
      const wait = takeNow("key_1", 7, 3)?.retryAfterSeconds ?? 0
      assert.strictEqual(wait, 9)
      yield* TestClock.adjust((wait - 1) * 1000)
      assert.isFalse(takeNow("key_1", 7, 3)?.allowed)
      yield* TestClock.adjust(1000)
      assert.isTrue(takeNow("key_1", 7, 3)?.allowed)
    }).pipe(alone())
  )

  it.effect("of a slow key has a burst of a minute's rate", () =>
    Effect.gen(function* () {
      const { take } = yield* RateBuckets
      assert.strictEqual(allowedOf(yield* Effect.orDie(times(10, Effect.orDie(take("key_1", 5))))), 5)
    }).pipe(alone())
  )

  it.effect("takes a cost above the burst for a full bucket", () =>
    Effect.gen(function* () {
      const { takeNow } = yield* RateBuckets
      assert.isTrue(takeNow("key_1", 600, 10, 50)?.allowed)
      assert.strictEqual(takeNow("key_1", 600, 10, 50)?.retryAfterSeconds, 1)
    }).pipe(alone())
  )

  it.effect("follows the key's rate when it changes", () =>
    Effect.gen(function* () {
      const { takeNow } = yield* RateBuckets
      assert.strictEqual(takeNow("key_1", 600)?.remaining, 119)
      assert.strictEqual(takeNow("key_1", 60, 10)?.remaining, 9)
      assert.strictEqual(takeNow("key_1", 6000, 1000)?.remaining, 8, "a new rate is no gift")
    }).pipe(alone())
  )

  it.effect("is forgotten when it is full and idle, and not before", () =>
    Effect.gen(function* () {
      const { stats, takeNow } = yield* RateBuckets
      takeNow("quick", 600, 120, 120)
      takeNow("slow", 1, 5, 5)
      yield* TestClock.adjust("2 minutes")
      assert.strictEqual(stats().buckets, 1)
      assert.strictEqual(takeNow("slow", 1, 5)?.remaining, 1)
      yield* TestClock.adjust("6 minutes")
      assert.strictEqual(stats().buckets, 0)
    }).pipe(alone())
  )

  it.effect("is the oldest forgotten beyond maxBuckets", () =>
    Effect.gen(function* () {
      const { stats, takeNow } = yield* RateBuckets
      for (const key of ["a", "b", "c"]) takeNow(key, 60, 1)
      assert.deepInclude(stats(), { buckets: 2, forgotten: 1, sharing: "alone" })
      assert.isFalse(takeNow("b", 60, 1)?.allowed)
      assert.isTrue(takeNow("a", 60, 1)?.allowed)
    }).pipe(alone({ maxBuckets: 2 }))
  )
})

/** A shared bucket that can be slow or away, and counts how it is asked. */
class FakeLease {
  tokens = 100
  asked: Array<LeaseWanted> = []
  isAway = false
  delayMillis = 0
  readonly layer = Layer.succeed(TokenLease, {
    acquire: (_keyId, wanted) =>
      Effect.suspend(() => {
        if (this.isAway) return Effect.fail(new LeaseUnavailable({ cause: "away" }))
        this.asked.push(wanted)
        const granted = Math.min(wanted.want, Math.floor(this.tokens))
        this.tokens -= granted
        return Effect.succeed({ granted, remaining: this.tokens })
      }).pipe(Effect.delay(this.delayMillis)),
    takeWindow: () => Effect.die("these tests have no windows"),
    ping: Effect.suspend(() =>
      this.isAway ? Effect.fail(new LeaseUnavailable({ cause: "away" })) : Effect.void
    )
  })
  readonly shared = (options?: Partial<RateOptions>) =>
    Effect.provide(Layer.provide(RateBuckets.layerShared(options), this.layer))
}

describe("a bucket that machines share", () => {
  it.effect("is asked for more at a time while it is busy, and for one again after a pause", () => {
    const lease = new FakeLease()
    return Effect.gen(function* () {
      const { take, takeNow } = yield* RateBuckets
      assert.isUndefined(takeNow("key_1", 600, 100), "nothing is in hand yet")
      yield* times(31, Effect.orDie(take("key_1", 600, 100)))
      assert.deepStrictEqual(
        lease.asked.map(({ want }) => want),
        [1, 2, 4, 8, 16]
      )
      yield* Effect.orDie(take("key_1", 600, 100))
      assert.isTrue(takeNow("key_1", 600, 100)?.allowed, "from the lease in hand, at once")
      yield* TestClock.adjust("1 second")
      yield* Effect.orDie(take("key_1", 600, 100))
      assert.deepInclude(lease.asked.at(-1), { held: 0, want: 1 })
    }).pipe(lease.shared())
  })

  it.effect("is asked once for all who wait", () => {
    const lease = new FakeLease()
    lease.delayMillis = 100
    return Effect.gen(function* () {
      const { take } = yield* RateBuckets
      const waiting = yield* Effect.forkChild(
        Effect.all(
          Array.from({ length: 7 }, () => take("key_1", 600, 100)),
          { concurrency: "unbounded" }
        )
      )
      yield* TestClock.adjust(300)
      assert.strictEqual(allowedOf(yield* Fiber.join(waiting)), 7)
      assert.strictEqual(lease.asked.length, 3)
    }).pipe(lease.shared())
  })

  it.effect("is not asked while it is known to be empty: a refusal is immediate", () => {
    const lease = new FakeLease()
    lease.tokens = 0.5
    return Effect.gen(function* () {
      const { take, takeNow } = yield* RateBuckets
      assert.isFalse((yield* take("key_1", 600, 100)).allowed)
      assert.deepInclude(takeNow("key_1", 600, 100), { allowed: false, remaining: 0, retryAfterSeconds: 1 })
      assert.strictEqual(lease.asked.length, 1)
      yield* TestClock.adjust(50)
      assert.isUndefined(takeNow("key_1", 600, 100), "there may be a token by now")
    }).pipe(lease.shared())
  })

  it.effect("that does not answer in time is replaced by one of the process alone, until it is back", () => {
    const lease = new FakeLease()
    lease.delayMillis = 1000
    return Effect.gen(function* () {
      const { stats, take, takeNow } = yield* RateBuckets
      const waiting = yield* Effect.forkChild(take("key_1", 600, 100))
      yield* TestClock.adjust(250)
      assert.isTrue((yield* Fiber.join(waiting)).allowed)
      assert.deepInclude(stats(), { sharing: "away", leaseFailures: 1 })
      const local = Array.from(
        { length: 100 },
        () => takeNow("key_1", 600, 100) ?? assert.fail("no lease needed")
      )
      assert.strictEqual(allowedOf(local), 99, "the rest of the burst")
      yield* TestClock.adjust("1 second")
      assert.strictEqual(stats().sharing, "shared")
    }).pipe(lease.shared(), quiet)
  })

  it.effect("is decided about alone when too many wait for it", () => {
    const lease = new FakeLease()
    lease.delayMillis = 100
    return Effect.gen(function* () {
      const { take } = yield* RateBuckets
      const waiting = yield* Effect.forkChild(
        Effect.all(
          Array.from({ length: 4 }, () => take("key_1", 600, 2)),
          { concurrency: "unbounded" }
        )
      )
      yield* TestClock.adjust("1 second")
      assert.isAtLeast(allowedOf(yield* Fiber.join(waiting)), 2)
    }).pipe(lease.shared({ leaseWaiting: 1 }))
  })
})

describe("any traffic over any time", () => {
  it.effect("is admitted up to burst + rate * elapsed, for every interval", () =>
    forSeeds(25, (random) =>
      Effect.gen(function* () {
        const { takeNow } = yield* RateBuckets
        const ratePerMinute = 1 + random.below(2000)
        const burst = 1 + random.below(100)
        const admittedAt: Array<number> = []
        let nowMillis = 0
        for (let step = 0; step < 100; step++) {
          const pause = random.chance(0.5) ? 0 : random.below(3000)
          yield* TestClock.adjust(pause)
          nowMillis += pause
          for (let n = random.below(10); n > 0; n--) {
            if (takeNow("key_1", ratePerMinute, burst)?.allowed === true) admittedAt.push(nowMillis)
          }
        }
        const excess = admittedAt.some((from, first) =>
          admittedAt
            .slice(first)
            .some((to, more) => more + 1 > burst + ((to - from) * ratePerMinute) / 60_000 + 1e-6)
        )
        assert.isFalse(excess, `rate ${ratePerMinute}, burst ${burst}`)
      }).pipe(Effect.provide(Layer.fresh(RateBuckets.layer())))
    )
  )
})
