import { Schema } from "effect"
import { integer } from "./Text.ts"

/** Query fields of a list that is read in pages. */
export const pageQuery = (options: { readonly limitDefault: number; readonly limitMax: number }) => ({
  limit: Schema.optionalKey(
    integer(1, options.limitMax).annotate({ description: "Page size", default: options.limitDefault })
  ),
  offset: Schema.optionalKey(integer(0, 2_147_483_647).annotate({ description: "Rows to skip", default: 0 }))
})

/** A page as a repository takes it. */
export interface Page {
  readonly limit: number
  readonly offset: number
}

export const pageOf = (
  query: { readonly limit?: number; readonly offset?: number },
  limitDefault: number
): Page => ({ limit: query.limit ?? limitDefault, offset: query.offset ?? 0 })
