import { createHmac, hash } from "node:crypto"

/** A day's secret, without which no visitor can be identified. `text` is the hashed form, the salt in hexadecimal. */
export interface DaySalt {
  /** days since 1970-01-01 */
  readonly day: number
  readonly text: string
}

/**
 * The 48-bit identity of an address and User-Agent on one site and day: SHA-256 over the salt (256 random bits) and
 * these, cut to 48 bits. Without the salt it is as good as random; cut, it cannot be extended. Two of a site's 100,000
 * visitors a day are taken for one on one day in 150 years; each bit more would cost the store 1/6 of a byte an event.
 * Source: contract/analytics#visitors.
 */
export const visitorHash = (
  salt: DaySalt,
  site: string,
  day: number,
  address: string,
  userAgent: string
): bigint =>
  // The address is canonical and so has no space in it: no two different visitors give one text.
  BigInt(`0x${hash("sha256", `${salt.text} ${site} ${day} ${address} ${userAgent}`, "hex").slice(0, 12)}`)

/**
 * The identity of a caller's own visitor key: HMAC-SHA-256 under the site's persistent secret, the UTC day mixed in, so
 * that it is an identity of one day like every other and a late event can still meet it.
 */
export const visitorKeyHash = (secret: Uint8Array, day: number, key: string): bigint =>
  createHmac("sha256", secret).update(`${day} ${key}`).digest().readBigUInt64BE(0) >> 16n
