import { Clock, Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { RateLimited } from "#schemas/core/Problem.ts"
import { AppConfig } from "#src/Config.ts"
import { deliveries } from "../delivery/Deliveries.ts"

/** They wait for services which are away: a second would change nothing. */
const retrySeconds = 60

interface Count {
  waiting: number
  readonly atMillis: number
}

/**
 * How many deliveries of an owner wait, as far as a limit needs it: while all owners together are within the limit that
 * number will do, which an index has. Counts are a limit's age old at most, and know what this process has added.
 */
export const make = Effect.gen(function* () {
  const { limits } = yield* AppConfig
  const sql = yield* SqlClient
  const clock = yield* Clock.Clock
  let all: Count | undefined
  /** begun anew with each count of all */
  const owners = new Map<string, Count>()

  const isRecent = (count: Count | undefined): count is Count =>
    count !== undefined && clock.currentTimeMillisUnsafe() - count.atMillis < limits.deliveriesCountedMillis
  const counted = (rows: ReadonlyArray<{ readonly waiting: number }>): Count => ({
    waiting: rows[0]?.waiting ?? 0,
    atMillis: clock.currentTimeMillisUnsafe()
  })

  const ofAll = Effect.gen(function* () {
    if (isRecent(all)) return all.waiting
    owners.clear()
    all = counted(
      yield* sql<{ waiting: number }>`SELECT coalesce(sum(waiting), 0)::float8 AS waiting FROM job_lanes
        WHERE queue = ${deliveries.name} AND due_at < 'infinity'`
    )
    return all.waiting
  })
  const ofOwner = Effect.fnUntraced(function* (owner: string) {
    const known = owners.get(owner)
    if (isRecent(known)) return known.waiting
    const count = counted(
      yield* sql<{ waiting: number }>`SELECT count(*)::float8 AS waiting FROM jobs
        WHERE queue = ${deliveries.name} AND payload ->> 'owner' = ${owner}`
    )
    owners.set(owner, count)
    return count.waiting
  })

  return {
    /** 429 for an owner who has more of them than one may have */
    refuseOver: Effect.fnUntraced(function* (owner: string) {
      const { deliveriesWaiting: most } = limits
      if ((yield* ofAll) <= most || (yield* ofOwner(owner)) <= most) return
      return yield* RateLimited.of(`More than ${most} deliveries of this account are waiting`, {
        retryAfterSeconds: retrySeconds
      })
    }),
    /** so many more were accepted */
    add: (owner: string, count: number): void => {
      if (all !== undefined) all.waiting += count
      const own = owners.get(owner)
      if (own !== undefined) own.waiting += count
    }
  }
})
