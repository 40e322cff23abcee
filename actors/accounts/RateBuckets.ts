/**
 * State: the table of all keys' buckets and all subjects' windows (one actor), and no more than a place in line per key
 * that needs a lease.
 * Messages: `fetch` of a key's lease, one at a time per key, so that one request serves all who wait for it.
 * Limits: see `RateOptions`; a refusal for want of room in a mailbox is decided from what this process knows.
 * Restart policy: the kernel's; a failing or slow lease is no crash, it makes the buckets process-local.
 * In a crash of the table every key's bucket is full again (shared: as Redis says); of a lease's actor, nothing is lost.
 */
import type * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import type { ActorUnavailable } from "../kernel/ActorError.ts"
import { monotonicMillis } from "../kernel/Monotonic.ts"
import * as SampledMetrics from "../kernel/SampledMetrics.ts"
import * as Supervisor from "../kernel/Supervisor.ts"
import { type RateAsk, RateBucketTable, type RateStats } from "./RateBucket.ts"
import type { RateDecision, WindowAsk } from "./RateWindow.ts"
import { type LeaseUnavailable, TokenLease } from "./TokenLease.ts"

/** The requests of each key, owner or address, limited by a bucket or in fixed windows. */
export class RateBuckets extends Context.Service<
  RateBuckets,
  {
    /**
     * The hot path: no fiber, no wait, some 100 ns. Undefined: `take` has to ask elsewhere. `burst` defaults to a
     * fifth of `ratePerMinute`, at least 120 where the rate is, `cost` to 1.
     */
    takeNow(keyId: string, ratePerMinute: number, burst?: number, cost?: number): RateDecision | undefined
    /** Fails only when the limiter itself is given up or stopped. */
    take(
      keyId: string,
      ratePerMinute: number,
      burst?: number,
      cost?: number
    ): Effect.Effect<RateDecision, ActorUnavailable>
    /** As `takeWindow`, without a wait. Undefined: `takeWindow` has to ask elsewhere, and nothing was taken. */
    takeWindowNow(ask: WindowAsk): RateDecision | undefined
    /** Of a window that begins with an idle subject's first take. Fails as `take` does. */
    takeWindow(ask: WindowAsk): Effect.Effect<RateDecision, ActorUnavailable>
    /** `sharing` is for `/readyz`: "away" means that each process limits on its own until Redis is back */
    readonly stats: () => RateStats
  }
>()("signalbox/accounts/RateBuckets") {
  /** Buckets of this process alone. */
  static readonly layer = (options: Partial<RateOptions> = {}): Layer.Layer<RateBuckets> =>
    Layer.effect(RateBuckets, make({ ...rateDefaults, ...options }, undefined))

  /** Buckets that every process with the same store behind `TokenLease` shares. */
  static readonly layerShared = (
    options: Partial<RateOptions> = {}
  ): Layer.Layer<RateBuckets, never, TokenLease> =>
    Layer.effect(
      RateBuckets,
      Effect.flatMap(TokenLease, (lease) => make({ ...rateDefaults, ...options }, lease))
    )
}

export interface RateOptions {
  /** the least burst of a key whose rate is higher */
  readonly rateBurst: number
  /** keys with a bucket that is not full, in memory, and as many windows; beyond it the oldest is forgotten */
  readonly maxBuckets: number
  /** a full bucket unused for this long (up to twice) is forgotten */
  readonly idleMillis: number
  readonly leaseTokens: number
  /** the lifetime of leased tokens; a dead process's tokens are missing for this long */
  readonly leaseMillis: number
  /** a lease that takes longer counts as failed: a caller waits no longer for it */
  readonly leaseTimeoutMillis: number
  /** between two questions whether a lease that failed is back */
  readonly probeMillis: number
  /** callers that wait for one key's lease */
  readonly leaseWaiting: number
  /** keys that wait for a lease at once */
  readonly leaseKeys: number
}

const rateDefaults: RateOptions = {
  rateBurst: 120,
  maxBuckets: 100_000,
  idleMillis: 60_000,
  leaseTokens: 20,
  leaseMillis: 1_000,
  leaseTimeoutMillis: 250,
  probeMillis: 1_000,
  leaseWaiting: 1_000,
  leaseKeys: 10_000
}

type Lease = TokenLease["Service"]

const make = (
  options: RateOptions,
  lease: Lease | undefined
): Effect.Effect<RateBuckets["Service"], never, Scope.Scope> =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    const now = (): number => monotonicMillis(clock)
    const tables = yield* superviseTable(options, lease, now)
    yield* Effect.orDie(tables.acquire("table"))
    const tableNow = (): RateBucketTable | undefined => tables.peek("table")
    const table = Effect.suspend(() => {
      const open = tableNow()
      return open === undefined ? tables.acquire("table") : Effect.succeed(open)
    })
    const leases = lease === undefined ? undefined : yield* superviseLeases(options, lease, table, now)

    const askOf = (keyId: string, ratePerMinute: number, burst?: number, cost = 1): RateAsk => ({
      keyId,
      ratePerMinute,
      burst: burst ?? Math.min(ratePerMinute, Math.max(options.rateBurst, Math.ceil(ratePerMinute / 5))),
      cost
    })
    const take = (ask: RateAsk): Effect.Effect<RateDecision, ActorUnavailable> =>
      Effect.flatMap(table, (rows) => {
        if (leases === undefined) return Effect.succeed(rows.takeAlone(ask, now()))
        const decision = rows.take(ask, now())
        if (decision !== undefined) return Effect.succeed(decision)
        return Effect.matchEffect(leases.ask(ask.keyId, "fetch", ask), {
          onSuccess: () => take(ask),
          // Too many wait already: a limiter must not become the bottleneck that it is there to prevent.
          onFailure: () => Effect.map(table, (rows) => rows.takeAlone(ask, now()))
        })
      })
    const none: RateStats = { ...noStats, sharing: lease === undefined ? "alone" : "away" }
    const stats = (): RateStats => tableNow()?.stats() ?? none
    yield* SampledMetrics.register(samples(stats))
    return {
      takeNow: (...args) => tableNow()?.take(askOf(...args), now()),
      take: (...args) => take(askOf(...args)),
      takeWindowNow: (ask) => {
        const rows = tableNow()
        if (rows === undefined || needsLease(lease, rows, ask, now)) return undefined
        return rows.windows.take(ask, now())
      },
      takeWindow: (ask) => Effect.flatMap(table, (rows) => takeWindow(options, lease, rows, ask, now)),
      stats
    }
  })

