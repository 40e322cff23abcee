/** hard: mail to the address will not arrive; soft: it may, at another time or as another mail; complaint: it is not wanted. */
export const bounceTypes = ["hard", "soft", "complaint"] as const
export type BounceType = (typeof bounceTypes)[number]

/** The end of one recipient, as somebody else tells of it. */
export interface ReportedEnd {
  readonly type: BounceType
  /** The mail has not arrived, and will not. */
  readonly isFailed: boolean
  readonly detail: string
}

/**
 * Permanent faults that are of the address: it is wrong, has moved, is disabled, or its domain takes no mail. A mailbox that
 * is full, a mail that is too long and a policy that refuses it are not. Source: RFC 3463, 3.
 */
const isOfAddress = /^5\.(?:0\.\d+|1\.(?:0|[1-6]|9|10)|2\.[01]|4\.[14])$/

/** A failure that is final for its mail. `status`: X.X.X of RFC 3463, or empty; `diagnostic`: the reply of the server. */
export const typeOfFailure = (status: string, diagnostic: string): Pick<ReportedEnd, "isFailed" | "type"> => {
  const [, code = "", enhanced = ""] = /^([245]\d\d)(?:[ -]([245]\.\d{1,3}\.\d{1,3}))?/.exec(diagnostic) ?? []
  // Servers that know no more say 5.0.0 beside a reply that is exact.
  const isVague = status === "" || /^5\.0\.\d+$/.test(status)
  const exact = isVague && enhanced !== "" ? enhanced : status
  const isHard = exact === "" ? code.startsWith("5") : isOfAddress.test(exact)
  return { type: isHard ? "hard" : "soft", isFailed: true }
}
