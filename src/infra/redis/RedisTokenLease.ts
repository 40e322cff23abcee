import { randomUUID } from "node:crypto"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redis from "effect/persistence/Redis"
import type { LeaseWanted } from "#actors/accounts/RateBucket.ts"
import type { WindowAsk } from "#actors/accounts/RateWindow.ts"
import { LeaseUnavailable, TokenLease } from "#actors/accounts/TokenLease.ts"

/**
 * One key's bucket, a hash: `tokens` free ones as of `at` (milliseconds of Redis' clock, the only one that all machines
 * have in common), and one field per process, `<tokens>:<until>`, for the tokens it has in hand. Free ones and those in
 * hand together never exceed the burst, so a full bucket cannot be had on top of leases: over any time and any number of
 * machines, admitted <= burst + rate * elapsed. A lease whose process died stops counting at `until`.
 *
 * KEYS: bucket. ARGV: process, rate a minute, burst, held, wanted, lease milliseconds. Reply: granted, tokens left.
 */
const acquireScript = Redis.script(
  (holder: string, keyId: string, wanted: LeaseWanted, leaseMillis: number) => [
    `signalbox:rate:{${keyId}}`,
    holder,
    wanted.ratePerMinute,
    wanted.burst,
    wanted.held,
    wanted.want,
    leaseMillis
  ],
  {
    numberOfKeys: 1,
    lua: `
      local bucket, holder = KEYS[1], ARGV[1]
      local rate, burst = tonumber(ARGV[2]) / 60000, tonumber(ARGV[3])
      local held, wanted, lease = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
      local time = redis.call('TIME')
      local now = time[1] * 1000 + math.floor(time[2] / 1000)
      local tokens, at, inHand = burst, now, held
      local fields = redis.call('HGETALL', bucket)
      for i = 1, #fields, 2 do
        local name, value = fields[i], fields[i + 1]
        if name == 'tokens' then tokens = tonumber(value)
        elseif name == 'at' then at = tonumber(value)
        elseif name ~= holder then
          local amount, till = string.match(value, '^(.-):(.-)$')
          if tonumber(till) > now then inHand = inHand + tonumber(amount)
          else redis.call('HDEL', bucket, name) end
        end
      end
      tokens = math.max(0, math.min(burst - inHand, tokens + math.max(0, now - at) * rate))
      local granted = math.max(0, math.min(wanted, math.floor(tokens)))
      tokens = tokens - granted
      redis.call('HSET', bucket, 'tokens', string.format('%.6f', tokens), 'at', string.format('%d', now))
      if held + granted > 0 then
        redis.call('HSET', bucket, holder, string.format('%.6f:%d', held + granted, now + lease))
      else redis.call('HDEL', bucket, holder) end
      redis.call('PEXPIRE', bucket, string.format('%d', math.ceil(burst / rate) + lease))
      return { string.format('%d', granted), string.format('%.6f', tokens) }
    `
  }
).withReturnType<readonly [granted: string, remaining: string]>()

/**
 * One subject's window, a counter that expires with it, on Redis' clock.
 *
 * KEYS: window. ARGV: cost, limit, milliseconds. Reply: 1 if admitted, cost admitted so far, milliseconds left.
 */
const takeWindowScript = Redis.script(
  (ask: WindowAsk) => [`signalbox:window:{${ask.subject}}`, ask.cost, ask.limit, ask.seconds * 1_000],
  {
    numberOfKeys: 1,
    lua: `
      local used = tonumber(redis.call('GET', KEYS[1]) or '0')
      local left = redis.call('PTTL', KEYS[1])
      if used + ARGV[1] > tonumber(ARGV[2]) then return { 0, used, left } end
      used = redis.call('INCRBY', KEYS[1], ARGV[1])
      if left >= 0 then return { 1, used, left } end
      redis.call('PEXPIRE', KEYS[1], ARGV[3])
      return { 1, used, tonumber(ARGV[3]) }
    `
  }
).withReturnType<readonly [allowed: number, used: number, leftMillis: number]>()

/** The shared rate buckets and windows, in Redis (5 or newer). */
export const layer: Layer.Layer<TokenLease, never, Redis.Redis> = Layer.effect(
  TokenLease,
  Effect.gen(function* () {
    const redis = yield* Redis.Redis
    const acquire = redis.eval(acquireScript)
    const takeWindow = redis.eval(takeWindowScript)
    // Random, so that a process that starts again does not take over what its predecessor held.
    const holder = randomUUID()
    const unavailable = (cause: Redis.RedisError) => new LeaseUnavailable({ cause })
    return {
      acquire: (keyId, wanted, leaseMillis) =>
        acquire(holder, keyId, wanted, leaseMillis).pipe(
          Effect.map(([granted, remaining]) => ({ granted: Number(granted), remaining: Number(remaining) })),
          Effect.mapError(unavailable)
        ),
      takeWindow: (ask) =>
        takeWindow(ask).pipe(
          Effect.map(([allowed, used, leftMillis]) => ({ allowed: allowed === 1, used, leftMillis })),
          Effect.mapError(unavailable)
        ),
      ping: redis.send("PING").pipe(Effect.asVoid, Effect.mapError(unavailable))
    }
  })
)
