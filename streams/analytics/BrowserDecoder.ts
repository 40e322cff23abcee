import type { BrowserEvent } from "#schemas/analytics/BrowserEvent.ts"
import { eventLimits, expectations } from "#schemas/analytics/EventLimits.ts"
import { FieldFault, expected, required } from "./FieldFault.ts"
import { isJsonObject, optionalText, requiredText } from "./FieldReader.ts"
import type { Decoded, JsonObject } from "./FieldReader.ts"

export type DecodedBrowserEvent = Decoded<BrowserEvent>

/**
 * The schema `BrowserEvent` by hand, for the hot path: same events, same faults, first fault in the schema's order of
 * keys (test/analytics/Decoders.test.ts holds them equal).
 */
export const decodeBrowserEvent = (input: unknown): DecodedBrowserEvent | FieldFault => {
  if (!isJsonObject(input)) return expected("body", expectations.body)
  const s = requiredText(input, "s", 64, expectations.siteId)
  if (s instanceof FieldFault) return s
  const k = kindOf(input)
  if (k instanceof FieldFault) return k
  const u = optionalText(input, "u", 1, eventLimits.urlLength, expectations.url)
  if (u instanceof FieldFault) return u
  const n = optionalText(input, "n", 1, eventLimits.nameLength, expectations.name)
  if (n instanceof FieldFault) return n
  const r = optionalText(input, "r", 0, Infinity, expectations.browserReferrer)
  if (r instanceof FieldFault) return r
  const tz = optionalText(input, "tz", 0, eventLimits.timeZoneLength, expectations.timeZone)
  if (tz instanceof FieldFault) return tz
  const pv = optionalText(input, "pv", 0, eventLimits.pvLength, expectations.pv)
  if (pv instanceof FieldFault) return pv
  const e = engagedOf(input)
  if (e instanceof FieldFault) return e
  return { s, k, u, n, r, tz, pv, e, p: input.p ?? null }
}

const kindOf = (input: JsonObject): BrowserEvent["k"] | FieldFault => {
  const kind = input.k
  if (kind === "pageview" || kind === "event" || kind === "engage") return kind
  return kind === undefined ? required("k") : expected("k", expectations.kind)
}

const engagedOf = (input: JsonObject): number | null | FieldFault => {
  const millis = input.e
  if (millis === undefined || millis === null) return null
  if (
    typeof millis === "number" &&
    Number.isInteger(millis) &&
    millis >= 0 &&
    millis <= eventLimits.engagedMillis
  ) {
    return millis
  }
  return expected("e", expectations.engaged)
}
