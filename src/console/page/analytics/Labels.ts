import { type FilterName, unknownValue } from "./SiteParams.ts"

/** Names of a dimension and of its unknown value. */
interface DimensionWords {
  /** of one value: a chip, the head of a column */
  readonly one: string
  /** of the tab that lists it */
  readonly many: string
  readonly unknown: string
}

export const dimensionWords: Readonly<Record<FilterName, DimensionWords>> = {
  page: { one: "Page", many: "Top pages", unknown: "No page view" },
  entry: { one: "Entry page", many: "Entry", unknown: "No page view" },
  exit: { one: "Exit page", many: "Exit", unknown: "No page view" },
  source: { one: "Source", many: "Sources", unknown: "Direct or unknown" },
  channel: { one: "Channel", many: "Channels", unknown: "Direct or unknown" },
  referrer: { one: "Referrer", many: "Referrers", unknown: "None" },
  campaign: { one: "Campaign", many: "Campaigns", unknown: "No campaign" },
  medium: { one: "Medium", many: "Media", unknown: "None" },
  term: { one: "Term", many: "Terms", unknown: "None" },
  content: { one: "Content", many: "Contents", unknown: "None" },
  country: { one: "Country", many: "Countries", unknown: "Unknown" },
  browser: { one: "Browser", many: "Browsers", unknown: "Unknown" },
  os: { one: "System", many: "Systems", unknown: "Unknown" },
  device: { one: "Device", many: "Devices", unknown: "Unknown" },
  event: { one: "Goal", many: "Goals", unknown: "No goal" },
  hostname: { one: "Host name", many: "Host names", unknown: "Unknown" }
}

const countries = new Intl.DisplayNames("en", { type: "region", fallback: "none" })

/** A country's name, undefined for a code that is none (as `T1`, which some networks send for Tor). */
export const countryName = (code: string): string | undefined =>
  /^[A-Z]{2}$/.test(code) ? countries.of(code) : undefined

/** A value of a dimension as a person reads it. */
export const valueLabel = (dimension: FilterName, value: string | null): string => {
  if (value === null || value === unknownValue) return dimensionWords[dimension].unknown
  if (dimension === "country") return countryName(value) ?? value
  if (dimension === "device") return value.slice(0, 1).toUpperCase() + value.slice(1)
  return value
}
