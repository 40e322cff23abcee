import { Effect, Predicate } from "effect"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import { NestedServiceUnavailable } from "#schemas/core/NestedProblem.ts"
import { ServiceUnavailable } from "#schemas/core/Problem.ts"

/** A statement that takes longer means a Postgres that hangs: the caller is told rather than kept. */
const statementTimeoutMillis = 10_000

const text = "The database is away; nothing was changed, try again later"

/** Classes 57P (starting, shutting down) and 53 (out of connections, memory or disk) of PostgreSQL, Appendix A. */
const isBusy = (cause: unknown): boolean =>
  Predicate.hasProperty(cause, "code") && Predicate.isString(cause.code) && /^(57P|53)/.test(cause.code)

const isAway = (error: SqlError): boolean =>
  error.isRetryable || error.reason._tag === "AuthenticationError" || isBusy(error.reason.cause)

/**
 * Turns a Postgres that is away (no connection, starting, shutting down, hanging) into `away`; any other SQL error is
 * this server's own fault.
 */
const answering =
  <B>(away: () => B) =>
  <A, E, R>(self: Effect.Effect<A, E | SqlError, R>): Effect.Effect<A, Exclude<E, SqlError> | B, R> =>
    self.pipe(
      Effect.timeoutOrElse({ duration: statementTimeoutMillis, orElse: () => Effect.fail(away()) }),
      Effect.catch((error): Effect.Effect<never, Exclude<E, SqlError> | B> => {
        if (!isSqlError(error)) return Effect.fail(error as Exclude<E, SqlError> | B)
        return isAway(error) ? Effect.fail(away()) : Effect.die(error)
      })
    )

export const storeAway = answering(() => new ServiceUnavailable({ error: text }))

export const nestedStoreAway = answering(() => NestedServiceUnavailable.of(text))
