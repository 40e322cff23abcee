import { Schema } from "effect"

/**
 * The form of identifiers: a prefix that names the kind, then 128 random bits as 22 base62 digits. Patterns here and
 * elsewhere have the flag `u`, as JSON Schema means them: others are left out of the published document.
 */
export const idSchema = (prefix: string, noun: string) => {
  const pattern = new RegExp(`^${prefix}_[0-9A-Za-z]{22}$`, "u")
  return Schema.String.check(
    Schema.isPattern(pattern, { expected: `the id of a ${noun} (${prefix}_ and 22 letters or digits)` })
  ).annotate({ description: `Id of a ${noun}` })
}

export const UserId = idSchema("usr", "user")
export const KeyId = idSchema("key", "key")
export const FileId = idSchema("fil", "file")
export const SiteId = idSchema("st", "site")
export const CollectionId = idSchema("col", "collection")
export const PlanId = idSchema("pln", "plan")
export const SubscriptionId = idSchema("sub", "subscription")
export const TopUpId = idSchema("top", "top-up")
export const SessionId = idSchema("ses", "agent session")

export const pathIdExpected = "an id of at most 64 characters"

/** Text that is accepted as an id in a path; without the form of an id it is simply not found. */
export const PathId = Schema.String.check(
  Schema.isMaxLength(64, { expected: pathIdExpected }),
  // oxlint-disable-next-line no-control-regex
  Schema.isPattern(/^[^\u0000-\u001f\u007f]*$/u, { expected: pathIdExpected })
).annotate({ description: "Id, as returned when the resource was made" })
