import { assert, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as EffectRedis from "effect/persistence/Redis"
import type * as Redacted from "effect/Redacted"
import * as References from "effect/References"
import * as Schedule from "effect/Schedule"
import { RateBuckets } from "#actors/accounts/RateBuckets.ts"
import type { RateDecision } from "#actors/accounts/RateWindow.ts"
import { TokenLease } from "#actors/accounts/TokenLease.ts"
import * as Redis from "#src/infra/redis/Redis.ts"
import * as RedisTokenLease from "#src/infra/redis/RedisTokenLease.ts"
import { describeWith } from "#test/harness/Requirement.ts"
import { redisServer, startRedis } from "#test/harness/RedisServer.ts"

const quiet = Effect.provideService(References.MinimumLogLevel, "None")

/** The parts of one process: a connection, a name as a holder of leases, and buckets, all of its own. */
const processOn = (url: Redacted.Redacted) =>
  Layer.build(
    RateBuckets.layerShared({ probeMillis: 10 }).pipe(
      Layer.provideMerge(RedisTokenLease.layer),
      Layer.provide(Redis.layer({ url, reconnectMaxMillis: 50 })),
      Layer.fresh
    )
  )

const leaseOf = (url: Redacted.Redacted) =>
  Effect.map(processOn(url), (context) => Context.get(context, TokenLease))
const bucketsOf = (url: Redacted.Redacted) =>
  Effect.map(processOn(url), (context) => Context.get(context, RateBuckets))

/** so fast that a bucket is full again before the next line runs */
const atOnce = 60_000_000
const minute = 60_000

describeWith(redisServer, "rate buckets shared through Redis", () => {
  it.live("admit over two processes no more than burst + rate * elapsed, and no less than the burst", () =>
    Effect.gen(function* () {
      const { url } = yield* startRedis
      const processes = yield* Effect.all([bucketsOf(url), bucketsOf(url)])
      const ratePerMinute = 6_000
      const burst = 50
      const startedAt = performance.now()
      const admitted = yield* Effect.forEach(
        processes.flatMap((buckets) => Array.from({ length: 8 }, () => buckets)),
        (buckets) =>
          Effect.gen(function* () {
            let count = 0
            for (let n = 0; n < 150; n++) {
              const { allowed } = yield* buckets.take("key_1", ratePerMinute, burst)
              if (allowed) count++
              yield* Effect.sleep(1)
            }
            return count
          }),
        { concurrency: "unbounded" }
      )
      const elapsedMillis = performance.now() - startedAt
      const total = admitted.reduce((sum, count) => sum + count, 0)
      assert.isAtMost(total, burst + (elapsedMillis * ratePerMinute) / minute)
      assert.isAtLeast(total, burst)
      for (const buckets of processes)
        assert.deepInclude(buckets.stats(), { sharing: "shared", leaseFailures: 0 })
    }).pipe(Effect.scoped, quiet)
  )

  it.live("count tokens in another process's hand against the burst, however long they are held", () =>
    Effect.gen(function* () {
      const { url } = yield* startRedis
      const [one, other] = yield* Effect.all([leaseOf(url), leaseOf(url)])
      const wanted = { ratePerMinute: atOnce, burst: 100, held: 0, want: 30 }
      assert.strictEqual((yield* one.acquire("key_1", wanted, minute)).granted, 30)
      yield* Effect.sleep(5)
      assert.strictEqual((yield* other.acquire("key_1", { ...wanted, want: 100 }, minute)).granted, 70)
      yield* Effect.sleep(5)
      assert.strictEqual((yield* one.acquire("key_1", { ...wanted, held: 30 }, minute)).granted, 0)
    }).pipe(Effect.scoped, quiet)
  )

  it.live("admit over two processes no more than the limit in a window, and as much in the next one", () =>
    Effect.gen(function* () {
      const { url } = yield* startRedis
      const [first, second] = yield* Effect.all([bucketsOf(url), bucketsOf(url)])
      const taken = (buckets: typeof first, cost: number) =>
        Effect.map(
          buckets.takeWindow({ subject: "Sends usr_1", limit: 15, seconds: 600, cost }),
          ({ allowed }) => (allowed ? cost : 0)
        )
      const asked = Array.from({ length: 20 }, () => [taken(first, 1), taken(second, 2), taken(second, 1)])
      const costs = yield* Effect.all(asked.flat(), { concurrency: "unbounded" })
      assert.strictEqual(
        costs.reduce<number>((sum, cost) => sum + cost, 0),
        15
      )
      const whole = { subject: "Sends usr_2", limit: 15, seconds: 1, cost: 15 }
      const startedAt = performance.now()
      assert.isTrue((yield* first.takeWindow(whole)).allowed)
      const next = { until: ({ allowed }: RateDecision) => allowed, schedule: Schedule.spaced(5) }
      assert.deepInclude(yield* Effect.repeat(second.takeWindow(whole), next), { limit: 15, remaining: 0 })
      assert.isAtLeast(performance.now() - startedAt, 990, "by Redis' clock, which may go a little faster")
      for (const buckets of [first, second])
        assert.deepInclude(buckets.stats(), { sharing: "shared", leaseFailures: 0 })
    }).pipe(Effect.scoped, quiet)
  )

  it.live("give up what a dead process held once its lease has ended", () =>
    Effect.gen(function* () {
      const { url } = yield* startRedis
      const [dead, living] = yield* Effect.all([leaseOf(url), leaseOf(url)])
      const wanted = { ratePerMinute: atOnce, burst: 100, held: 0, want: 100 }
      assert.strictEqual((yield* dead.acquire("key_1", wanted, 20)).granted, 100)
      const granted = Effect.map(living.acquire("key_1", wanted, 1), (grant) => grant.granted)
      yield* Effect.repeat(granted, { until: (tokens) => tokens === 100, schedule: Schedule.spaced(2) })
    }).pipe(Effect.scoped, quiet)
  )

  it.live("keep every key apart, and expire once they are full", () =>
    Effect.gen(function* () {
      const { url } = yield* startRedis
      const lease = yield* leaseOf(url)
      const wanted = { ratePerMinute: atOnce, burst: 10, held: 0, want: 10 }
      assert.strictEqual((yield* lease.acquire("key_1", wanted, 1)).granted, 10)
      assert.strictEqual((yield* lease.acquire("key_2", wanted, 1)).granted, 10)
      const redis = Context.get(yield* Layer.build(Redis.layer({ url })), EffectRedis.Redis)
      const keys = Effect.map(redis.send<ReadonlyArray<string>>("KEYS", "*"), (found) => found.length)
      yield* Effect.repeat(keys, { until: (count) => count === 0, schedule: Schedule.spaced(2) })
    }).pipe(Effect.scoped, quiet)
  )

  it.live("become process-local while Redis is away, say so, and are shared again by themselves", () =>
    Effect.gen(function* () {
      const server = yield* startRedis
      const buckets = yield* bucketsOf(server.url)
      assert.isTrue((yield* buckets.take("key_1", 600)).allowed)
      yield* server.stop
      // Each key asks for itself: the first that finds Redis away decides for all.
      assert.isTrue((yield* buckets.take("key_2", 600)).allowed)
      assert.strictEqual(buckets.stats().sharing, "away")
      const local = yield* Effect.forEach(Array.from({ length: 40 }), () => buckets.take("key_3", 1, 20))
      assert.strictEqual(local.filter(({ allowed }) => allowed).length, 20)
      yield* server.start
      const sharing = Effect.sync(() => buckets.stats().sharing)
      yield* Effect.repeat(sharing, { until: (state) => state === "shared", schedule: Schedule.spaced(5) })
      assert.isTrue((yield* buckets.take("key_4", 600)).allowed)
    }).pipe(Effect.scoped, quiet)
  )
})
