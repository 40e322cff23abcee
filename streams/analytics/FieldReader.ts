import { FieldFault, expected, required } from "./FieldFault.ts"

/** A parsed JSON object before anything about it is known. Only own keys that a decoder asks for are ever read. */
export type JsonObject = { readonly [key: string]: unknown }

/** A decoded event with null for every absent key, so that all of them have one shape. */
export type Decoded<Event> = {
  readonly [K in keyof Event]-?: undefined extends Event[K] ? Exclude<Event[K], undefined> | null : Event[K]
}

export const isJsonObject = (input: unknown): input is JsonObject =>
  typeof input === "object" && input !== null && !Array.isArray(input)

/** The schemas' `textField`, for a required key. */
export const requiredText = (
  input: JsonObject,
  field: string,
  maxLength: number,
  what: string
): string | FieldFault => {
  const value = input[field]
  if (value === undefined) return required(field)
  if (typeof value !== "string" || value.length === 0 || value.length > maxLength)
    return expected(field, what)
  return value
}

/** The schemas' `optional(textField)`: null where the key is absent or null. */
export const optionalText = (
  input: JsonObject,
  field: string,
  minLength: number,
  maxLength: number,
  what: string
): string | null | FieldFault => {
  const value = input[field]
  if (value === undefined || value === null) return null
  if (typeof value !== "string" || value.length < minLength || value.length > maxLength)
    return expected(field, what)
  return value
}
