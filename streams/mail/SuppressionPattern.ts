import { addressOf, shown } from "./Addresses.ts"
import { domainNameOf } from "./DomainName.ts"

/**
 * The form in which a suppression is kept: an address in lower case, or `*@` and a domain. Undefined where the text is
 * neither. Servers may tell local parts apart by their case (RFC 5321, 2.4), but none of note does, and mail to the one
 * who opted out as `Ada@` must not come as `ada@`.
 */
export const suppressionPatternOf = (text: string): string | undefined => {
  if (!text.startsWith("*@")) return addressOf(text)?.address.toLowerCase()
  const domain = domainNameOf(text.slice(2))
  return domain === undefined ? undefined : `*@${domain}`
}

export const notAnAddress = (text: string): string =>
  `${shown(text)} is neither an address nor *@ and a domain`

/** The patterns that hold for an address: its own, and that of all of its domain. Sub-domains are others. */
export const patternsFor = (address: string): readonly [own: string, domain: string] => {
  const own = address.toLowerCase()
  return [own, `*${own.slice(own.lastIndexOf("@"))}`]
}

/** Why mail is not sent. */
export type SuppressionReason = "hard_bounce" | "complaint" | "manual" | "unsubscribe"

/** Those who opted out still get mail that is not bulk. */
export const scopeOf = (reason: SuppressionReason): "all" | "bulk" =>
  reason === "unsubscribe" ? "bulk" : "all"
