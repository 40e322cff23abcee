import { Effect, Exit, Predicate } from "effect"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import { ServiceUnavailable } from "#schemas/core/Problem.ts"
import { abandonedAfter } from "#streams/kernel/AbandonedAfter.ts"

/** A statement that takes longer means a Postgres that hangs: the caller gets an error instead of waiting. */
const statementTimeoutMillis = 5_000

const text = "The database is away; nothing was changed, try again later"
const fullText =
  "The database has no room: its disk is full; nothing was changed, try again when there is room"

/** disk_full of PostgreSQL, Appendix A */
const diskFull = "53100"

const isFull = ({ reason: { cause } }: SqlError): boolean =>
  Predicate.hasProperty(cause, "code") && cause.code === diskFull

/** A line in the log at most this often: a disk that is full may hold the log, too. */
const fullLineEveryMillis = 10_000
let saidFullAt = -Infinity

const sayFull = Effect.suspend(() => {
  const now = performance.now()
  if (now - saidFullAt < fullLineEveryMillis) return Effect.void
  saidFullAt = now
  return Effect.logError("PostgreSQL refuses changes: its disk is full")
})

/** Classes 57P (starting, shutting down) and 53 (out of connections, memory or disk) of PostgreSQL, Appendix A. */
const isBusy = (cause: unknown): boolean =>
  Predicate.hasProperty(cause, "code") && Predicate.isString(cause.code) && /^(57P|53)/.test(cause.code)

export const isAway = (error: SqlError): boolean =>
  error.isRetryable || error.reason._tag === "AuthenticationError" || isBusy(error.reason.cause)

/**
 * Turns a Postgres that is away (no connection, starting, shutting down) into 503; any other SQL error is this server's
 * own fault. A statement that may take long, such as a recount of the ledger, is waited for.
 */
export const storeAwayUntimed = <A, E, R>(
  self: Effect.Effect<A, E | SqlError, R>
): Effect.Effect<A, Exclude<E, SqlError> | ServiceUnavailable, R> =>
  Effect.catch(self, (error): Effect.Effect<never, Exclude<E, SqlError> | ServiceUnavailable> => {
    if (!isSqlError(error)) return Effect.fail(error as Exclude<E, SqlError>)
    if (isFull(error)) return Effect.andThen(sayFull, Effect.fail(ServiceUnavailable.of(fullText)))
    return isAway(error) ? Effect.fail(ServiceUnavailable.of(text)) : Effect.die(error)
  })

/** The same for a statement of ordinary length: a Postgres that hangs is away, too. An answer from memory needs no clock. */
export const storeAway = <A, E, R>(
  self: Effect.Effect<A, E | SqlError, R>
): Effect.Effect<A, Exclude<E, SqlError> | ServiceUnavailable, R> =>
  isThere(self)
    ? storeAwayUntimed(self)
    : Effect.timeoutOrElse(storeAwayUntimed(self), {
        duration: statementTimeoutMillis,
        orElse: () => Effect.fail(ServiceUnavailable.of(text))
      })

/**
 * The same for a transaction, which is given up without waiting for its end: on a connection that hangs, taking it back
 * hangs, too. It may be carried out all the same, later.
 */
export const storeAwayAbandoned = <A, E, R>(
  transaction: Effect.Effect<A, E | SqlError, R>,
  millis = statementTimeoutMillis
): Effect.Effect<A, Exclude<E, SqlError> | ServiceUnavailable, R> =>
  Effect.catchTag(abandonedAfter(storeAwayUntimed(transaction), millis), "TimeoutError", () =>
    Effect.fail(ServiceUnavailable.of(text))
  ) as Effect.Effect<A, Exclude<E, SqlError> | ServiceUnavailable, R>

const isThere = (self: unknown): boolean => Exit.isExit(self)
