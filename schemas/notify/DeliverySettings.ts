import { Schema } from "effect"
import { TimestampOfDate } from "../core/Timestamp.ts"

/** When messages reach a subscriber. Source: contract/notify#subscribers. */

const Delivery = Schema.Literals(["instant", "hourly", "daily"]).annotate({
  description: "`hourly`: at every full hour, `daily`: at `digestAt`, all that came in between as one"
})

const timeExpected = "a time as HH:MM, such as 18:00"

const LocalTime = Schema.String.check(
  Schema.isPattern(/^([01]\d|2[0-3]):[0-5]\d$/u, { expected: timeExpected })
)

const digestAt = LocalTime.annotate({
  description: "Of daily digests, on the clocks of the time zone",
  examples: ["18:00"]
})

const quietFrom = Schema.NullOr(LocalTime).annotate({
  description:
    "What comes from then on waits until `quietTo`; null, as `quietTo` then: there are no quiet hours",
  examples: ["22:00"]
})

const quietTo = Schema.NullOr(LocalTime).annotate({ examples: ["07:00"] })

const highPasses = Schema.Boolean.annotate({
  description: "Messages of high priority come at once all the same"
})

/** Of a change: what is absent stays. */
export const deliveryChange = {
  delivery: Schema.optionalKey(Delivery),
  digestAt: Schema.optionalKey(digestAt),
  quietFrom: Schema.optionalKey(quietFrom),
  quietTo: Schema.optionalKey(quietTo),
  highPasses: Schema.optionalKey(highPasses)
}

const DeliveryChange = Schema.Struct(deliveryChange)
export type DeliveryChange = typeof DeliveryChange.Type

/** Of an answer: what is set, and what it means at the moment. */
export const deliverySettings = {
  delivery: Delivery,
  digestAt,
  quietFrom,
  quietTo,
  highPasses,
  held: Schema.Int.annotate({
    description: "Messages that wait for a digest, or for the end of quiet hours"
  }),
  nextDigestAt: Schema.NullOr(TimestampOfDate).annotate({
    description: "When these come; while none waits, when the first would; null: at once"
  }),
  quietUntil: Schema.NullOr(TimestampOfDate).annotate({
    description: "The end of the quiet hours that are now; null: there are none now"
  })
}
