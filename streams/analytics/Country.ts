import { getAllTimezones } from "countries-and-timezones"

/** ISO-3166 alpha-2 by IANA time zone, aliases included; zones of no country (UTC, Etc/…) are not in it. */
const countriesByZone: ReadonlyMap<string, string> = new Map(
  Object.values(getAllTimezones({ deprecated: true })).flatMap((zone) =>
    zone.countries[0] === undefined ? [] : [[zone.name, zone.countries[0]] as const]
  )
)

/** The country of a time zone: its first one where several share it; '' for an unknown zone. */
export const countryOfZone = (zone: string | null): string =>
  zone === null ? "" : (countriesByZone.get(zone) ?? "")

/** Letters that stand for no country: unknown, somewhere in Europe, somewhere in Asia or the Pacific. */
const pseudoCodes: ReadonlySet<string> = new Set(["XX", "ZZ", "EU", "AP"])

/** A CDN's or caller's code in upper case; '' for what is none, such as `T1` (Tor). */
export const countryOfCode = (code: string): string => {
  if (code.length !== 2 || !/^[A-Za-z]{2}$/.test(code)) return ""
  const upper = code.toUpperCase()
  return pseudoCodes.has(upper) ? "" : upper
}
