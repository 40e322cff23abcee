export type EventKind = "pageview" | "event" | "engage"

/** Names of the kinds by their number in the `kind` column. */
export const kindNumbers = { pageview: 1, event: 2, engage: 3 } as const

/** An accepted event as it is logged and stored: no IP address, no User-Agent. '' is unknown. */
export interface StoredEvent {
  readonly site: string
  readonly kind: EventKind
  /** when it happened, epoch milliseconds; at or after the midnight of `day` */
  readonly ts: number
  /** when this server accepted it, epoch milliseconds */
  readonly received: number
  /** identity of 48 bits, good for one site and one UTC day */
  readonly visitor: bigint
  /** the UTC day of that identity, in days since 1970-01-01 (0 to 65535) */
  readonly day: number
  /** the name of a custom event; '' for a page view */
  readonly name: string
  readonly hostname: string
  /** starts with `/`, without query and fragment */
  readonly path: string
  /** the page view's own random id, by which engage pings find it */
  readonly pv: string
  /** visible milliseconds of an engage ping, else 0 */
  readonly engagedMillis: number
  /** without query and fragment */
  readonly referrer: string
  readonly source: string
  readonly channel: string
  readonly utmSource: string
  readonly utmMedium: string
  readonly utmCampaign: string
  readonly utmTerm: string
  readonly utmContent: string
  /** ISO-3166 alpha-2, upper case */
  readonly country: string
  readonly browser: string
  readonly browserVersion: string
  readonly os: string
  /** desktop, mobile, tablet or '' */
  readonly device: string
  /** names and values of the event's properties, index by index; values as text */
  readonly propsKeys: ReadonlyArray<string>
  readonly propsValues: ReadonlyArray<string>
}
