import { domainToASCII, domainToUnicode } from "node:url"

/**
 * The escapes that stay in a path, because their characters would mean something else: `#`, `%`, `*` (any text in a
 * filter), `/`, `?`, the backslash that a URL takes for a slash, and control characters.
 */
const keptEscape = /%(2[35AFaf]|3[Ff]|5[Cc]|[01][0-9A-Fa-f]|7[Ff])/g

/** Invisible characters that would show a text otherwise than it is; the joiners are letters of some scripts. */
const misleading = /[\u0080-\u009f\p{Zl}\p{Zp}]|(?![\u200c\u200d])\p{Cf}/gu

/**
 * A path as people read and write it, its escapes decoded as UTF-8. Invalid UTF-8 stays as it is. Decoding twice
 * changes nothing, so that a filter may be given in either form. Source: contract/analytics#pages-and-sources.
 */
export const displayPath = (path: string): string => {
  if (!path.includes("%")) return path
  try {
    return decodeURIComponent(path.replace(keptEscape, keepEscape)).replace(misleading, encodeURIComponent)
  } catch {
    // A stray `%`, or an encoding older than UTF-8: there is no other form to show.
    return path
  }
}

const keepEscape = (_: string, digits: string): string => `%25${digits.toUpperCase()}`

/** A host name with its international labels in Unicode, unless that is no way to write it. */
export const displayHostname = (hostname: string): string => {
  if (!hostname.includes("xn--")) return hostname
  const shown = domainToUnicode(hostname)
  return shown !== "" && domainToASCII(shown) === hostname ? shown : hostname
}

/** A path in the form in which it goes into a URL again: with its escapes. */
export const escapedPath = (path: string): string =>
  // oxlint-disable-next-line no-control-regex
  /^[\x21-\x7e]*$/.test(path) ? path : path.replace(/[^\x21-\x7e]+/g, encodeURIComponent)
