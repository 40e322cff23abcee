import { Schema } from "effect"
import * as Decimal from "./Decimal.ts"

/** The default markup on a provider's prices, in percent. Source: contract/llm#prices. */
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

/** A provider's markup as an administrator reads it. Source: contract/llm#prices. */
export const Markup = Schema.Struct({
  provider: Schema.String.annotate({ description: "First segment of its models' ids" }),
  percent: MarkupPercent,
  isDefault: Schema.Boolean.annotate({ description: "Nobody has set another" })
}).annotate({ identifier: "Markup", description: "What a provider's prices are marked up by" })
export type Markup = typeof Markup.Type

export const MarkupList = Schema.Struct({ markups: Schema.Array(Markup) }).annotate({
  identifier: "MarkupList",
  description: "Providers of the catalogue, and those whose markup was set, by name"
})

export const MarkupChange = Schema.Struct({ percent: MarkupPercent }).annotate({ identifier: "MarkupChange" })

const providerExpected = "a provider: 1 to 100 characters without spaces and slashes"

export const Provider = Schema.String.check(
  Schema.isMaxLength(100, { expected: providerExpected }),
  Schema.isPattern(/^[^\s/\p{C}]+$/u, { expected: providerExpected })
).annotate({ description: "First segment of model ids", examples: ["openai"] })
