import { Context } from "effect"
import { Metered, type Metering, NeedsScope, OpenToCookies, unmetered } from "../core/Authorization.ts"
import type { Scope } from "../core/Credential.ts"

/** The requests of a key in an hour. Its own rate takes the place of it, and sessions have the common one. */
export const filesRequests: Metering = {
  meter: {
    name: "Files requests",
    per: "credential",
    shape: "window",
    limit: 1_000,
    seconds: 3_600,
    setting: "filesRatePerHour",
    yieldsToOwnRate: true,
    refusal: (limit) => `Rate limit exceeded (${limit} requests per hour)`
  },
  cost: 1
}

const openTo = (scope: Scope, metering: Metering): Context.Context<never> =>
  Context.mergeAll(
    Context.make(NeedsScope, scope),
    Context.make(OpenToCookies, true),
    Context.make(Metered, metering)
  )

/**
 * Annotations of this room's groups and endpoints (`annotateMerge`): open to keys of a scope, or of a bucket in it, and to
 * sessions; the handler asks `reachOf` which buckets. Source: contract/files#access.
 */
export const readAccess = openTo("read:*", filesRequests)
export const writeAccess = openTo("write:*", filesRequests)
export const fullAccess = openTo("full", filesRequests)

/** Likewise for the parts of an upload, which the hour does not count. */
export const partAccess = openTo("write:*", unmetered)
