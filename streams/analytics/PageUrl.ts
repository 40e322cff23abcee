import { BoundedCache } from "./BoundedCache.ts"
import { displayHostname, displayPath } from "./DisplayForm.ts"

/** The stored part of an address: without its fragment and, beyond the utm fields, its query. */
export interface PageUrl {
  /** lower case, punycode, without port, `www.` and final dot */
  readonly hostname: string
  /** the same with its international labels in Unicode */
  readonly shownHostname: string
  /** starts with `/`, in the form that people read; cut at `pathLengthMax` */
  readonly path: string
  /** with its `?`; '' when there is none */
  readonly query: string
}

/** Longer paths are cut: they hold a user's state, not a page. */
export const pathLengthMax = 2048

/** RFC 1035, 2.3.4, less the length bytes. */
const hostnameLengthMax = 253

/** An absolute http(s) URL as browsers read it (WHATWG URL); undefined for everything else. */
export const parsePageUrl = (text: string): PageUrl | undefined =>
  text.length > rememberedLengthMax ? parse(text) : remembered.get(text)

const parse = (text: string): PageUrl | undefined => {
  if (!/^https?:\/\//i.test(text)) return undefined
  const url = URL.parse(text)
  if (url === null || url.hostname === "" || url.hostname.length > hostnameLengthMax) return undefined
  const hostname = bareHostname(url.hostname)
  return {
    hostname,
    shownHostname: displayHostname(hostname),
    path: cutPath(displayPath(url.pathname)),
    query: url.search
  }
}

/** Half of a surrogate pair is no text. */
const cutPath = (path: string): string => {
  if (path.length <= pathLengthMax) return path
  const cut = path.slice(0, pathLengthMax)
  return cut.isWellFormed() ? cut : cut.slice(0, -1)
}

/** Pages and referrers repeat, and finding one again costs less than reading it. At most 20 MB of text. */
const rememberedLengthMax = 256
const remembered = new BoundedCache(20_000, parse)

/** `www.Example.org.` and `example.org` are one place. */
export const bareHostname = (hostname: string): string => {
  const end = hostname.endsWith(".") ? hostname.length - 1 : hostname.length
  return hostname.startsWith("www.") && hostname.indexOf(".", 4) > 0 && end > 4
    ? hostname.slice(4, end)
    : hostname.slice(0, end)
}

/** Whether a hostname is the domain or one below it; both bare. */
export const isWithin = (hostname: string, domain: string): boolean =>
  hostname === domain ||
  (hostname.endsWith(domain) && hostname.charAt(hostname.length - domain.length - 1) === ".")
