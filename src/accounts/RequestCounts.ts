import { Clock, Context, Effect, Layer, Semaphore } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { LogQuarantine } from "#streams/kernel/LogQuarantine.ts"
import { AppConfig } from "#src/Config.ts"
import { sinkFailureOf } from "#src/infra/postgres/SinkFailure.ts"
import { AsideCounts } from "./AsideCounts.ts"
import { type Count, isoDay, writeCounts, writeTakenCounts } from "./CountWrites.ts"

/** A user's requests, by UTC calendar. Errors are answers with a status of 400 or more. */
export interface RequestFigures {
  readonly today: number
  /** ISO week, from Monday */
  readonly week: number
  readonly month: number
  readonly errorsThisMonth: number
}

/**
 * Counts the requests of each user's keys per UTC day. Counted in memory and added to Postgres every
 * `requestCountFlushMillis`: a crash loses that much. While Postgres is away the counts wait; there is one entry a user
 * and day.
 */
export class RequestCounts extends Context.Service<
  RequestCounts,
  {
    readonly record: (userId: string, isError: boolean, nowMillis: number) => void
    readonly ofUser: (userId: string) => Effect.Effect<RequestFigures, SqlError>
    /** counts that Postgres refuses even alone */
    readonly quarantine: LogQuarantine
  }
>()("signalbox/accounts/RequestCounts") {
  static readonly layer = Layer.effect(
    RequestCounts,
    Effect.suspend(() => make)
  )
}

const dayMillis = 86_400_000

type Counts = Map<string, Count>

const add = (counts: Counts, { day, errors, requests, userId }: Count): void => {
  const key = `${userId} ${day}`
  const known = counts.get(key)
  if (known === undefined) counts.set(key, { userId, day, requests, errors })
  else {
    known.requests += requests
    known.errors += errors
  }
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const { limits } = yield* AppConfig
  // One at a time: a reader must not miss counts that another flush has taken and not yet written.
  const oneAtATime = yield* Semaphore.make(1)
  let waiting: Counts = new Map()

  const aside = new AsideCounts<Count>((count) => Effect.mapError(writeCounts(sql, [count]), sinkFailureOf))

  const flush = Effect.gen(function* () {
    if (waiting.size === 0) return
    const counts = waiting
    waiting = new Map()
    const refused = yield* writeTakenCounts(sql, [...counts.values()]).pipe(
      Effect.onError(() => Effect.sync(() => counts.forEach((count) => add(waiting, count))))
    )
    for (const { count, problem } of refused) yield* aside.add(count, problem)
  }).pipe(oneAtATime.withPermits(1))
  let isSaid = false
  // Counts that could not be written wait for the next round.
  const flushOrWait = Effect.matchEffect(flush, {
    onSuccess: () => {
      if (!isSaid) return Effect.void
      isSaid = false
      return Effect.logInfo("request counts are written again")
    },
    onFailure: (error) => {
      if (isSaid) return Effect.void
      isSaid = true
      return Effect.logWarning("request counts wait in memory", error)
    }
  })
  yield* Effect.addFinalizer(() => flushOrWait)
  yield* Effect.forkScoped(
    Effect.forever(Effect.andThen(Effect.sleep(limits.requestCountFlushMillis), flushOrWait))
  )

  return RequestCounts.of({
    quarantine: aside.quarantine,
    record: (userId, isError, nowMillis) =>
      add(waiting, { userId, day: Math.floor(nowMillis / dayMillis), requests: 1, errors: isError ? 1 : 0 }),
    ofUser: (userId) =>
      Effect.gen(function* () {
        yield* flush
        const today = isoDay(Math.floor((yield* Clock.currentTimeMillis) / dayMillis))
        const rows = yield* sql<RequestFigures>`
          SELECT coalesce(sum(requests) FILTER (WHERE day = ${today}::date), 0)::float8 AS today,
                 coalesce(sum(requests) FILTER (WHERE day >= date_trunc('week', ${today}::date)), 0)::float8 AS week,
                 coalesce(sum(requests) FILTER (WHERE day >= date_trunc('month', ${today}::date)), 0)::float8 AS month,
                 coalesce(sum(errors) FILTER (WHERE day >= date_trunc('month', ${today}::date)), 0)::float8
                   AS "errorsThisMonth"
          FROM request_counts WHERE user_id = ${userId} AND day >= ${today}::date - 40`
        return rows[0] ?? { today: 0, week: 0, month: 0, errorsThisMonth: 0 }
      })
  })
})
