import { Effect, Semaphore } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { RateLimited } from "#schemas/core/Problem.ts"
import { AppConfig } from "#src/Config.ts"
import { deliveries } from "../delivery/Deliveries.ts"
import { HeldDeliveries } from "../digests/HeldDeliveries.ts"

/** They wait for services which are away: a second would change nothing. */
const retrySeconds = 60

/** Owners are counted again after so many times as long as it took. */
const countRest = 20

/** So long after that, sends go by the last count while the next one is made: it may take seconds. */
const staleMillis = retrySeconds * 1_000

/** Deliveries that owners have waiting, of all processes, as the last scan found them, and those that this process has added since. */
const makeOwners = Effect.gen(function* () {
  const { limits } = yield* AppConfig
  const sql = yield* SqlClient
  const scope = yield* Effect.scope
  const oneAtATime = (yield* Semaphore.make(1)).withPermits(1)
  let counted: ReadonlyMap<string, number> = new Map()
  /** by the monotonic clock, until when it holds */
  let until = -Infinity
  /** accepted here since, up to the scan that is under way … */
  let addedBefore = new Map<string, number>()
  /** … and since that began */
  let added = new Map<string, number>()
  let isScanning = false
  const add = (owner: string, count: number): void => void added.set(owner, (added.get(owner) ?? 0) + count)

  const scan = Effect.gen(function* () {
    const began = performance.now()
    if (began < until) return
    ;[addedBefore, added] = [added, new Map()]
    const rows = yield* sql<{
      owner: string
      waiting: number
    }>`SELECT o.owner, sum(o.waiting)::float8 AS waiting FROM (
        SELECT payload ->> 'owner' AS owner, count(*) AS waiting FROM jobs WHERE queue = ${deliveries.name} GROUP BY 1
        UNION ALL
        SELECT m.user_id, count(*) FROM deliveries d JOIN messages m ON m.id = d.message_id
        WHERE d.held_until IS NOT NULL GROUP BY 1) AS o
      GROUP BY 1`
    counted = new Map(rows.map(({ owner, waiting }) => [owner, waiting]))
    addedBefore.clear()
    const now = performance.now()
    until = now + Math.max(limits.deliveriesCountedMillis, countRest * (now - began))
  }).pipe(
    Effect.ensuring(
      Effect.sync(() => {
        // Where the scan failed.
        for (const [owner, count] of addedBefore) add(owner, count)
        addedBefore.clear()
      })
    ),
    oneAtATime
  )
  const scanBehind = scan.pipe(
    Effect.catch((error) => Effect.logDebug("what owners have waiting was not counted", error)),
    Effect.ensuring(Effect.sync(() => (isScanning = false)))
  )
  return {
    add,
    of: (owner: string): number =>
      [counted, addedBefore, added].reduce((sum, some) => sum + (some.get(owner) ?? 0), 0),
    /** Waits for a scan where the last one is too old. */
    refreshed: Effect.suspend(() => {
      const now = performance.now()
      if (now < until || (isScanning && now < until + staleMillis)) return Effect.void
      if (now >= until + staleMillis) return scan
      isScanning = true
      return Effect.asVoid(Effect.forkIn(scanBehind, scope))
    })
  }
})

/**
 * How many deliveries of an owner wait, as far as a limit needs it: while all owners together are within the limit that
 * number will do, which an index has, with those that are held, as they were counted lately. Beyond it the jobs and held
 * deliveries of all owners are counted by one scan, one at a time, for which those sends alone wait that have no recent one.
 */
export const make = Effect.gen(function* () {
  const { limits } = yield* AppConfig
  const sql = yield* SqlClient
  const held = yield* HeldDeliveries
  const owners = yield* makeOwners
  let all = 0
  /** by the monotonic clock, until when that holds */
  let allUntil = -Infinity

  const countAll = Effect.gen(function* () {
    if (performance.now() < allUntil) return
    const [row] = yield* sql<{
      waiting: number
    }>`SELECT coalesce(sum(waiting), 0)::float8 AS waiting FROM job_lanes
      WHERE queue = ${deliveries.name} AND due_at < 'infinity'`
    all = (row?.waiting ?? 0) + held.count()
    allUntil = performance.now() + limits.deliveriesCountedMillis
  }).pipe((yield* Semaphore.make(1)).withPermits(1))

  return {
    /** 429 for an owner who has more of them than one may have */
    refuseOver: Effect.fnUntraced(function* (owner: string) {
      const { deliveriesWaiting: most } = limits
      yield* countAll
      if (all <= most) return
      yield* owners.refreshed
      if (owners.of(owner) <= most) return
      return yield* RateLimited.of(`More than ${most} deliveries of this account are waiting`, {
        retryAfterSeconds: retrySeconds
      })
    }),
    /** so many more were accepted */
    add: (owner: string, count: number): void => {
      all += count
      owners.add(owner, count)
    }
  }
})
