import { Effect } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import { Conflict, NotFound, PreconditionFailed } from "#schemas/core/Problem.ts"
import { inUserTurn } from "#src/infra/postgres/UserTurns.ts"
import type { Reach } from "../access/Reach.ts"
import { nameTaken } from "./FreeNames.ts"
import { type Directory, directoryNotFound, Tree } from "./Tree.ts"

/** The user whose tree it is, and the buckets that the credential reaches. */
export interface Caller {
  readonly userId: string
  readonly reach: Reach
}

export const movedMeanwhile = Conflict.of("It was moved meanwhile; try again", { code: "moved" })

/** Locks buckets alone until the transaction ends, in the order of their locks. */
const lockAlone = (sql: SqlClient, buckets: ReadonlyArray<string>) =>
  sql`SELECT file_lock(bucket, true) FROM (SELECT DISTINCT ON (hashtext(b)) b AS bucket
    FROM unnest(${buckets}::text[]) AS b ORDER BY hashtext(b)) AS ordered`

/**
 * A change of things that stay where they are until it is over: `look` finds them, before and behind the lock of their buckets.
 * In a transaction of its own, in the user's turn.
 */
export const holdingAlone = <A, E, B, E2, R>(
  sql: SqlClient,
  userId: string,
  look: Effect.Effect<A, E>,
  bucketsOf: (found: A) => ReadonlyArray<string>,
  change: (found: A) => Effect.Effect<B, E2, R>
): Effect.Effect<B, E | E2 | Conflict | SqlError, R> =>
  Effect.gen(function* () {
    const buckets = bucketsOf(yield* look)
    yield* lockAlone(sql, buckets)
    const found = yield* look
    const isSame = bucketsOf(found).every((bucket) => buckets.includes(bucket))
    return yield* isSame ? change(found) : movedMeanwhile
  }).pipe(
    sql.withTransaction,
    // Nothing is held of the root, where another one may have taken the name.
    Effect.mapError((error) =>
      isSqlError(error) && error.reason._tag === "UniqueViolation" ? nameTaken : error
    ),
    Effect.retry({ times: 5, while: (error) => error === movedMeanwhile }),
    inUserTurn(sql, userId)
  )

/** A directory that lists show; in a bucket that the caller may write to, where that is asked. */
export const directoryFor = Effect.map(Tree, (tree) =>
  Effect.fnUntraced(function* (
    { reach, userId }: Caller,
    id: string,
    to: "read" | "write",
    missing: NotFound = directoryNotFound
  ) {
    const found = yield* Effect.catchTag(tree.directory(userId, id), "NotFound", () => Effect.fail(missing))
    const isReached = to === "read" ? reach.mayRead(found.bucketName) : reach.mayWrite(found.bucketName)
    return isReached && found.kind !== "device" ? found : yield* missing
  })
)

export const etagOfDirectory = ({ changed }: Directory): string => `"${changed}"`

export const etagOfFile = ({ sha256 }: { readonly sha256: string }): string => `"${sha256}"`

/** Fails where `If-Match` names other tags than this one, strongly compared. Source: RFC 9110, 13.1.1. */
export const checkIfMatch = (
  header: string | undefined,
  etag: string
): Effect.Effect<void, PreconditionFailed> =>
  header === undefined || header.trim() === "*" || header.split(",").some((tag) => tag.trim() === etag)
    ? Effect.void
    : Effect.fail(PreconditionFailed.of(`If-Match: the ETag is ${etag}`, { param: "If-Match" }))
