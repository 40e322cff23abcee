import { Effect } from "effect"
import { type BadRequest, invalidField } from "#schemas/core/Problem.ts"

/** A place in a list, as a text for addresses. The parts have no NUL. */
export const cursorOf = (...parts: ReadonlyArray<string>): string =>
  Buffer.from(parts.join("\0")).toString("base64url")

/** The parts of a cursor, or undefined where there is none. */
export const partsOf = (
  cursor: string | undefined,
  count: number
): Effect.Effect<ReadonlyArray<string> | undefined, BadRequest> => {
  if (cursor === undefined) return Effect.succeed(undefined)
  const parts = Buffer.from(cursor, "base64url").toString().split("\0")
  return parts.length === count
    ? Effect.succeed(parts)
    : Effect.fail(invalidField("cursor", "expected `cursor` of another page"))
}

/** A page of rows of which one more than `limit` were read. */
export const pageOf = <A>(
  rows: ReadonlyArray<A>,
  limit: number,
  cursor: (last: A) => string
): { readonly rows: ReadonlyArray<A>; readonly cursor: string | null } => {
  const page = rows.slice(0, limit)
  const last = page.at(-1)
  return { rows: page, cursor: rows.length > limit && last !== undefined ? cursor(last) : null }
}
