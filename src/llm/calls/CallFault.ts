import type { RequestFault } from "#src/llm/requests/JsonRequest.ts"

/**
 * An error as a completion answers it: the nested family, written by hand on the hot path.
 * Source: contract/http#error-codes.
 */
export interface CallFault {
  readonly status: number
  readonly type: string
  readonly code: string | null
  readonly message: string
  readonly param: string | null
  readonly retryAfterSeconds?: number
  /** the value of `x-should-retry`, where clients' own rule would be wrong */
  readonly shouldRetry?: boolean
}

type Rest = Partial<Pick<CallFault, "param" | "retryAfterSeconds" | "shouldRetry">>

const fault = (
  status: number,
  type: string,
  code: string | null,
  message: string,
  rest: Rest = {}
): CallFault => ({ status, type, code, message, param: null, ...rest })

export const invalidRequest = ({ code, param, problem }: RequestFault): CallFault =>
  fault(400, "invalid_request_error", code, param === "" ? problem : `${param}: ${problem}`, {
    param: param === "" ? null : param
  })

export const refusedByModel = (message: string, code: string | null): CallFault =>
  fault(400, "invalid_request_error", code, message)

/** The moderation of a model, or of the upstream before it, refused the request. */
export const refusedByModeration = (message: string, code: string | null): CallFault =>
  fault(403, "permission_error", code, message)

export const invalidKey: CallFault = fault(
  401,
  "authentication_error",
  "invalid_api_key",
  "Invalid or missing API key"
)

const busyRest: Rest = { retryAfterSeconds: 1, shouldRetry: true }

export const insufficientCredits = (isBusy: boolean): CallFault =>
  fault(
    402,
    "insufficient_quota",
    "insufficient_credits",
    isBusy
      ? "The credits that are left are held by other calls in progress; try again when they are done"
      : "The credits do not cover this call; top up to go on",
    isBusy ? busyRest : {}
  )

export const keySpendLimit = (isBusy: boolean): CallFault =>
  fault(
    402,
    "insufficient_quota",
    "key_spend_limit",
    isBusy
      ? "What is left of this key's spend limit is held by other calls in progress; try again when they are done"
      : "This key has reached its spend limit",
    isBusy ? busyRest : {}
  )

export const modelNotAllowed = (requested: string, param: string): CallFault =>
  fault(403, "permission_error", "model_not_allowed", `This key may not use ${requested}`, { param })

export const modelNotFound = (requested: string): CallFault =>
  fault(404, "invalid_request_error", "model_not_found", `There is no model ${requested}`, { param: "model" })

export const unknownFormat = (path: string): CallFault =>
  fault(404, "invalid_request_error", null, `${path} is not served; use /api/v1/chat/completions`)

export const conflict = (message: string): CallFault =>
  fault(409, "conflict_error", "idempotency_conflict", message)

export const rateLimited = (message: string, retryAfterSeconds?: number): CallFault =>
  fault(429, "rate_limit_error", "rate_limit_exceeded", message, {
    ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
    // Clients ignore a wait of over a minute and come back at once.
    ...(retryAfterSeconds !== undefined && retryAfterSeconds > 60 ? { shouldRetry: false } : {})
  })

export const blocked = (message: string, retryAfterSeconds: number): CallFault =>
  fault(403, "permission_error", null, message, { retryAfterSeconds })

export const upstreamError = (message: string): CallFault =>
  fault(502, "server_error", "upstream_error", message)

export const noAvailableModel = (message: string, retryAfterSeconds: number): CallFault =>
  fault(503, "server_error", "no_available_model", message, { retryAfterSeconds })

export const overloaded = (message: string): CallFault =>
  fault(503, "server_error", "overloaded", message, { retryAfterSeconds: 1 })

/** The cause is in the log under the request's id. */
export const internalError = (requestId: string): CallFault =>
  fault(500, "server_error", "internal_error", `Internal error (request ${requestId})`)

export const envelopeOf = ({ code, message, param, type }: CallFault) => ({
  error: { message, type, code, param }
})
