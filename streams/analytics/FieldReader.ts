import { eventLimits, expectations } from "#schemas/analytics/EventLimits.ts"
import type { Props } from "#schemas/analytics/EventFields.ts"
import { FieldFault, expected, required } from "./FieldFault.ts"

/** A parsed JSON object before anything about it is known. Only own keys that a decoder asks for are ever read. */
export type JsonObject = { readonly [key: string]: unknown }

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

export const optionalProps = (input: JsonObject, field: string): Props | null | FieldFault => {
  const value = input[field]
  if (value === undefined || value === null) return null
  if (!isJsonObject(value)) return expected(field, expectations.props)
  const keys = Object.keys(value)
  let fits = keys.length <= eventLimits.propKeys
  for (const key of keys) {
    if (!isPropValue(value[key])) return expected(`${field}.${key}`, expectations.propValue)
    if (key.length === 0 || key.length > eventLimits.propKeyLength) fits = false
  }
  // Checked one by one above, which the type of a parsed object cannot follow.
  return fits ? (value as Props) : expected(field, expectations.props)
}

const isPropValue = (value: unknown): boolean =>
  typeof value === "string"
    ? value.length <= eventLimits.propValueLength
    : typeof value === "number"
      ? Number.isFinite(value)
      : typeof value === "boolean"
