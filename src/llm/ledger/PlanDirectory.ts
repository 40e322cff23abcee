import { Context, Layer, Schema } from "effect"
import * as Mirror from "#src/infra/postgres/Mirror.ts"

/** A row of `plans`. Plans do not change: a new offer is a new plan. */
export interface PlanRow {
  readonly id: string
  readonly name: string
  /** pico-USD */
  readonly price: bigint
  readonly scope: string
  readonly coversDirectApi: boolean
  /** ids; null: every model */
  readonly models: ReadonlySet<string> | null
  /** tokens */
  readonly allowances: { readonly hour: number; readonly day: number; readonly week: number }
  readonly createdAt: Date
}

const Amount = Schema.Union([Schema.String, Schema.Number, Schema.BigInt])

const decodeColumns = Schema.decodeUnknownSync(
  Schema.Struct({
    id: Schema.String,
    name: Schema.String,
    price: Amount,
    scope: Schema.String,
    covers_direct_api: Schema.Boolean,
    models: Schema.NullOr(Schema.Array(Schema.String)),
    hour_tokens: Amount,
    day_tokens: Amount,
    week_tokens: Amount,
    created_at: Schema.Date
  })
)

export const planOfRow = (row: Readonly<Record<string, unknown>>): PlanRow => {
  const columns = decodeColumns(row)
  return {
    id: columns.id,
    name: columns.name,
    price: BigInt(columns.price),
    scope: columns.scope,
    coversDirectApi: columns.covers_direct_api,
    models: columns.models === null ? null : new Set(columns.models),
    allowances: {
      hour: Number(columns.hour_tokens),
      day: Number(columns.day_tokens),
      week: Number(columns.week_tokens)
    },
    createdAt: columns.created_at
  }
}

/** All plans, in memory. */
export class PlanDirectory extends Context.Service<PlanDirectory, Mirror.Mirror<PlanRow, never>>()(
  "signalbox/llm/PlanDirectory"
) {
  static readonly layer = Layer.effect(
    PlanDirectory,
    Mirror.make<PlanRow, never>({ table: "plans", decode: planOfRow, indexes: {}, isGone: () => false })
  )
}
