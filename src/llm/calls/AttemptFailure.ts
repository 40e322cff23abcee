import { isJsonRecord } from "#schemas/core/JsonRecord.ts"
import { type ChunkError, parseRecord } from "#streams/llm/ChatChunk.ts"

/** The reason why one try of one model failed. */
export interface AttemptFailure {
  /** the party at fault: the request, a rate limit, or the upstream (and the platform with it) */
  readonly kind: "request" | "rate_limited" | "upstream"
  /** for the caller */
  readonly message: string
  /** for the log: without the upstream's words that may quote the prompt */
  readonly reason: string
  readonly code: string | null
  readonly retryAfterSeconds: number | undefined
  /** a moderation refused the request */
  readonly isModerated?: boolean
}

/** `message`: in this platform's words, unless there is a `reason` too */
export const upstreamFailure = (message: string, reason = message): AttemptFailure => ({
  kind: "upstream",
  message,
  reason,
  code: null,
  retryAfterSeconds: undefined
})

/** Characters of an upstream's words that a caller gets. */
const messageLengthMax = 500

/**
 * Statuses by which an upstream blames the request. 401, 402 and 403 are about the platform's own account there, but for
 * a 403 of a moderation.
 */
const requestStatuses = new Set([400, 413, 422])

/** Of an answer with an error status. Source: contract/llm#trying-the-next-model. */
export const failureOf = (status: number, body: string, retryAfter: string | undefined): AttemptFailure => {
  const json = parseRecord(body)
  const error = json?.["error"] ?? json
  const told = isJsonRecord(error) ? error["message"] : error
  const message = typeof told === "string" && told !== "" ? told : `The model answered ${status}`
  return failureOfStatus(status, message, error, retryAfter)
}

/** Of an error in an answer whose status is 200. */
export const failureOfError = (
  { message, status, told }: ChunkError,
  retryAfter: string | undefined
): AttemptFailure => failureOfStatus(status ?? 502, message, told, retryAfter)

/**
 * @param told the message, in the upstream's words
 * @param error as the upstream sent it
 */
export const failureOfStatus = (
  status: number,
  told: string,
  error: unknown,
  retryAfter: string | undefined
): AttemptFailure => {
  const reason = `answered ${status}`
  // The cut may go through a surrogate pair.
  const message = told.slice(0, messageLengthMax).toWellFormed()
  if (status === 429) {
    const retryAfterSeconds = retryAfter === undefined ? undefined : secondsOf(retryAfter)
    return { kind: "rate_limited", message, reason, code: null, retryAfterSeconds }
  }
  if (requestStatuses.has(status)) {
    const code = isJsonRecord(error) ? error["code"] : undefined
    const isTooLong = code === "context_length_exceeded" || /context (length|window)/i.test(message)
    return {
      kind: "request",
      message,
      reason,
      code: isTooLong ? "context_length_exceeded" : null,
      retryAfterSeconds: undefined
    }
  }
  const reasons = status === 403 ? moderationIn(error, told) : undefined
  if (reasons !== undefined) return moderated(message, reasons)
  const isOwnAccount = status === 401 || status === 402 || status === 403
  return isOwnAccount
    ? upstreamFailure("The upstream does not serve this platform at the moment", `${reason}: ${message}`)
    : upstreamFailure(message, reason)
}

/** Codes of providers for a refusal by their moderation. */
const moderationCodes = new Set([
  "content_filter",
  "content_policy_violation",
  "moderation_blocked",
  "responsible_ai_policy_violation"
])

/**
 * The reason of a moderation that refused the request, if it gives one; undefined without a moderation. Source:
 * OpenRouter, Errors (ModerationErrorMetadata).
 */
const moderationIn = (error: unknown, message: string): ReadonlyArray<string> | undefined => {
  if (!isJsonRecord(error)) return undefined
  const { code, metadata, type } = error
  if (isJsonRecord(metadata)) {
    const { flagged_input: flagged, reasons } = metadata
    if (Array.isArray(reasons)) return reasons.filter((reason) => typeof reason === "string")
    if (typeof flagged === "string") return []
  }
  const isNamed = [code, type].some((name) => typeof name === "string" && moderationCodes.has(name))
  return isNamed || /requires moderation|input was flagged|content policy/i.test(message) ? [] : undefined
}

const moderated = (message: string, reasons: ReadonlyArray<string>): AttemptFailure => {
  const untold = reasons.filter((reason) => !message.includes(reason))
  return {
    kind: "request",
    message: `${message}${untold.length === 0 ? "" : ` (${untold.join(", ")})`}`
      .slice(0, messageLengthMax)
      .toWellFormed(),
    reason: "refused by a moderation",
    code: "content_policy_violation",
    retryAfterSeconds: undefined,
    isModerated: true
  }
}

/** Of `Retry-After`: whole seconds or a date (RFC 9110, 10.2.3). */
const secondsOf = (text: string): number | undefined => {
  if (/^\d{1,9}$/.test(text.trim())) return Number(text)
  const at = Date.parse(text)
  return Number.isNaN(at) ? undefined : Math.max(0, Math.ceil((at - Date.now()) / 1_000))
}
