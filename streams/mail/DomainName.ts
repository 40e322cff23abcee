import { domainToASCII } from "node:url"

/** Characters in ASCII. Source: RFC 1035, 2.3.4. */
const nameMax = 253

const label = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/

/** Parsers of URLs and sockets take such a last label for the end of an IPv4 address. */
const numericLabel = /^(?:\d+|0x[\da-f]*)$/

/**
 * A name of the DNS with two labels or more, in lower-case ASCII; names of other scripts become punycode (UTS 46).
 * Undefined where the text is not one. Source: RFC 1123, 2.1.
 */
export const domainNameOf = (text: string): string | undefined => {
  // Beyond letters and digits the mapping of UTS 46 would turn signs into dots, or drop them.
  if (text.length > nameMax || !/^[\p{L}\p{M}\p{Nd}.-]+$/u.test(text)) return undefined
  const name = domainToASCII(text)
  const labels = name.split(".")
  const isName =
    labels.length >= 2 &&
    name.length <= nameMax &&
    labels.every((part) => label.test(part)) &&
    !numericLabel.test(labels.at(-1) ?? "")
  return isName ? name : undefined
}
