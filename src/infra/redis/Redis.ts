import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as EffectRedis from "effect/persistence/Redis"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import { Redis as Client } from "ioredis"

interface RedisOptions {
  /** `redis://` or, with TLS, `rediss://`; user, password and database number as usual */
  readonly url: Redacted.Redacted
  /** pause between two attempts to connect, doubled from 50 ms up to this */
  readonly reconnectMaxMillis?: number
}

/** how long the start waits for the first connection; then it goes on without, and connects later */
const connectTimeoutMillis = 2_000

/**
 * Effect's `Redis` service over ioredis. A Redis that is away makes commands fail at once (`RedisError`): nothing is
 * queued for later and nothing is sent twice. The connection is taken up again by itself.
 */
export const layer = (options: RedisOptions): Layer.Layer<EffectRedis.Redis> =>
  Layer.effect(EffectRedis.Redis, make(options))

const make = (options: RedisOptions): Effect.Effect<EffectRedis.Redis["Service"], never, Scope.Scope> =>
  Effect.gen(function* () {
    const client = yield* acquireClient(options)
    yield* connect(client).pipe(
      Effect.timeout(connectTimeoutMillis),
      Effect.catch((error) => Effect.logWarning("Redis is away; it is tried again and again", error))
    )
    return yield* EffectRedis.make({
      send: sendTo(client),
      connect: Effect.suspend(() => {
        // A reserved connection does not come back by itself: its work is gone.
        const reserved = client.duplicate({ retryStrategy: null })
        const close = Effect.sync(() => reserved.disconnect())
        reserved.on("error", (cause) => client.emit("error", cause))
        return connect(reserved).pipe(
          Effect.onError(() => close),
          Effect.as({ send: sendTo(reserved), close })
        )
      }),
      subscribe: (channel, onMessage) =>
        Effect.gen(function* () {
          const subscriber = yield* Effect.acquireRelease(
            // Subscribed anew after a lost connection, by ioredis; commands wait for the connection here.
            Effect.sync(() => client.duplicate({ enableOfflineQueue: true, maxRetriesPerRequest: null })),
            (subscriber) => Effect.sync(() => subscriber.disconnect())
          )
          subscriber.on("error", (cause) => client.emit("error", cause))
          subscriber.on("message", (channel, message) => onMessage({ channel, message }))
          yield* attempt(() => subscriber.subscribe(channel))
          return Effect.never
        })
    })
  })

const acquireClient = (options: RedisOptions) =>
  Effect.gen(function* () {
    const runFork = Effect.runForkWith(yield* Effect.context<never>())
    const reconnectMaxMillis = options.reconnectMaxMillis ?? 2_000
    const client = yield* Effect.acquireRelease(
      Effect.sync(
        () =>
          new Client(Redacted.value(options.url), {
            lazyConnect: true,
            connectTimeout: connectTimeoutMillis,
            commandTimeout: 1_000,
            enableOfflineQueue: false,
            autoResendUnfulfilledCommands: false,
            maxRetriesPerRequest: 0,
            retryStrategy: (attempt) =>
              Math.min(50 * 2 ** (attempt - 1), reconnectMaxMillis) * (0.75 + Math.random() / 4)
          })
      ),
      (client) => Effect.sync(() => client.disconnect())
    )
    // Without a listener an error event ends the process; one line per outage is enough to read.
    let isAway = false
    client.on("error", (cause) => {
      if (isAway) return
      isAway = true
      runFork(Effect.logWarning("Redis cannot be reached", cause))
    })
    client.on("ready", () => {
      isAway = false
    })
    return client
  })

const attempt = <A>(promise: () => Promise<A>): Effect.Effect<A, EffectRedis.RedisError> =>
  Effect.tryPromise({ try: promise, catch: (cause) => new EffectRedis.RedisError({ cause }) })

const connect = (client: Client): Effect.Effect<void, EffectRedis.RedisError> =>
  attempt(() => client.connect())

/** The caller says what the reply of its command is, as Effect's service has it. */
const sendTo =
  (client: Client) =>
  <A>(command: string, ...args: ReadonlyArray<string>): Effect.Effect<A, EffectRedis.RedisError> =>
    attempt(() => client.call(command, ...args) as Promise<A>)
