import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as EffectRedis from "effect/persistence/Redis"
import * as Queue from "effect/Queue"
import * as Redacted from "effect/Redacted"
import * as References from "effect/References"
import * as Schedule from "effect/Schedule"
import * as Redis from "#src/infra/redis/Redis.ts"
import { describeWith } from "#test/harness/Requirement.ts"
import { redisServer, startRedis } from "#test/harness/RedisServer.ts"

const quiet = Effect.provideService(References.MinimumLogLevel, "None")
const connected = (url: Redacted.Redacted) =>
  Effect.map(Layer.build(Redis.layer({ url, reconnectMaxMillis: 50 })), (context) =>
    Context.get(context, EffectRedis.Redis)
  )

describe("a Redis that is away", () => {
  it.live("does not stop the start, and fails commands instead of keeping them", () =>
    Effect.gen(function* () {
      // Port 1 (tcpmux) is privileged: nothing of this test can listen there.
      const redis = yield* connected(Redacted.make("redis://127.0.0.1:1"))
      const failure = yield* Effect.flip(redis.send("PING"))
      assert.strictEqual(failure._tag, "RedisError")
    }).pipe(Effect.scoped, quiet)
  )
})

describeWith(redisServer, "a Redis that is there", () => {
  it.live("answers commands, and refusals of Redis are RedisError", () =>
    Effect.gen(function* () {
      const { url } = yield* startRedis
      const redis = yield* connected(url)
      assert.strictEqual(yield* redis.send("SET", "a", "1"), "OK")
      assert.strictEqual(yield* redis.send("GET", "a"), "1")
      assert.strictEqual((yield* Effect.flip(redis.send("INCR")))._tag, "RedisError")
    }).pipe(Effect.scoped, quiet)
  )

  it.live("runs scripts, also after Redis has forgotten them", () =>
    Effect.gen(function* () {
      const { url } = yield* startRedis
      const redis = yield* connected(url)
      const twice = redis.eval(
        EffectRedis.script((n: number) => [n], {
          numberOfKeys: 0,
          lua: "return ARGV[1] * 2"
        }).withReturnType<number>()
      )
      assert.strictEqual(yield* twice(2), 4)
      yield* redis.send("SCRIPT", "FLUSH")
      assert.strictEqual(yield* twice(3), 6)
    }).pipe(Effect.scoped, quiet)
  )

  it.live("delivers what is published, and reserves connections of their own", () =>
    Effect.gen(function* () {
      const { url } = yield* startRedis
      const redis = yield* connected(url)
      const messages = yield* redis.subscribe("news")
      const subscribed = Effect.map(
        redis.send<ReadonlyArray<unknown>>("PUBSUB", "NUMSUB", "news"),
        ([, n]) => n === 1
      )
      yield* Effect.repeat(subscribed, { until: (isThere) => isThere, schedule: Schedule.spaced(5) })
      yield* redis.send("PUBLISH", "news", "hello")
      assert.deepStrictEqual(yield* Queue.take(messages), { channel: "news", message: "hello" })
      const [shared, reserved] = yield* Effect.all([
        redis.send("CLIENT", "ID"),
        Effect.scoped(Effect.flatMap(redis.reserve, (connection) => connection.send("CLIENT", "ID")))
      ])
      assert.notStrictEqual(shared, reserved)
    }).pipe(Effect.scoped, quiet)
  )

  it.live("is found again after it was away", () =>
    Effect.gen(function* () {
      const server = yield* startRedis
      const redis = yield* connected(server.url)
      yield* redis.send("PING")
      yield* server.stop
      yield* Effect.flip(redis.send("PING"))
      yield* server.start
      assert.strictEqual(yield* Effect.retry(redis.send("PING"), Schedule.spaced(10)), "PONG")
    }).pipe(Effect.scoped, quiet)
  )
})
