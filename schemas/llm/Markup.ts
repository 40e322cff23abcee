import { Schema } from "effect"
import * as Decimal from "./Decimal.ts"

/** What prices of a provider are marked up by unless an administrator says otherwise. Source: spec 1, Limits. */
export const markupPercentDefault = 2

const percentExpected = "a percentage between 0 and 1000 with at most 6 decimal places"

/** Few enough digits that a JSON number carries them exactly. */
const decimalPlacesMax = 6

export const MarkupPercent = Schema.Finite.check(
  Schema.makeFilter((percent: number) => (Decimal.fromNumber(percent)?.scale ?? 0) <= decimalPlacesMax, {
    expected: percentExpected
  }),
  Schema.isBetween({ minimum: 0, maximum: 1000 }, { expected: percentExpected })
).annotate({ description: "On top of the upstream's prices", examples: [markupPercentDefault] })