/** Whether the count of a window is other processes' too, and not known to be spent. */
const needsLease = (
  lease: Lease | undefined,
  rows: RateBucketTable,
  ask: WindowAsk,
  now: () => number
): lease is Lease => lease !== undefined && rows.sharing === "shared" && !rows.windows.isSpent(ask, now())

const takeWindow = (
  options: RateOptions,
  lease: Lease | undefined,
  rows: RateBucketTable,
  ask: WindowAsk,
  now: () => number
): Effect.Effect<RateDecision> => {
  const takeAlone = Effect.sync(() => rows.windows.take(ask, now()))
  if (!needsLease(lease, rows, ask, now)) return takeAlone
  const sentAtMillis = now()
  return Effect.matchEffect(Effect.timeout(lease.takeWindow(ask), options.leaseTimeoutMillis), {
    onSuccess: (count) => Effect.sync(() => rows.windows.learn(ask, count, sentAtMillis)),
    onFailure: (failure) => Effect.andThen(leaseFailed(rows, failure), takeAlone)
  })
}

const leaseFailed = (rows: RateBucketTable, failure: LeaseUnavailable | Cause.TimeoutError) => {
  const isNews = rows.sharing === "shared"
  rows.leaseFailed()
  return isNews ? Effect.logWarning("Rate limits hold per machine while Redis is away", failure) : Effect.void
}

const superviseTable = (options: RateOptions, lease: Lease | undefined, now: () => number) =>
  Supervisor.make({
    name: "rate-buckets",
    build: (_key: "table", self) =>
      Effect.gen(function* () {
        const table = new RateBucketTable({ ...options, isShared: lease !== undefined })
        const sweep = Effect.sync(() => table.sweep(now()))
        yield* self.fork(Effect.forever(Effect.delay(sweep, options.idleMillis)))
        if (lease !== undefined) {
          const probe = probeLease(table, lease, options.leaseTimeoutMillis)
          yield* self.fork(Effect.forever(Effect.delay(probe, options.probeMillis)))
        }
        return { state: table, handlers: {} }
      })
  })

const probeLease = (table: RateBucketTable, lease: Lease, timeoutMillis: number): Effect.Effect<void> =>
  Effect.suspend(() => {
    if (table.sharing !== "away") return Effect.void
    return Effect.matchEffect(Effect.timeout(lease.ping, timeoutMillis), {
      onFailure: () => Effect.void,
      onSuccess: () => {
        table.leaseIsBack()
        return Effect.logInfo("Rate limits are shared between machines again")
      }
    })
  })

const superviseLeases = (
  options: RateOptions,
  lease: Lease,
  table: Effect.Effect<RateBucketTable, ActorUnavailable>,
  now: () => number
) => {
  const fetch = (ask: RateAsk): Effect.Effect<void, ActorUnavailable> =>
    Effect.flatMap(table, (rows) => {
      // An earlier caller in line may have fetched enough for all.
      const wanted = rows.leaseWanted(ask, now())
      if (wanted === undefined) return Effect.void
      const sentAtMillis = now()
      const grant = lease.acquire(ask.keyId, wanted, options.leaseMillis)
      return Effect.matchEffect(Effect.timeout(grant, options.leaseTimeoutMillis), {
        onSuccess: (granted) => Effect.sync(() => rows.granted(ask, granted, sentAtMillis)),
        onFailure: (failure) => leaseFailed(rows, failure)
      })
    })
  return Supervisor.make({
    name: "rate-lease",
    maxIdleMillis: options.idleMillis,
    mailboxCapacity: options.leaseWaiting,
    maxResidentActors: options.leaseKeys,
    build: (_keyId: string) => Effect.succeed({ state: {}, handlers: { fetch } })
  })
}

/** for the moment in which a crashed table is rebuilt */
const noStats = { buckets: 0, refused: 0, forgotten: 0, leaseFailures: 0 }

const samples = (stats: () => RateStats): ReadonlyArray<SampledMetrics.Sample> => [
  ["signalbox_rate_buckets", "Rate buckets and windows in memory", () => stats().buckets],
  [
    "signalbox_rate_away",
    "1 while rate limits hold per machine because Redis is away",
    () => (stats().sharing === "away" ? 1 : 0)
  ],
  ["signalbox_rate_refused_total", "Requests over their rate", () => stats().refused],
  [
    "signalbox_rate_forgotten_total",
    "Rate buckets and windows dropped for want of room",
    () => stats().forgotten
  ],
  [
    "signalbox_rate_lease_failures_total",
    "Leases that Redis did not give in time",
    () => stats().leaseFailures
  ]
]
