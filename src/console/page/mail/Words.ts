import type { Email, MailStatus } from "#schemas/mail/Email.ts"
import type { EncodedDomain as Domain } from "#schemas/mail/Domain.ts"
import { formatCount, formatInstant } from "../figures/Format.ts"
import type { View } from "../view/View.ts"

type Recipient = Email["recipients"][number]
type DomainRecord = Domain["records"][number]

/** The mails that were sent. */
export const mailView: View = { room: "mail", params: {} }

export const emailView = (id: string): View => ({ ...mailView, params: { mail: id } })

/** A page beside them. */
export const partView = (show: string): View => ({ ...mailView, params: { show } })

/** A recipient's copy in the sandbox. */
export const copyView = (id: string): View => ({ ...mailView, params: { show: "inbox", mail: id } })

export const isUnknown = ({ status }: { readonly status: number }): boolean => status === 404

type Light = "up" | "down" | "degraded" | "pulsing" | ""

const lights: Readonly<Record<MailStatus, Light>> = {
  queued: "pulsing",
  sending: "pulsing",
  deferred: "degraded",
  sent: "up",
  bounced: "down",
  expired: "down",
  unknown: "degraded",
  suppressed: "",
  canceled: ""
}

/** The color of a recipient's light. */
export const lightOf = (status: MailStatus): Light => lights[status]

const urgency: ReadonlyArray<Light> = ["down", "degraded", "pulsing", "up", ""]

/** The most telling of the recipients' lights. */
export const lightOfMail = ({ recipients }: Email): Light =>
  urgency.find((light) => recipients.some(({ status }) => lightOf(status) === light)) ?? ""

export const isWaiting = ({ status }: Recipient): boolean => status === "queued" || status === "deferred"

/** `sent`; `deferred · 2 attempts · 451 … · again at …` */
export const stateOf = ({ attempts, last_reply, next_attempt_at, status }: Recipient): string =>
  [
    status,
    ...(attempts > 1 ? [`${formatCount(attempts)} attempts`] : []),
    ...(last_reply === null ? [] : [last_reply]),
    ...(next_attempt_at === null || status === "queued" ? [] : [`again ${formatInstant(next_attempt_at)}`])
  ].join(" · ")

/** `2 sent, 1 deferred` */
export const progressOf = ({ recipients }: Email): string => {
  const counts = new Map<MailStatus, number>()
  for (const { status } of recipients) counts.set(status, (counts.get(status) ?? 0) + 1)
  return [...counts].map(([status, count]) => `${formatCount(count)} ${status}`).join(", ")
}

const recordLights = { ok: "up", missing: "down", different: "degraded" } as const

export const lightOfRecord = ({ status }: DomainRecord): Light =>
  status === null ? "" : recordLights[status]

const recordNames: Readonly<Record<DomainRecord["kind"], string>> = {
  dkim: "DKIM",
  spf: "SPF",
  dmarc: "DMARC",
  bounce: "Bounces"
}

export const recordNameOf = ({ kind }: DomainRecord): string => recordNames[kind]
