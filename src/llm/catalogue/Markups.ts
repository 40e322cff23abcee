import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import * as Decimal from "#schemas/llm/Decimal.ts"
import { type Markup, markupPercentDefault } from "#schemas/llm/Markup.ts"
import { Catalogue } from "./Catalogue.ts"
import { MarkupDirectory, type MarkupRow } from "./MarkupDirectory.ts"

/** Markups on providers' prices. A change holds here at once, elsewhere within a second. */
export class Markups extends Context.Service<
  Markups,
  {
    /** the catalogue's providers and those whose markup was set, by name */
    readonly list: () => ReadonlyArray<Markup>
    /** the default unless an administrator has set another, whether there is such a provider or not */
    readonly get: (provider: string) => Markup
    readonly set: (provider: string, percent: number) => Effect.Effect<Markup, SqlError>
  }
>()("signalbox/llm/Markups") {
  static readonly layer = Layer.effect(
    Markups,
    Effect.gen(function* () {
      return make(yield* MarkupDirectory, yield* Catalogue, yield* SqlClient)
    })
  )
}

const markupOf = (provider: string, row: MarkupRow | undefined): Markup => ({
  provider,
  percent: row?.percent ?? markupPercentDefault,
  isDefault: row === undefined
})

const make = (
  directory: MarkupDirectory["Service"],
  catalogue: Catalogue["Service"],
  sql: SqlClient
): Markups["Service"] => {
  const get = (provider: string): Markup => markupOf(provider, directory.get(provider))
  return {
    list: () => {
      const set = Array.from(directory.all(), ({ id }) => id)
      const providers = new Set([...catalogue.all().map(({ provider }) => provider), ...set])
      return [...providers].sort().map(get)
    },
    get,
    set: Effect.fn("Markups.set")(function* (provider, percent) {
      // As text: the driver would turn it into a float.
      const exact = Decimal.format(Decimal.fromNumber(percent) ?? Decimal.zero)
      const row = yield* directory.first(
        sql`INSERT INTO markups (id, percent) VALUES (${provider}, ${exact}::numeric)
          ON CONFLICT (id) DO UPDATE SET percent = excluded.percent, updated_at = now()
          RETURNING ${directory.columns}`
      )
      return markupOf(provider, row)
    })
  }
}
