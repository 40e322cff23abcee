import { Effect, Metric } from "effect"
import type { MailStatus } from "#schemas/mail/Email.ts"
import type { BounceType } from "#streams/mail/BounceType.ts"

const counter = (name: string, description: string) =>
  Metric.counter(`signalbox_mail_${name}_total`, { description, incremental: true })

const accepted = counter("accepted", "Mails that were accepted")
const ended = counter("deliveries", "Ended deliveries, by their status")
const suppressed = counter("suppressed", "Deliveries that were not tried, since their address is suppressed")
const unknown = counter("unknown", "Attempts whose last byte left and whose reply is not known")

const bounces = counter(
  "bounces",
  "Reports on mails that came back, by type; forged: to a return path that is none, ignored: they end no delivery"
)

const seconds = Metric.histogram("signalbox_mail_attempt_seconds", {
  description: "From the beginning of a hand-over to the next hop to its end",
  boundaries: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900]
})

export interface MailMetrics {
  readonly accepted: () => void
  readonly ended: (status: MailStatus) => void
  readonly bounce: (type: BounceType | "forged" | "ignored") => void
  readonly attempted: (millis: number) => void
  readonly unknown: () => void
}

/** The numbers of mail that are counted as it happens. Source: contract/mail#operation. */
export const make: Effect.Effect<MailMetrics> = Effect.map(Effect.context<never>(), (context) => ({
  accepted: () => accepted.updateUnsafe(1, context),
  ended: (status) => {
    Metric.withAttributes(ended, { status }).updateUnsafe(1, context)
    if (status === "suppressed") suppressed.updateUnsafe(1, context)
  },
  bounce: (type) => Metric.withAttributes(bounces, { type }).updateUnsafe(1, context),
  attempted: (millis) => seconds.updateUnsafe(millis / 1_000, context),
  unknown: () => unknown.updateUnsafe(1, context)
}))
