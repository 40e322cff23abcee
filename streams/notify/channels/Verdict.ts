import type { Adjustments, ChannelAnswer, ChannelKind, Verdict } from "./Channel.ts"
import { kindOf } from "./Kinds.ts"
import { pauseMillisMax, retryAfterMillis } from "./RetryAfter.ts"

export interface VerdictOptions {
  /** those that were made before this answer */
  readonly adjustments?: Adjustments
  readonly nowMillis: number
}

/** Consequences of an answer. Source: contract/notify#deliveries. */
export const verdictOf = (
  kind: ChannelKind,
  answer: ChannelAnswer,
  { adjustments = {}, nowMillis }: VerdictOptions
): Verdict => {
  const { status } = answer
  const { gone, pauseOf, service, unsigned = [], verdictOf: own } = kindOf(kind)
  const particular = own?.(answer, adjustments)
  if (particular !== undefined) return particular
  const error = `${service} answered ${status}${reasonOf(kind, answer)}`
  const pause = (millis: number | undefined) =>
    millis === undefined || !(millis > 0) ? {} : { afterMillis: Math.min(Math.ceil(millis), pauseMillisMax) }
  if (status >= 200 && status < 300) return { _tag: "Delivered", ...pause(pauseOf?.(answer)) }
  if (gone.includes(status)) return { _tag: "Gone", error }
  // RFC 9110, section 15: a status that cannot be is taken for one of the server's faults.
  const isPassing = status === 429 || status >= 500 || !(status >= 200)
  if (isPassing)
    return {
      _tag: "Again",
      error,
      ...pause(pauseOf?.(answer) ?? retryAfterMillis(answer.header("retry-after"), nowMillis))
    }
  if (status === 413 && adjustments.isSmaller !== true) return { _tag: "Smaller", error }
  if (unsigned.includes(status) && adjustments.hasNewSignature !== true)
    return { _tag: "NewSignature", error }
  return { _tag: "Dead", error }
}

/** Longer answers have no reason that is worth a look. */
const reasonBodyBytes = 1_024

const reasonOf = (kind: ChannelKind, { body }: ChannelAnswer): string => {
  const { reasonOf: read } = kindOf(kind)
  if (read === undefined || body === undefined || body.length > reasonBodyBytes) return ""
  const reason = read(Buffer.from(body).toString("latin1"))
  return reason === undefined ? "" : ` (${reason})`
}

/** There was no answer: the faults of egress, or of the way to Telegram's bot, which has the host and the details in a text of its own. */
export type NetworkFault =
  | { readonly _tag: "EgressRefused"; readonly reason: string }
  | {
      readonly _tag: "EgressFailed" | "BotUnreachable"
      readonly kind: "name" | "connect" | "tls" | "time" | "size" | "answer" | "redirect" | "request" | "busy"
    }

type FailedKind = Exclude<NetworkFault, { readonly _tag: "EgressRefused" }>["kind"]

const faults: Readonly<Record<FailedKind, Extract<Verdict, { _tag: "Again" | "Dead" }>>> = {
  name: { _tag: "Again", error: "its host has no address" },
  connect: { _tag: "Again", error: "its host takes no connection" },
  tls: { _tag: "Again", error: "its host has no valid certificate" },
  time: { _tag: "Again", error: "it gave no answer in time" },
  size: { _tag: "Again", error: "its answer is too long" },
  answer: { _tag: "Again", error: "its answer broke off or is not HTTP" },
  busy: { _tag: "Again", error: "this server is busy with other requests" },
  redirect: { _tag: "Dead", error: "it redirects" },
  request: { _tag: "Dead", error: "the request to it cannot be made" }
}

/** Consequences of a fault on the way. An address that may not be reached now may be no better later. */
export const verdictOfFault = (fault: NetworkFault): Verdict =>
  fault._tag === "EgressRefused"
    ? { _tag: "Dead", error: `its address may not be reached: ${fault.reason}` }
    : faults[fault.kind]
