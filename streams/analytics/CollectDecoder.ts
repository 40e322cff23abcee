import type { CollectEvent } from "#schemas/analytics/CollectEvent.ts"
import { eventLimits, expectations } from "#schemas/analytics/EventLimits.ts"
import { FieldFault, expected } from "./FieldFault.ts"
import { isJsonObject, optionalText, requiredText } from "./FieldReader.ts"
import type { Decoded, JsonObject } from "./FieldReader.ts"

export type DecodedCollectEvent = Decoded<CollectEvent>

/**
 * The schema `CollectEvent` by hand, for the hot path: same events, same faults, first fault in the schema's order of
 * keys (test/analytics/Decoders.test.ts holds them equal).
 */
export const decodeCollectEvent = (input: unknown): DecodedCollectEvent | FieldFault => {
  if (!isJsonObject(input)) return expected("body", expectations.body)
  const url = requiredText(input, "url", eventLimits.urlLength, expectations.url)
  if (url instanceof FieldFault) return url
  const name = optionalText(input, "name", 1, eventLimits.nameLength, expectations.name)
  if (name instanceof FieldFault) return name
  const ip = optionalText(input, "ip", 0, eventLimits.addressLength, expectations.address)
  if (ip instanceof FieldFault) return ip
  const userAgent = optionalText(input, "userAgent", 0, eventLimits.userAgentLength, expectations.userAgent)
  if (userAgent instanceof FieldFault) return userAgent
  const referrer = optionalText(input, "referrer", 0, eventLimits.referrerLength, expectations.referrer)
  if (referrer instanceof FieldFault) return referrer
  const country = countryOf(input)
  if (country instanceof FieldFault) return country
  const visitor = optionalText(input, "visitor", 0, eventLimits.visitorLength, expectations.visitor)
  if (visitor instanceof FieldFault) return visitor
  const timestamp = timestampOf(input)
  if (timestamp instanceof FieldFault) return timestamp
  const id = optionalText(input, "id", 0, eventLimits.idLength, expectations.id)
  if (id instanceof FieldFault) return id
  return { url, name, ip, userAgent, referrer, country, visitor, props: input.props ?? null, timestamp, id }
}

const countryOf = (input: JsonObject): string | null | FieldFault => {
  const country = optionalText(input, "country", 0, 2, expectations.country)
  return typeof country === "string" && !/^(?:|[A-Za-z][A-Za-z0-9])$/.test(country)
    ? expected("country", expectations.country)
    : country
}

const timestampOf = (input: JsonObject): string | number | null | FieldFault => {
  const timestamp = input.timestamp
  if (timestamp === undefined || timestamp === null) return null
  if (typeof timestamp === "number" && Number.isFinite(timestamp)) return timestamp
  if (typeof timestamp === "string" && timestamp.length <= eventLimits.timestampTextLength) return timestamp
  return expected("timestamp", expectations.timestamp)
}
