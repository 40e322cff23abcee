import {
  BadGateway,
  BadRequest,
  Conflict,
  Forbidden,
  invalidField,
  NotFound,
  PaymentRequired,
  type Problem,
  RateLimited,
  ServerError,
  ServiceUnavailable
} from "#schemas/core/Problem.ts"
import type { RequestFault } from "#src/llm/requests/JsonRequest.ts"

/** The errors of model calls. Source: contract/http#error-codes. */

export const invalidRequest = ({ code, param, problem }: RequestFault): Problem =>
  param === "" ? BadRequest.of(problem, { code }) : invalidField(param, problem, code)

export const refusedByModel = (message: string, code: string | null): Problem =>
  BadRequest.of(message, { code })

/** The moderation of a model, or of the upstream before it, refused the request. */
export const refusedByModeration = (message: string, code: string | null): Problem =>
  Forbidden.of(message, { code })

const busy = { retryAfterSeconds: 1, shouldRetry: true }

export const insufficientCredits = (isBusy: boolean): Problem =>
  PaymentRequired.of(
    isBusy
      ? "The credits that are left are held by other calls in progress; try again when they are done"
      : "The credits do not cover this call; top up to go on",
    { code: "insufficient_credits", ...(isBusy ? busy : {}) }
  )

export const keySpendLimit = (isBusy: boolean): Problem =>
  PaymentRequired.of(
    isBusy
      ? "What is left of this key's spend limit is held by other calls in progress; try again when they are done"
      : "This key has reached its spend limit",
    { code: "key_spend_limit", ...(isBusy ? busy : {}) }
  )

export const modelNotAllowed = (requested: string, param: string): Problem =>
  Forbidden.of(`This key may not use ${requested}`, { code: "model_not_allowed", param })

export const modelNotFound = (requested: string): Problem =>
  NotFound.of(`There is no model ${requested}`, { code: "model_not_found", param: "model" })

export const unknownFormat = (path: string): Problem =>
  NotFound.of(`${path} is not served; use /api/v1/chat/completions`)

export const conflict = (message: string): Problem => Conflict.of(message, { code: "idempotency_conflict" })

/** The upstream's rate, not the key's. */
export const rateLimited = (message: string, retryAfterSeconds?: number): Problem =>
  RateLimited.of(message, { retryAfterSeconds })

export const upstreamError = (message: string): Problem => BadGateway.of(message)

export const noAvailableModel = (message: string, retryAfterSeconds: number): Problem =>
  ServiceUnavailable.of(message, { code: "no_available_model", retryAfterSeconds })

export const overloaded = (message: string): Problem =>
  ServiceUnavailable.of(message, { retryAfterSeconds: 1 })

/** The cause is in the log under the request's id. */
export const internalError = (requestId: string): Problem =>
  ServerError.of(`Internal error (request ${requestId})`)
