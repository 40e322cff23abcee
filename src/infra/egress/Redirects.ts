import { EgressFailed } from "./EgressError.ts"
import { hostIn } from "./EgressHost.ts"

/** One request of a chain of redirects. */
export interface Hop {
  readonly url: URL
  readonly method: string
  /** names in lower case */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Uint8Array | null
}

/** Statuses that the Fetch standard calls redirects: 300 and 304 are none. */
export const isRedirect = (status: number): boolean => [301, 302, 303, 307, 308].includes(status)

/** Headers about the body, which leave with it (Fetch, "request-body-header name"), and those that frame it. */
const aboutBody = [
  "content-encoding",
  "content-language",
  "content-location",
  "content-type",
  "content-length"
]
/** Headers that are the caller's word to one origin; the Fetch standard names the first, browsers keep the others. */
const credentials = ["authorization", "cookie", "proxy-authorization"]

const without = (
  headers: Readonly<Record<string, string>>,
  names: ReadonlyArray<string>
): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !names.includes(name)))

/**
 * The request that a redirect leads to, as the Fetch standard has it (4.4, HTTP-redirect fetch): POST becomes GET after 301 and
 * 302, every method but HEAD after 303, and the body leaves with it; credentials stay with their origin.
 */
export const redirected = (
  { body, headers, method, url }: Hop,
  status: number,
  location: string
): Hop | EgressFailed => {
  const next = URL.canParse(location, url.href) ? new URL(location, url) : undefined
  if (next === undefined)
    return new EgressFailed({ host: hostIn(url), kind: "redirect", problem: "it redirects to no URL" })
  const isGet = status === 303 ? method !== "GET" && method !== "HEAD" : status < 303 && method === "POST"
  const kept = next.origin === url.origin ? headers : without(headers, credentials)
  return isGet
    ? { url: next, method: "GET", headers: without(kept, aboutBody), body: null }
    : { url: next, method, headers: kept, body }
}
