import { Context } from "effect"
import { HttpApiMiddleware, HttpApiSecurity, OpenApi } from "effect/http-api"
import type { Credential, PrincipalKind, Scope } from "./Credential.ts"
import { Forbidden, RateLimited, ServiceUnavailable, Unauthorized } from "./Problem.ts"

/** The caller: the credential of the request, and what is known of its owner and key. */
export interface Principal extends Credential {
  readonly kind: typeof PrincipalKind.Type
  /** the key whose limits and usage count; of a session that a login link opened, which has none, its own id */
  readonly keyId: string
  readonly keyName: string
  readonly role: "user" | "admin"
  /** ids that a router key is limited to; null: no limit */
  readonly models: ReadonlyArray<string> | null
  readonly collections: ReadonlyArray<string> | null
  /** the key's own rate, else null for the default one */
  readonly rateLimitPerMinute: number | null
  /** limits of the key's own at other meters, by the meter's name */
  readonly limits?: Readonly<Record<string, number>>
}

/** The principal of the request that is being served; provided by `Authorization`. */
export class CurrentKey extends Context.Service<CurrentKey, Principal>()("signalbox/core/CurrentKey") {}

/**
 * Annotation of a group or an endpoint: whether router keys may call it. They get 403 where it is not set.
 * Source: contract/http#credentials.
 */
export const OpenToRouterKeys = Context.Reference<boolean>("signalbox/core/OpenToRouterKeys", {
  defaultValue: () => false
})

/**
 * Annotation of a group or an endpoint: whether project keys may call it, beside account keys ("also") or alone ("only").
 * Keys of other kinds get 401 there, as project keys do everywhere else. Source: contract/notify#keys.
 */
export const OpenToProjectKeys = Context.Reference<"no" | "also" | "only">(
  "signalbox/core/OpenToProjectKeys",
  { defaultValue: () => "no" }
)

/**
 * Annotation of a group or an endpoint: the scope that a credential needs, which router keys do not have; "any": every
 * scope will do. Source: contract/accounts#scopes.
 */
export const NeedsScope = Context.Reference<Scope | "any">("signalbox/core/NeedsScope", {
  defaultValue: () => "full"
})

/**
 * Annotation of a group or an endpoint: the cookie of a session opens it, too, where no Authorization is sent. Elsewhere
 * the cookie counts for nothing. Source: contract/sessions#cookie.
 */
export const OpenToCookies = Context.Reference<boolean>("signalbox/core/OpenToCookies", {
  defaultValue: () => false
})

/** Annotation of a group or an endpoint of bytes: its answers of 400 and more have no body. Source: contract/files#bytes. */
export const BodilessErrors = Context.Reference<boolean>("signalbox/core/BodilessErrors", {
  defaultValue: () => false
})

/** Annotation of a group or an endpoint: keys of others than administrators get 403, before their body is looked at. */
export const AdministratorsOnly = Context.Reference<boolean>("signalbox/core/AdministratorsOnly", {
  defaultValue: () => false
})

/**
 * A limit on the requests of each subject. A bucket holds `limit`, and refills as much in `seconds`; a window begins with
 * the first request of an idle subject, and admits `limit` until `seconds` later.
 */
export interface Meter {
  /** its own: a plural that begins the text of a refusal, and part of its subjects' names in a shared store */
  readonly name: string
  readonly shape: "bucket" | "window"
  /** the subject: the key, its owner, or the client's address (of IPv6, the /64); of a request without a key, its address */
  readonly per: "credential" | "owner" | "address"
  /** null: the key's rate a minute, else the default one, and the burst of that rate */
  readonly limit: number | null
  /** 60 where `limit` is null */
  readonly seconds: number
  /** the number of `src/Limits.ts`, which the installation may have set, in the place of `limit` */
  readonly setting?: string
  /** It counts keys without a rate of their own alone; the others, and sessions, count at theirs. */
  readonly yieldsToOwnRate?: true
  /** the text of a refusal, where it is not the general one */
  readonly refusal?: (limit: number) => string
}

/** The meter of a request, and the part of its limit that the request takes. */
export interface Metering {
  readonly meter: Meter
  /** whole; more than the limit counts as the limit; 0: nothing is counted, and the answer tells no rate */
  readonly cost: number
}

/** One request of the key's own rate. */
export const requestOfKey: Metering = {
  meter: { name: "Requests", per: "credential", shape: "bucket", limit: null, seconds: 60 },
  cost: 1
}

/** Of endpoints that count against nothing. */
export const unmetered: Metering = { ...requestOfKey, cost: 0 }

/** Annotation of a group or an endpoint: the meter that counts in the place of the key's own rate. */
export const Metered = Context.Reference<Metering>("signalbox/core/Metered", {
  defaultValue: () => requestOfKey
})

const security = {
  apiKey: HttpApiSecurity.http({ scheme: "bearer" }).pipe(
    HttpApiSecurity.annotateMerge(
      OpenApi.annotations({
        description:
          "`Authorization: Bearer <API_KEY>`, the scheme in any case. An account key (`sk_`) does everything of its " +
          "owner; a router key (`sk_mr_`) calls the model, agent and account endpoints and gets 403 elsewhere; a project key " +
          "(`prj_`) sends notifications and gets 401 elsewhere."
      })
    )
  )
}

/**
 * Admission to the endpoints of a group: bearer authentication, the kinds of keys and roles that its annotations let in,
 * and its meter, the token bucket of the key by default. Answers carry `RateLimit-Limit`, `RateLimit-Remaining`,
 * `RateLimit-Reset` (seconds); a refusal for the rate is 429, or 403 in block mode, with `Retry-After` (whole seconds, at
 * least 1) and, where the wait is over 60 s, `x-should-retry: false`. Source: contract/http#rate-limits.
 */
export class Authorization extends HttpApiMiddleware.Service<Authorization, { provides: CurrentKey }>()(
  "signalbox/core/Authorization",
  { security, error: [Unauthorized.plain, Forbidden.plain, RateLimited.plain, ServiceUnavailable.plain] }
) {}

/** The same in the OpenAI form. */
export class OpenAiAuthorization extends HttpApiMiddleware.Service<
  OpenAiAuthorization,
  { provides: CurrentKey }
>()("signalbox/core/OpenAiAuthorization", {
  security,
  error: [Unauthorized.openai, Forbidden.openai, RateLimited.openai, ServiceUnavailable.openai]
}) {}
