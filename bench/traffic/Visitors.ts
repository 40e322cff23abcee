import { Choice } from "./Chances.ts"
import type { Random } from "./Random.ts"
import { userAgent } from "./UserAgents.ts"

/** A person's browser on one day. */
export interface Visitor {
  /** IPv4; two of one day never share one */
  readonly address: string
  readonly userAgent: string
  /** ISO-3166 alpha-2, as a CDN's header would say it */
  readonly country: string
  /** IANA name */
  readonly timeZone: string
}

type Place = readonly [country: string, timeZone: string]

/** Visitors of a European shop with readers everywhere, in per mille. */
const places = new Choice<Place>([
  [["DE", "Europe/Berlin"], 290],
  [["US", "America/New_York"], 95],
  [["US", "America/Chicago"], 45],
  [["US", "America/Denver"], 15],
  [["US", "America/Los_Angeles"], 60],
  [["GB", "Europe/London"], 70],
  [["AT", "Europe/Vienna"], 45],
  [["CH", "Europe/Zurich"], 40],
  [["FR", "Europe/Paris"], 40],
  [["NL", "Europe/Amsterdam"], 32],
  [["IN", "Asia/Kolkata"], 36],
  [["PL", "Europe/Warsaw"], 22],
  [["IT", "Europe/Rome"], 20],
  [["ES", "Europe/Madrid"], 19],
  [["CA", "America/Toronto"], 17],
  [["CA", "America/Vancouver"], 6],
  [["SE", "Europe/Stockholm"], 13],
  [["BE", "Europe/Brussels"], 12],
  [["CZ", "Europe/Prague"], 11],
  [["BR", "America/Sao_Paulo"], 11],
  [["DK", "Europe/Copenhagen"], 9],
  [["AU", "Australia/Sydney"], 9],
  [["JP", "Asia/Tokyo"], 8],
  [["RU", "Europe/Moscow"], 7],
  [["NO", "Europe/Oslo"], 7],
  [["FI", "Europe/Helsinki"], 6],
  [["PT", "Europe/Lisbon"], 6],
  [["RO", "Europe/Bucharest"], 5],
  [["HU", "Europe/Budapest"], 5],
  [["TR", "Europe/Istanbul"], 5],
  [["CN", "Asia/Shanghai"], 5],
  [["UA", "Europe/Kyiv"], 4],
  [["GR", "Europe/Athens"], 4],
  [["IE", "Europe/Dublin"], 4],
  [["MX", "America/Mexico_City"], 4],
  [["ID", "Asia/Jakarta"], 4],
  [["KR", "Asia/Seoul"], 3],
  [["SG", "Asia/Singapore"], 3],
  [["IL", "Asia/Jerusalem"], 2],
  [["ZA", "Africa/Johannesburg"], 2],
  [["AR", "America/Argentina/Buenos_Aires"], 2],
  [["VN", "Asia/Ho_Chi_Minh"], 2],
  [["PH", "Asia/Manila"], 2],
  [["NG", "Africa/Lagos"], 1],
  [["NZ", "Pacific/Auckland"], 1],
  [["LU", "Europe/Luxembourg"], 1]
])

/** 2^28 addresses of 77.0.0.0 to 92.255.255.255; neighbours in number are none in address. */
const addressOf = (number: number): string => {
  const mixed = Math.imul(number, 0x9e3779b1) & 0xfffffff
  return `${77 + (mixed >>> 24)}.${(mixed >>> 16) & 255}.${(mixed >>> 8) & 255}.${mixed & 255}`
}

/** The visitor of that number, and of what is drawn. */
export const visitorOf = (next: Random, number: number): Visitor => {
  const [country, timeZone] = places.draw(next)
  return { address: addressOf(number), userAgent: userAgent(next), country, timeZone }
}
