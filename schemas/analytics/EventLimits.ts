/**
 * Limits of an event, in UTF-16 units, and the wording of their faults. The schemas and the hand-tuned decoders of
 * streams/analytics both read this table; a property test holds them equal. Source: contract/analytics#collect,
 * contract/analytics#browser-events.
 */
export const eventLimits = {
  nameLength: 120,
  urlLength: 4096,
  /** a browser's longer referrer is cut instead: the page does not choose it */
  referrerLength: 4096,
  userAgentLength: 1024,
  visitorLength: 128,
  idLength: 64,
  pvLength: 64,
  timeZoneLength: 64,
  addressLength: 45,
  timestampTextLength: 40,
  propKeys: 30,
  propKeyLength: 64,
  propValueLength: 256,
  /** one engage ping credits a day of visible time at most */
  engagedMillis: 86_400_000,
  collectEvents: 100
} as const

const text = (maxLength: number): string => `text of 1 to ${maxLength} characters`
const textOrNone = (maxLength: number): string => `text of at most ${maxLength} characters`

/** The expectation of each kind of field, as faults phrase it: `name: expected text of 1 to 120 characters`. */
export const expectations = {
  body: "a JSON object",
  siteId: text(64),
  kind: "pageview, event or engage",
  url: text(eventLimits.urlLength),
  name: text(eventLimits.nameLength),
  browserReferrer: "text",
  referrer: textOrNone(eventLimits.referrerLength),
  timeZone: textOrNone(eventLimits.timeZoneLength),
  pv: textOrNone(eventLimits.pvLength),
  engaged: `a whole number of milliseconds from 0 to ${eventLimits.engagedMillis}`,
  props: `an object of at most ${eventLimits.propKeys} names of 1 to ${eventLimits.propKeyLength} characters`,
  propValue: `text of at most ${eventLimits.propValueLength} characters, a number or a boolean`,
  address: "an IPv4 or IPv6 address",
  userAgent: textOrNone(eventLimits.userAgentLength),
  country: "an ISO-3166 alpha-2 code",
  visitor: textOrNone(eventLimits.visitorLength),
  timestamp: "an ISO-8601 instant with an offset, or epoch milliseconds",
  id: textOrNone(eventLimits.idLength)
} as const
