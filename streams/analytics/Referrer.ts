import { isWithin, type PageUrl } from "./PageUrl.ts"
import { sourceNames } from "./SourceNames.ts"

export interface Referrer {
  /** scheme, host and path: no query, no fragment; '' for none, for the site itself and for what is no http(s) URL */
  readonly referrer: string
  /** the name of the place, else its domain; '' as above */
  readonly source: string
}

const none: Referrer = { referrer: "", source: "" }

/** What the referrer of a page on `domain` says about where the visitor came from. */
export const referrerOf = (
  text: string | null,
  domain: string,
  pageOf: (url: string) => PageUrl | undefined
): Referrer => {
  if (text === null || text === "") return none
  const page = pageOf(text)
  if (page === undefined || isWithin(page.hostname, domain)) return none
  const scheme = text.charAt(4) === ":" ? "http" : "https"
  return { referrer: `${scheme}://${page.hostname}${page.path}`, source: sourceOf(page.hostname) }
}

/** The name for the hostname or the nearest domain above it that has one. */
const sourceOf = (hostname: string): string => {
  let domain = hostname
  for (;;) {
    const name = sourceNames.get(domain)
    if (name !== undefined) return name
    const dot = domain.indexOf(".")
    if (dot < 0) return countrySearch.test(hostname) ? "Google" : hostname
    domain = domain.slice(dot + 1)
  }
}

/** google.de, google.co.uk and their sub-domains. */
const countrySearch = /(?:^|\.)google\.(?:[a-z]{2,3}|com?\.[a-z]{2})$/
