import { parse } from "tldts"
import { bareHostname } from "#streams/analytics/PageUrl.ts"

/**
 * The domain of a site as it is stored: what a person pasted, without scheme, user, port, path and `www.`, in lower
 * case, international names as punycode. undefined where that leaves no host name. Source: contract/analytics#sites.
 */
export const normaliseDomain = (text: string): string | undefined => {
  const url = URL.parse(/^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`)
  if (url === null || !/^https?:$/.test(url.protocol) || url.hostname === "") return undefined
  const hostname = bareHostname(url.hostname)
  // Names without a dot (localhost, an intranet host) and addresses are where people try things out.
  const { isIp, publicSuffix, isIcann } = parse(hostname)
  // Every site under `com` or `co.uk` would be its sub-domain.
  if (isIcann === true && publicSuffix === hostname) return undefined
  const isName = /^(?!-)[a-z0-9-]{1,63}(?<!-)(\.(?!-)[a-z0-9_-]{1,63}(?<!-))*$/.test(hostname)
  return (isIp === true || isName) && hostname.length <= 253 ? hostname : undefined
}
