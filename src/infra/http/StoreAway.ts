import { Effect, Predicate } from "effect"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import { NestedServiceUnavailable } from "#schemas/core/NestedProblem.ts"
import { ServiceUnavailable } from "#schemas/core/Problem.ts"

/** A statement that takes longer means a Postgres that hangs: the caller is told rather than kept. */
const statementTimeoutMillis = 5_000

const text = "The database is away; nothing was changed, try again later"

/** Classes 57P (starting, shutting down) and 53 (out of connections, memory or disk) of PostgreSQL, Appendix A. */
const isBusy = (cause: unknown): boolean =>
  Predicate.hasProperty(cause, "code") && Predicate.isString(cause.code) && /^(57P|53)/.test(cause.code)

export const isAway = (error: SqlError): boolean =>
  error.isRetryable || error.reason._tag === "AuthenticationError" || isBusy(error.reason.cause)

const classified =
  <B>(away: () => B) =>
  <A, E, R>(self: Effect.Effect<A, E | SqlError, R>): Effect.Effect<A, Exclude<E, SqlError> | B, R> =>
    Effect.catch(self, (error): Effect.Effect<never, Exclude<E, SqlError> | B> => {
      if (!isSqlError(error)) return Effect.fail(error as Exclude<E, SqlError>)
      return isAway(error) ? Effect.fail(away()) : Effect.die(error)
    })

const answering =
  <B>(away: () => B) =>
  <A, E, R>(self: Effect.Effect<A, E | SqlError, R>): Effect.Effect<A, Exclude<E, SqlError> | B, R> =>
    Effect.timeoutOrElse(classified(away)(self), {
      duration: statementTimeoutMillis,
      orElse: () => Effect.fail(away())
    })

const flatAway = () => new ServiceUnavailable({ error: text })

/**
 * Turns a Postgres that is away (no connection, starting, shutting down, hanging) into 503; any other SQL error is this
 * server's own fault.
 */
export const storeAway = answering(flatAway)

/** The same for what may take long beside Postgres, such as an upload: it waits. */
export const storeAwayUntimed = classified(flatAway)

/** `storeAway` of the nested family. */
export const nestedStoreAway = answering(() => NestedServiceUnavailable.of(text))
