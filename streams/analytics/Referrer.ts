import { isWithin, type PageUrl, parsePageUrl } from "./PageUrl.ts"
import { noSource, sourceOfApp, sourceOfHostname, type Source } from "./Sources.ts"

export interface Referrer {
  /** scheme, host and path in the form that people read, or `android-app://` and package: no query, no fragment; '' where there is no source */
  readonly referrer: string
  /** `noSource` for none, for the site itself and for what is no referrer */
  readonly source: Source
}

const referrerOfPage = (text: string, page: PageUrl): string =>
  `${text.charAt(4) === ":" ? "http" : "https"}://${page.shownHostname}${page.path}`

const none: Referrer = { referrer: "", source: noSource }

/** The visitor's source according to the referrer of a page on `domain`. */
export const referrerOf = (
  text: string | null,
  domain: string,
  pageOf: (url: string) => PageUrl | undefined
): Referrer => {
  if (text === null || text === "") return none
  const page = pageOf(text)
  if (page === undefined) return appOf(text)
  if (isWithin(page.hostname, domain)) return none
  return { referrer: referrerOfPage(text, page), source: sourceOfHostname(page.hostname) }
}

/** The referrer that a text means, in the form in which it is stored: either form of an address is the same one. */
export const storedReferrer = (text: string): string => {
  const page = parsePageUrl(text)
  return page === undefined ? text : referrerOfPage(text, page)
}

/** Browsers on Android name the app that opened the page. Text behind the package says nothing about the visitor. */
const appOf = (text: string): Referrer => {
  const packageName = appPattern.exec(text)?.[1]
  if (packageName === undefined) return none
  return { referrer: `android-app://${packageName}`, source: sourceOfApp(packageName) }
}

/** A package name is at least two words with a dot between them. */
const appPattern = /^android-app:\/\/(?=[^/]{3,253}(?:\/|$))([a-z]\w*(?:\.[a-z]\w*)+)(?:\/|$)/i
