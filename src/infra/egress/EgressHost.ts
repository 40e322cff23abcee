import * as Result from "effect/Result"
import * as Host from "effect/net/Host"
import * as NetAddress from "effect/net/NetAddress"
import type { EgressReason } from "./EgressError.ts"

/** An address, or a name in lower case, in ASCII (`xn--…`), without the dot at its end. */
export type EgressHost = NetAddress.IpAddress | Host.DomainName

/** A URL would end the host at one of these, decode it, or leave it out. */
// oxlint-disable-next-line no-control-regex
const notInHosts = /[\u0000-\u0020\u007f#%/?@\\:<>^|[\]]/

/**
 * Reads a host as strangers write it. The parser of URLs goes first: it knows every notation that a resolver would take for
 * an IPv4 address (`2130706433`, `0x7f.1`, `0177.0.0.1`, `127.1`, `１２７.0.0.1`), so the rest is a name.
 */
export const hostOf = (text: string): Result.Result<EgressHost, EgressReason> => {
  const bare = text.startsWith("[") && text.endsWith("]") ? text.slice(1, -1) : text
  if (bare.includes(":")) {
    if (bare.includes("%")) return Result.fail("address with a zone")
    return Result.mapError(NetAddress.ipv6FromString(bare), () => "not a host name" as const)
  }
  const url = notInHosts.test(text) || !URL.canParse(`http://${text}`) ? undefined : new URL(`http://${text}`)
  const name = url?.hostname.replace(/\.$/, "") ?? ""
  const address = NetAddress.ipv4FromString(name)
  if (Result.isSuccess(address)) return Result.succeed(address.success)
  return name.endsWith(".")
    ? Result.fail("not a host name")
    : Result.mapError(Host.domainNameFromString(name), () => "not a host name" as const)
}

/** As people read it, and as the certificate has it: without brackets. */
export const textOf = (host: EgressHost): string =>
  typeof host === "string" ? host : NetAddress.formatIp(host)

/** The host of a URL for a message, without brackets. */
export const hostIn = (url: URL): string => url.hostname.replace(/^\[|\]$/g, "")

/** A stranger's text that is no host, for a message. */
export const quoted = (text: string): string => JSON.stringify(text.slice(0, 100))

export const isPort = (port: number): boolean => Number.isInteger(port) && port >= 1 && port <= 65_535
