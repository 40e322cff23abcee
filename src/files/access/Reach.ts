import { Effect } from "effect"
import type { Principal } from "#schemas/core/Authorization.ts"
import { covers, type Scope } from "#schemas/core/Credential.ts"
import { Forbidden, NotFound } from "#schemas/core/Problem.ts"

/** Names of buckets, or all of them. */
export type Buckets = "all" | ReadonlySet<string>

/**
 * The buckets of its owner that a credential reaches, by its scopes. What is asked for by a name outside of them is 403
 * whether or not it exists; by an id, 404. Source: contract/files#access.
 */
export interface Reach {
  readonly isFull: boolean
  readonly readable: Buckets
  readonly writable: Buckets
  readonly mayRead: (bucketName: string) => boolean
  readonly mayWrite: (bucketName: string) => boolean
}

const bucketsOf = (scopes: ReadonlyArray<string>, verb: "read" | "write"): Buckets =>
  covers(scopes, verb)
    ? "all"
    : new Set(
        scopes.filter((scope) => scope.startsWith(`${verb}:`)).map((scope) => scope.slice(verb.length + 1))
      )

/** By the list of scopes, which is that of the key's row: every request asks. */
const known = new WeakMap<ReadonlyArray<string>, Reach>()

export const reachOf = ({ scopes }: Pick<Principal, "scopes">): Reach => {
  const reach = known.get(scopes) ?? reachBy(scopes)
  known.set(scopes, reach)
  return reach
}

const reachBy = (scopes: Principal["scopes"]): Reach => {
  const readable = bucketsOf(scopes, "read")
  const writable = bucketsOf(scopes, "write")
  return {
    isFull: covers(scopes, "full"),
    readable,
    writable,
    mayRead: (bucketName) => readable === "all" || readable.has(bucketName),
    mayWrite: (bucketName) => writable === "all" || writable.has(bucketName)
  }
}

const unless = (isReached: boolean, scope: Scope): Effect.Effect<void, Forbidden> =>
  isReached ? Effect.void : Effect.fail(Forbidden.of(`This takes the scope ${scope}`))

/** 403, before it is known whether there is such a bucket. */
export const readsNamed = (reach: Reach, bucketName: string): Effect.Effect<void, Forbidden> =>
  unless(reach.mayRead(bucketName), `read:${bucketName}`)

/** 403, before it is known whether there is such a bucket. */
export const writesNamed = (reach: Reach, bucketName: string): Effect.Effect<void, Forbidden> =>
  unless(reach.mayWrite(bucketName), `write:${bucketName}`)

/** A file or directory that was found by its id. */
interface Found {
  readonly bucketName: string
}

/** 404 with the text of an id that is not there. */
export const readsFound = <F extends Found>(
  reach: Reach,
  found: F,
  missing: string
): Effect.Effect<F, NotFound> =>
  reach.mayRead(found.bucketName) ? Effect.succeed(found) : Effect.fail(NotFound.of(missing))

/** 404 with the text of an id that is not there. */
export const writesFound = <F extends Found>(
  reach: Reach,
  found: F,
  missing: string
): Effect.Effect<F, NotFound> =>
  reach.mayWrite(found.bucketName) ? Effect.succeed(found) : Effect.fail(NotFound.of(missing))
