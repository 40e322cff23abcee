import { Effect, Semaphore } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { RateLimited } from "#schemas/core/Problem.ts"
import { AppConfig } from "#src/Config.ts"
import { deliveries } from "../delivery/Deliveries.ts"

/** They wait for services which are away: a second would change nothing. */
const retrySeconds = 60

/** Owners are counted again after so many times as long as it took. */
const countRest = 20

/**
 * How many deliveries of an owner wait, as far as a limit needs it: while all owners together are within the limit that
 * number will do, which an index has. Beyond it the jobs of all owners are counted by one scan, and what this process
 * adds meanwhile is known. One count is under way at a time, and serves all who wait for it.
 */
export const make = Effect.gen(function* () {
  const { limits } = yield* AppConfig
  const sql = yield* SqlClient
  const oneAtATime = (yield* Semaphore.make(1)).withPermits(1)
  let all = 0
  let owners: ReadonlyMap<string, number> = new Map()
  /** by the monotonic clock, until when these hold */
  let allUntil = -Infinity
  let ownersUntil = -Infinity
  /** accepted here since the owners were counted */
  const added = new Map<string, number>()

  const countAll = Effect.gen(function* () {
    if (performance.now() < allUntil) return
    const [row] = yield* sql<{
      waiting: number
    }>`SELECT coalesce(sum(waiting), 0)::float8 AS waiting FROM job_lanes
      WHERE queue = ${deliveries.name} AND due_at < 'infinity'`
    all = row?.waiting ?? 0
    allUntil = performance.now() + limits.deliveriesCountedMillis
  }).pipe(oneAtATime)
  const countOwners = Effect.gen(function* () {
    const began = performance.now()
    if (began < ownersUntil) return
    added.clear()
    const rows = yield* sql<{
      owner: string
      waiting: number
    }>`SELECT payload ->> 'owner' AS owner, count(*)::float8 AS waiting FROM jobs
      WHERE queue = ${deliveries.name} GROUP BY 1`
    owners = new Map(rows.map(({ owner, waiting }) => [owner, waiting]))
    const now = performance.now()
    ownersUntil = now + Math.max(limits.deliveriesCountedMillis, countRest * (now - began))
  }).pipe(oneAtATime)

  return {
    /** 429 for an owner who has more of them than one may have */
    refuseOver: Effect.fnUntraced(function* (owner: string) {
      const { deliveriesWaiting: most } = limits
      yield* countAll
      if (all <= most) return
      yield* countOwners
      if ((owners.get(owner) ?? 0) + (added.get(owner) ?? 0) <= most) return
      return yield* RateLimited.of(`More than ${most} deliveries of this account are waiting`, {
        retryAfterSeconds: retrySeconds
      })
    }),
    /** so many more were accepted */
    add: (owner: string, count: number): void => {
      all += count
      added.set(owner, (added.get(owner) ?? 0) + count)
    }
  }
})
