import { SchemaIssue } from "effect"
import type { HttpApiError } from "effect/http-api"

/** The field of a request that did not fit its schema, and the expectation. Repeats only names of the request. */
export interface FieldFault {
  /** `email`, `models[3]`, `limit`; `body` when the body as a whole is at fault */
  readonly field: string
  readonly text: string
}

/** `kind` is known of parts of a request. */
type FaultyPart = Pick<HttpApiError.HttpApiSchemaError, "cause"> &
  Partial<Pick<HttpApiError.HttpApiSchemaError, "kind">>

const format = SchemaIssue.makeFormatterStandardSchemaV1()

export const fieldFault = (error: FaultyPart): FieldFault => {
  const issue = format(error.cause.issue).issues[0]
  const field = fieldOf(issue?.path ?? [])
  const message = issue?.message ?? "Expected a valid value"
  // All of a query is text; only a name that is there several times is a list.
  const isRepeated = error.kind === "Query" && message === "Expected string"
  return {
    field: field === "" ? "body" : field,
    text: isRepeated ? "is there several times" : wordsOf(message)
  }
}

/** Of a name that the caller made up; no field of ours is longer. */
const nameCharacters = 100

const fieldOf = (path: ReadonlyArray<PropertyKey | { readonly key: PropertyKey }>): string =>
  path.reduce<string>((field, segment) => {
    const key = typeof segment === "object" ? segment.key : segment
    if (typeof key === "number") return `${field}[${key}]`
    const name = String(key).slice(0, nameCharacters)
    return field === "" ? name : `${field}.${name}`
  }, "")

/** Effect's wording, in ours: a missing key is a required field, an unexpected one unknown, a named schema an object, a query's number a number. */
const wordsOf = (message: string): string => {
  if (message === "Missing key") return "is required"
  if (message === "Expected no excess property") return "is not known here"
  const words = message
    .replace("a string representing a finite number", "a number")
    .replace("Expected string", "expected text")
    .replace(/^Expected [A-Z]\w*$/, "expected object")
  return words.charAt(0).toLowerCase() + words.slice(1)
}
