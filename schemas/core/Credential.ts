import { Schema } from "effect"

/** Keys of accounts, routers and projects, the secret of a site, and the session of a person in a browser. */
export type CredentialKind = "account" | "router" | "project" | "site" | "session"

/** The kinds that endpoints of the pipeline let in. */
export const PrincipalKind = Schema.Literals(["account", "router", "project", "session"])

/** The part of its owner's rights that a credential has. Source: contract/accounts#scopes. */
export type Scope = "full" | "read" | "write" | "replicate" | `read:${string}` | `write:${string}`

const scopePattern = /^(?:full|replicate|(?:read|write)(?::[a-zA-Z0-9._-]{1,100})?)$/u

const scopeExpected = "full, read, write, read:<bucket>, write:<bucket> or replicate"

/** At least one, at most 100, as a request gives them. */
export const Scopes = Schema.Array(
  Schema.String.check(Schema.isPattern(scopePattern, { expected: scopeExpected }))
)
  .check(
    Schema.isMinLength(1, { expected: "at least one scope" }),
    Schema.isMaxLength(100, { expected: "at most 100 scopes" })
  )
  .annotate({
    description: `They add up: ${scopeExpected}. Without \`full\` a key opens what names its scope, and GET of health, stats and users.`
  })

/** A proof of rights that a caller shows, whatever its kind. */
export interface Credential {
  readonly kind: CredentialKind
  readonly id: string
  /** the user whose rights it has */
  readonly ownerId: string
  /** They add up. Keys of routers and projects and a site's secret have none: their kind says what they open. */
  readonly scopes: ReadonlyArray<string>
  /** null: never by itself */
  readonly expiresAt: Date | null
}

/**
 * Whether one of the scopes gives what is needed: `full` gives everything, `read` every `read:<bucket>`. `read:*` is
 * `read`, or any `read:<bucket>`: no bucket has that name.
 */
export const covers = (scopes: ReadonlyArray<string>, needed: Scope): boolean =>
  scopes.some(
    (scope) =>
      scope === "full" ||
      scope === needed ||
      needed.startsWith(`${scope}:`) ||
      (needed.endsWith(":*") && scope.startsWith(needed.slice(0, -1)))
  )
