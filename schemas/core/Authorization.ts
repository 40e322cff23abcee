import { Context } from "effect"
import { HttpApiMiddleware, HttpApiSecurity, OpenApi } from "effect/http-api"
import { OpenAiForbidden, OpenAiServiceUnavailable, OpenAiUnauthorized } from "./OpenAiProblem.ts"
import { Forbidden, ServiceUnavailable, Unauthorized } from "./Problem.ts"

/** An account key does everything of its owner; a router key calls models, agents and the account endpoints. */
export type KeyKind = "account" | "router"

/** The caller: the key of the request and its owner. */
export interface Principal {
  readonly keyId: string
  readonly keyName: string
  readonly kind: KeyKind
  readonly userId: string
  readonly role: "user" | "admin"
  /** ids that a router key is limited to; null: no limit */
  readonly models: ReadonlyArray<string> | null
  readonly collections: ReadonlyArray<string> | null
  /** the key's own rate, else null for the default one */
  readonly rateLimitPerMinute: number | null
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

const security = {
  apiKey: HttpApiSecurity.http({ scheme: "bearer" }).pipe(
    HttpApiSecurity.annotateMerge(
      OpenApi.annotations({
        description:
          "`Authorization: Bearer <API_KEY>`, the scheme in any case. An account key (`sk_`) does everything of its " +
          "owner; a router key (`sk_mr_`) calls the model, agent and account endpoints and gets 403 elsewhere."
      })
    )
  )
}

/** Bearer authentication of an endpoint of the flat family. */
export class Authorization extends HttpApiMiddleware.Service<Authorization, { provides: CurrentKey }>()(
  "signalbox/core/Authorization",
  { security, error: [Unauthorized, Forbidden, ServiceUnavailable] }
) {}

/** Endpoints of administrators: others get 403, before their body is read. */
export class AdministratorsOnly extends HttpApiMiddleware.Service<
  AdministratorsOnly,
  { requires: CurrentKey }
>()("signalbox/core/AdministratorsOnly", { error: Forbidden }) {}

/** Bearer authentication of an endpoint of the nested family. */
export class OpenAiAuthorization extends HttpApiMiddleware.Service<
  OpenAiAuthorization,
  { provides: CurrentKey }
>()("signalbox/core/OpenAiAuthorization", {
  security,
  error: [OpenAiUnauthorized, OpenAiForbidden, OpenAiServiceUnavailable]
}) {}

/** The same as `AdministratorsOnly` for endpoints of the nested family. */
export class OpenAiAdministratorsOnly extends HttpApiMiddleware.Service<
  OpenAiAdministratorsOnly,
  { requires: CurrentKey }
>()("signalbox/core/OpenAiAdministratorsOnly", { error: OpenAiForbidden }) {}
