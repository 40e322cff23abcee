import { isJsonRecord } from "#schemas/core/JsonRecord.ts"
import { parseRecord } from "#streams/llm/ChatChunk.ts"

/** Why one try of one model came to nothing. */
export interface AttemptFailure {
  /** whose fault it was: the request's, a rate limit's, or the upstream's (and the platform's with it) */
  readonly kind: "request" | "rate_limited" | "upstream"
  /** for the caller */
  readonly message: string
  readonly code: string | null
  readonly retryAfterSeconds: number | undefined
}

export const upstreamFailure = (message: string): AttemptFailure => ({
  kind: "upstream",
  message,
  code: null,
  retryAfterSeconds: undefined
})

/** Characters of an upstream's words that a caller is shown. */
const messageLengthMax = 500

/** Statuses by which an upstream blames the request. 401, 402 and 403 are about the platform's own account there. */
const requestStatuses = new Set([400, 413, 422])

/** Source: decisions, LLM (Trying the next member). */
export const failureOf = (status: number, body: string, retryAfter: string | undefined): AttemptFailure => {
  const error = parseRecord(body)?.["error"]
  const told = isJsonRecord(error) ? error["message"] : error
  const message = typeof told === "string" && told !== "" ? told : `The model answered ${status}`
  const code = isJsonRecord(error) ? error["code"] : undefined
  return failureOfStatus(status, message, code, retryAfter)
}

/** @param told in the upstream's words */
export const failureOfStatus = (
  status: number,
  told: string,
  code: unknown,
  retryAfter: string | undefined
): AttemptFailure => {
  // The cut may go through a surrogate pair.
  const message = told.slice(0, messageLengthMax).toWellFormed()
  if (status === 429) {
    const retryAfterSeconds = retryAfter === undefined ? undefined : secondsOf(retryAfter)
    return { kind: "rate_limited", message, code: null, retryAfterSeconds }
  }
  if (requestStatuses.has(status)) {
    const isTooLong = code === "context_length_exceeded" || /context (length|window)/i.test(message)
    return {
      kind: "request",
      message,
      code: isTooLong ? "context_length_exceeded" : null,
      retryAfterSeconds: undefined
    }
  }
  const isOwnAccount = status === 401 || status === 402 || status === 403
  return upstreamFailure(isOwnAccount ? "The upstream does not serve this platform at the moment" : message)
}

/** Of `Retry-After`: whole seconds or a date (RFC 9110, 10.2.3). */
const secondsOf = (text: string): number | undefined => {
  if (/^\d{1,9}$/.test(text.trim())) return Number(text)
  const at = Date.parse(text)
  return Number.isNaN(at) ? undefined : Math.max(0, Math.ceil((at - Date.now()) / 1_000))
}
