import { Context } from "effect"
import { HttpApiMiddleware, HttpApiSecurity, OpenApi } from "effect/http-api"
import { RateLimited, ServiceUnavailable, Unauthorized } from "../core/Problem.ts"

/** The subscriber whose token the request has; provided by `SubscriberAuthorization`. */
export class CurrentSubscriber extends Context.Service<CurrentSubscriber, { readonly id: string }>()(
  "signalbox/notify/CurrentSubscriber"
) {}

/**
 * Lets a subscriber in by the token of their settings page. It is no key: keys are 401 here, as it is everywhere else.
 * Source: contract/notify#subscribers.
 */
export class SubscriberAuthorization extends HttpApiMiddleware.Service<
  SubscriberAuthorization,
  { provides: CurrentSubscriber }
>()("signalbox/notify/SubscriberAuthorization", {
  security: {
    subscriberToken: HttpApiSecurity.http({ scheme: "bearer" }).pipe(
      HttpApiSecurity.annotateMerge(
        OpenApi.annotations({
          description:
            "`Authorization: Bearer <SUBSCRIBER_TOKEN>` (`sbt_`), the part of a settings page's address after `#`: the " +
            "settings of one subscriber"
        })
      )
    )
  },
  error: [Unauthorized.plain, RateLimited.plain, ServiceUnavailable.plain]
}) {}
