import { Refused } from "../api/Refused.ts"

/** The reason for a missing answer, and a remedy, in words. Source: contract/http#error-codes. */
export const wordsFor = (error: unknown): string => {
  if (!(error instanceof Refused))
    return "The connection broke off before the answer was complete. Run it again."
  const { code, message, retryMillis, status } = error
  const wait = retryMillis === undefined ? "later" : `in ${seconds(retryMillis)}`
  switch (status) {
    case 402:
      return code === "key_spend_limit"
        ? `${message}. Raise its limit, or use another key.`
        : `${message}. Nothing was charged.`
    case 403:
      return `${message}. Its owner decides which models and collections it opens.`
    case 429:
      return `Too many requests: ${message}. Try again ${wait}.`
    case 502:
      return `No model could answer: ${message}. Nothing was charged.`
    case 503:
      return `Not possible at the moment: ${message}. Try again ${wait}.`
    default:
      return `${message}.`
  }
}

const seconds = (millis: number): string => {
  const whole = Math.ceil(millis / 1000)
  return whole === 1 ? "1 second" : `${whole} seconds`
}
