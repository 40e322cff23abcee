import { Context, Layer, Schema } from "effect"
import * as Decimal from "#schemas/llm/Decimal.ts"
import * as Mirror from "#src/infra/postgres/Mirror.ts"

/** A row of `markups`: a provider with another markup than the default. */
export interface MarkupRow {
  /** the provider: the first segment of its models' ids */
  readonly id: string
  readonly percent: Decimal.Decimal
}

const decodeColumns = Schema.decodeUnknownSync(
  Schema.Struct({ id: Schema.String, percent: Schema.Union([Schema.String, Schema.Number]) })
)

/** A markup from a row as Postgres gives it. Throws where the row is not one of `markups`. */
export const markupOfRow = (row: Readonly<Record<string, unknown>>): MarkupRow => {
  const { id, percent } = decodeColumns(row)
  const decimal = Decimal.parse(String(percent))
  if (decimal === undefined) throw new Error(`the markup of ${id} is no number`)
  return { id, percent: decimal }
}

/** The markups that were set, in memory. A change holds everywhere within a second, for calls from then on. */
export class MarkupDirectory extends Context.Service<MarkupDirectory, Mirror.Mirror<MarkupRow, never>>()(
  "signalbox/llm/MarkupDirectory"
) {
  static readonly layer = Layer.effect(
    MarkupDirectory,
    Mirror.make({ table: "markups", decode: markupOfRow, indexes: {}, isGone: () => false })
  )
}
