import type { Adjustments, ChannelAnswer, ChannelKind, Verdict } from "./Channel.ts"
import { retryAfterMillis } from "./RetryAfter.ts"

/** Answers that a channel's kind has of its own. All others mean the same for every kind. */
interface Habits {
  readonly service: string
  /** The channel is no more. */
  readonly gone: ReadonlyArray<number>
  /** The signature was refused: an operator's fault, or a token that aged, but none of the subscription. */
  readonly unsigned: ReadonlyArray<number>
}

const habits: Readonly<Record<ChannelKind, Habits>> = {
  push: { service: "the push service", gone: [404, 410], unsigned: [401, 403] },
  webhook: { service: "the webhook", gone: [410], unsigned: [] }
}

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
  const { gone, service, unsigned } = habits[kind]
  const error = `${service} answered ${status}${reasonOf(kind, answer)}`
  if (status >= 200 && status < 300) return { _tag: "Delivered" }
  if (gone.includes(status)) return { _tag: "Gone", error }
  // RFC 9110, section 15: a status that cannot be is taken for one of the server's faults.
  const isPassing = status === 429 || status >= 500 || !(status >= 200)
  if (isPassing) {
    const afterMillis = retryAfterMillis(answer.header("retry-after"), nowMillis)
    return { _tag: "Again", error, ...(afterMillis === undefined ? {} : { afterMillis }) }
  }
  if (status === 413 && adjustments.isSmaller !== true) return { _tag: "Smaller", error }
  if (unsigned.includes(status) && adjustments.hasNewSignature !== true)
    return { _tag: "NewSignature", error }
  return { _tag: "Dead", error }
}

/** Longer answers have no reason that is worth a look. */
const reasonBodyBytes = 1_024

/** The word by which Apple's push service says why: `{"reason":"BadJwtToken"}`. A webhook's own words may tell its address. */
const reasonOf = (kind: ChannelKind, { body }: ChannelAnswer): string => {
  if (kind !== "push" || body === undefined || body.length > reasonBodyBytes) return ""
  const [, reason] = /"reason"\s*:\s*"([A-Za-z]{1,40})"/u.exec(Buffer.from(body).toString("latin1")) ?? []
  return reason === undefined ? "" : ` (${reason})`
}

/** There was no answer: the faults of egress, which has the host and the details in a text of its own. */
export type NetworkFault =
  | { readonly _tag: "EgressRefused"; readonly reason: string }
  | {
      readonly _tag: "EgressFailed"
      readonly kind: "name" | "connect" | "tls" | "time" | "size" | "answer" | "redirect" | "request" | "busy"
    }

type FailedKind = Extract<NetworkFault, { readonly _tag: "EgressFailed" }>["kind"]

const faults: Readonly<Record<FailedKind, Pick<Exclude<Verdict, { _tag: "Delivered" }>, "_tag" | "error">>> =
  {
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
