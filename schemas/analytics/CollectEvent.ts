import { Schema } from "effect"
import { CountryCode, EventTimestamp, Props, optional, propsDescription, textField } from "./EventFields.ts"
import { eventLimits, expectations } from "./EventLimits.ts"

/**
 * One event of `POST /api/v1/collect`. Unknown keys are ignored, an empty `ip`, `visitor` or `id` is an absent one; of duplicate keys the last one holds. `id` is the
 * caller's own: a repeat within 24 hours is answered `duplicate`.
 * Source: contract/analytics#collect.
 */
export const CollectEvent = Schema.Struct({
  url: textField(1, eventLimits.urlLength, expectations.url).annotate({
    description: "Absolute http(s) URL, or a path starting with /",
    examples: ["https://example.com/pricing?utm_source=newsletter", "/pricing"]
  }),
  name: optional(textField(1, eventLimits.nameLength, expectations.name), expectations.name).annotateKey({
    description: "pageview (default) or the name of a custom event"
  }),
  ip: optional(
    textField(0, eventLimits.addressLength, expectations.address).annotate({ examples: ["203.0.113.7"] }),
    expectations.address
  ).annotateKey({
    description: "The visitor's address; hashed, never stored"
  }),
  userAgent: optional(
    textField(0, eventLimits.userAgentLength, expectations.userAgent),
    expectations.userAgent
  ).annotateKey({ description: "The visitor's User-Agent" }),
  referrer: optional(
    textField(0, eventLimits.referrerLength, expectations.referrer),
    expectations.referrer
  ).annotateKey({ description: "Referer of the original request; its query string is dropped" }),
  country: optional(CountryCode, expectations.country).annotateKey({
    description: "ISO-3166 alpha-2; empty and codes that stand for no country (T1, XX) are unknown"
  }),
  visitor: optional(
    textField(0, eventLimits.visitorLength, expectations.visitor),
    expectations.visitor
  ).annotateKey({ description: "The caller's own anonymised visitor key, instead of ip and userAgent" }),
  props: optional(Props, expectations.props).annotateKey({ description: propsDescription }),
  timestamp: optional(EventTimestamp, expectations.timestamp).annotateKey({
    description: "ISO-8601 or epoch milliseconds; at most 7 days ago, never in the future"
  }),
  id: optional(textField(0, eventLimits.idLength, expectations.id), expectations.id).annotateKey({
    description: "The caller's own id of the event, against counting it twice"
  })
}).annotate({ identifier: "CollectEvent", message: `Expected ${expectations.body}` })

export type CollectEvent = typeof CollectEvent.Type

/** The reason why a good event was not stored. `spam`: its referrer is a known source of spam. */
export const CollectReason = Schema.Literals(["bot", "duplicate", "spam"])

/** The outcome of one event of a batch. `error` names the field; `reason` tells why a good event was not stored. */
export const CollectResult = Schema.Struct({
  index: Schema.Int,
  stored: Schema.Boolean,
  reason: Schema.optionalKey(CollectReason),
  error: Schema.optionalKey(Schema.String)
})
export type CollectResult = typeof CollectResult.Type

export const CollectAnswer = Schema.Struct({
  accepted: Schema.Int,
  results: Schema.Array(CollectResult)
}).annotate({ identifier: "CollectAnswer" })
export type CollectAnswer = typeof CollectAnswer.Type
