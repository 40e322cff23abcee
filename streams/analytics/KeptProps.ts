import { eventLimits } from "#schemas/analytics/EventLimits.ts"
import { isJsonObject } from "./FieldReader.ts"

/** The properties of an event that are stored: names and values index by index, values as text. */
export interface KeptProps {
  readonly keys: ReadonlyArray<string>
  readonly values: ReadonlyArray<string>
  /** whether anything was sent that is no property */
  readonly isCut: boolean
}

const noProps: KeptProps = { keys: [], values: [], isCut: false }
const noMap: KeptProps = { keys: [], values: [], isCut: true }

/** The stored part of the sent properties. Null is the same as absent. Source: contract/analytics#properties. */
export const keptProps = (sent: unknown): KeptProps => {
  if (sent === null || sent === undefined) return noProps
  if (!isJsonObject(sent)) return noMap
  const keys: Array<string> = []
  const values: Array<string> = []
  let isCut = false
  for (const key of Object.keys(sent)) {
    const value = sent[key]
    if (value === null) continue
    if (keys.length < eventLimits.propKeys && isKey(key) && isValue(value)) {
      keys.push(key)
      values.push(String(value))
    } else isCut = true
  }
  return { keys, values, isCut }
}

const isKey = (key: string): boolean => key.length > 0 && key.length <= eventLimits.propKeyLength

const isValue = (value: unknown): value is string | number | boolean =>
  typeof value === "string"
    ? value.length <= eventLimits.propValueLength
    : typeof value === "number"
      ? Number.isFinite(value)
      : typeof value === "boolean"
