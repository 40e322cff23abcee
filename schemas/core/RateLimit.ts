import { HttpApiMiddleware } from "effect/http-api"
import type { CurrentKey } from "./Authorization.ts"
import { OpenAiForbidden, OpenAiRateLimited } from "./OpenAiProblem.ts"
import { Forbidden, RateLimited } from "./Problem.ts"

/**
 * The token bucket of the request's key. Answers carry `RateLimit-Limit`, `RateLimit-Remaining`, `RateLimit-Reset`
 * (seconds); a refusal is 429, or 403 in block mode, with `Retry-After` (whole seconds, at least 1) and, where the
 * wait is over 60 s, `x-should-retry: false`. Source: contract/http#rate-limits.
 */
export class RateLimit extends HttpApiMiddleware.Service<RateLimit, { requires: CurrentKey }>()(
  "signalbox/core/RateLimit",
  { error: [RateLimited, Forbidden] }
) {}

/** The same for an endpoint of the nested family. */
export class OpenAiRateLimit extends HttpApiMiddleware.Service<OpenAiRateLimit, { requires: CurrentKey }>()(
  "signalbox/core/OpenAiRateLimit",
  { error: [OpenAiRateLimited, OpenAiForbidden] }
) {}
