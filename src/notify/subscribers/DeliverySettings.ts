import { Effect } from "effect"
import { type BadRequest, invalidField } from "#schemas/core/Problem.ts"
import { timeZoneOf } from "#schemas/core/TimeZone.ts"
import type { DeliveryChange } from "#schemas/notify/DeliverySettings.ts"
import type { Settings } from "#schemas/notify/Settings.ts"
import { defaultDigestAt, dueOf, quietUntil } from "#streams/notify/digests/Due.ts"

/** The columns of `subscribers` that say when messages come. */
export interface DeliveryColumns {
  readonly timezone: string
  readonly delivery: Settings["delivery"]
  readonly digest_at: string | null
  readonly quiet_from: string | null
  readonly quiet_to: string | null
  readonly high_passes: boolean
}

export const newcomer: DeliveryColumns = {
  timezone: "UTC",
  delivery: "instant",
  digest_at: null,
  quiet_from: null,
  quiet_to: null,
  high_passes: true
}

/** A change to the columns; absent fields stay. Faults name its fields. */
export const changed = Effect.fnUntraced(function* (
  columns: DeliveryColumns,
  { delivery, digestAt, highPasses, quietFrom, quietTo, timezone }: DeliveryChange & { timezone?: string }
) {
  const next: DeliveryColumns = {
    timezone: timezone === undefined ? columns.timezone : yield* timeZoneOf(timezone),
    delivery: delivery ?? columns.delivery,
    digest_at: digestAt ?? columns.digest_at,
    quiet_from: quietFrom === undefined ? columns.quiet_from : quietFrom,
    quiet_to: quietTo === undefined ? columns.quiet_to : quietTo,
    high_passes: highPasses ?? columns.high_passes
  }
  const fault = quietFault(next)
  return fault === undefined ? next : yield* fault
})

const quietFault = ({ quiet_from, quiet_to }: DeliveryColumns): BadRequest | undefined => {
  if ((quiet_from === null) !== (quiet_to === null))
    return quiet_to === null
      ? invalidField("quietTo", "is required with quietFrom; both are null where there are no quiet hours")
      : invalidField("quietFrom", "is required with quietTo; both are null where there are no quiet hours")
  return quiet_from === null || quiet_from !== quiet_to
    ? undefined
    : invalidField("quietTo", "is the same as quietFrom; both are null where there are no quiet hours")
}

interface Moment {
  readonly nowMillis: number
  readonly held: number
  /** when the first of what is held comes */
  readonly heldUntil: Date | null
  /** of the subscriber's projects */
  readonly choices: ReadonlyArray<Settings["projects"][number]["delivery"]>
}

type Shown = Pick<
  Settings,
  "delivery" | "digestAt" | "quietFrom" | "quietTo" | "highPasses" | "held" | "nextDigestAt" | "quietUntil"
>

/** The settings as their subscriber sees them, with what they mean at the moment. */
export const shown = (columns: DeliveryColumns, { choices, held, heldUntil, nowMillis }: Moment): Shown => {
  const { delivery, digest_at, high_passes: highPasses, quiet_from, quiet_to, timezone } = columns
  const [quietFrom, quietTo] = [quiet_from, quiet_to]
  const hold = { digestAt: digest_at, quietFrom, quietTo, timezone }
  const instantOf = (millis: number | undefined) => (millis === undefined ? null : new Date(millis))
  const kinds = new Set(
    choices.flatMap((choice) => (choice === "muted" ? [] : choice === "inherit" ? [delivery] : [choice]))
  )
  const dues = [...(kinds.size === 0 ? [delivery] : kinds)].flatMap(
    (kind) => dueOf({ ...hold, delivery: kind }, nowMillis) ?? []
  )
  return {
    delivery,
    digestAt: digest_at ?? defaultDigestAt,
    quietFrom,
    quietTo,
    highPasses,
    held,
    nextDigestAt: heldUntil ?? (dues.length === 0 ? null : new Date(Math.min(...dues))),
    quietUntil: instantOf(quietUntil({ ...hold, delivery }, nowMillis))
  }
}
