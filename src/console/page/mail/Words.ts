import type { Email, MailStatus } from "#schemas/mail/Email.ts"
import { formatCount, formatInstant } from "../figures/Format.ts"

type Recipient = Email["recipients"][number]

/** The color of a recipient's light. */
export const lightOf = (status: MailStatus): "up" | "down" | "degraded" => {
  if (status === "sent") return "up"
  return ["queued", "sending", "deferred"].includes(status) ? "degraded" : "down"
}

/** `sent`; `deferred · 2 attempts · 451 … · again at …` */
export const stateOf = ({ attempts, last_reply, next_attempt_at, status }: Recipient): string =>
  [
    status,
    ...(attempts > 1 ? [`${formatCount(attempts)} attempts`] : []),
    ...(last_reply === null || status === "sent" ? [] : [last_reply]),
    ...(next_attempt_at === null || status === "queued" ? [] : [`again ${formatInstant(next_attempt_at)}`])
  ].join(" · ")

/** `2 sent, 1 deferred` */
export const progressOf = ({ recipients }: Email): string => {
  const counts = new Map<MailStatus, number>()
  for (const { status } of recipients) counts.set(status, (counts.get(status) ?? 0) + 1)
  return [...counts].map(([status, count]) => `${formatCount(count)} ${status}`).join(", ")
}
