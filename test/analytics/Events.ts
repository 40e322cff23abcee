import type { StoredEvent } from "#streams/analytics/StoredEvent.ts"

const plain: StoredEvent = {
  site: "st_0000000000000000000001",
  kind: "pageview",
  ts: Date.UTC(2026, 10, 21, 12),
  received: Date.UTC(2026, 10, 21, 12),
  visitor: 0x1234_5678_9abc_def0n,
  day: Math.floor(Date.UTC(2026, 10, 21) / 86_400_000),
  name: "",
  hostname: "example.org",
  path: "/",
  pv: "",
  engagedMillis: 0,
  referrer: "",
  source: "",
  channel: "",
  utmSource: "",
  utmMedium: "",
  utmCampaign: "",
  utmTerm: "",
  utmContent: "",
  country: "",
  browser: "",
  browserVersion: "",
  os: "",
  device: "",
  propsKeys: [],
  propsValues: []
}

/** A stored event of noon on 2026-11-21 with no known field but its page, and the test's fields. */
export const storedEvent = (fields: Partial<StoredEvent> = {}): StoredEvent => ({ ...plain, ...fields })
