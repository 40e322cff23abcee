import { Schema } from "effect"
import { EngagedMillis, Props, oneOf, optional, propsDescription, textField } from "./EventFields.ts"
import { eventLimits, expectations } from "./EventLimits.ts"

/**
 * The body of `POST /api/event`: one JSON object, under any Content-Type. Unknown keys are ignored; of duplicate keys
 * the last one holds, as in `JSON.parse`. Source: contract/analytics#browser-events.
 */
export const BrowserEvent = Schema.Struct({
  s: textField(1, 64, expectations.siteId).annotate({ description: "Public site id" }),
  k: oneOf(["pageview", "event", "engage"], expectations.kind),
  u: optional(
    textField(1, eventLimits.urlLength, expectations.url).annotate({
      examples: ["https://example.com/pricing"]
    }),
    expectations.url
  ).annotateKey({
    description: "Page URL; required for pageview and event"
  }),
  n: optional(textField(1, eventLimits.nameLength, expectations.name), expectations.name).annotateKey({
    description: "Event name; required for event"
  }),
  r: optional(Schema.String, expectations.browserReferrer).annotateKey({ description: "Referrer" }),
  tz: optional(
    textField(0, eventLimits.timeZoneLength, expectations.timeZone),
    expectations.timeZone
  ).annotateKey({ description: "IANA time zone" }),
  pv: optional(textField(0, eventLimits.pvLength, expectations.pv), expectations.pv).annotateKey({
    description: "Random id of the page view; required for engage"
  }),
  e: optional(EngagedMillis, expectations.engaged).annotateKey({
    description: "Visible milliseconds; required for engage"
  }),
  p: optional(Props, expectations.props).annotateKey({
    description: `Properties of a custom event. ${propsDescription}`
  })
}).annotate({ identifier: "BrowserEvent", message: `Expected ${expectations.body}` })

export type BrowserEvent = typeof BrowserEvent.Type
