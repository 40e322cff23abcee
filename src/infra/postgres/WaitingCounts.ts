import { Effect, type Scope, Semaphore } from "effect"
import { ConnectionError, SqlError } from "effect/sql/SqlError"
import { abandonedAfter } from "#streams/kernel/AbandonedAfter.ts"

interface WaitingCountsOptions<Count> {
  /** the beginning of its lines in the log, such as "request counts" */
  readonly title: string
  readonly everyMillis: number
  /** Of two counts of one key, their sum; it may be `known`, changed. */
  readonly sum: (known: Count, more: Count) => Count
  /** Adds them to the table, all or none. */
  readonly write: (counts: ReadonlyMap<string, Count>) => Effect.Effect<void, SqlError>
}

export interface WaitingCounts<Count> {
  readonly add: (key: string, count: Count) => void
  /** Writes what waits. A reader that comes while counts are on their way waits for them: else they would be in neither place. */
  readonly flush: Effect.Effect<void, SqlError>
}

/** A connection that hangs must not keep all later counts. */
const writeMillis = 10_000

/**
 * Counts that are gathered in memory and added to Postgres every so often: a crash loses that much. While Postgres is away
 * they wait, one entry a key. A write whose outcome is unknown is repeated, and may count twice.
 */
export const make = Effect.fnUntraced(function* <Count>({
  everyMillis,
  sum,
  title,
  write
}: WaitingCountsOptions<Count>): Effect.fn.Return<WaitingCounts<Count>, never, Scope.Scope> {
  const oneAtATime = yield* Semaphore.make(1)
  let waiting = new Map<string, Count>()
  let isSaid = false

  const add = (key: string, count: Count): void => {
    const known = waiting.get(key)
    waiting.set(key, known === undefined ? count : sum(known, count))
  }
  const flush = Effect.suspend(() => {
    if (waiting.size === 0) return Effect.void
    const counts = waiting
    waiting = new Map()
    const putBack = Effect.sync(() => counts.forEach((count, key) => add(key, count)))
    return abandonedAfter(write(counts), writeMillis).pipe(
      Effect.catchTag("TimeoutError", (cause) =>
        Effect.fail(new SqlError({ reason: new ConnectionError({ cause }) }))
      ),
      Effect.onError(() => putBack)
    )
  }).pipe(oneAtATime.withPermits(1))
  const flushOrWait = Effect.matchEffect(flush, {
    onSuccess: () => {
      if (!isSaid) return Effect.void
      isSaid = false
      return Effect.logInfo(`${title} are written again`)
    },
    onFailure: (error) => {
      if (isSaid) return Effect.void
      isSaid = true
      return Effect.logWarning(`${title} wait in memory`, error)
    }
  })
  yield* Effect.addFinalizer(() => flushOrWait)
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(everyMillis), flushOrWait)))
  return { add, flush }
})
