import { isIPv4 } from "node:net"
import * as Result from "effect/Result"
import * as IpNetwork from "effect/net/IpNetwork"
import * as NetAddress from "effect/net/NetAddress"

/**
 * The client's address behind proxies (TRUST_PROXY). `X-Forwarded-For` is a list that every proxy appends to, so only
 * its right end can be believed: it is walked from the right, past the proxies that are trusted, and the first address
 * that no trusted proxy vouches for is the client. The peer is a function because asking for it is a system call, and
 * behind a number of hops it is not needed.
 */
export interface ClientAddress {
  (peer: () => string, forwardedFor: string): string
  /** whether a trusted proxy handed the request over, so that its headers are not the client's word alone */
  readonly isProxied: (peer: () => string) => boolean
}

/** The address in one canonical text: IPv4 inside IPv6 (`::ffff:192.0.2.1`) is IPv4. undefined when it is none. */
export const canonicalAddress = (text: string): string | undefined => {
  // Proxies mostly send IPv4, which has one way of writing an address.
  if (isIPv4(text)) return text
  const parsed = parse(text)
  return parsed === undefined ? undefined : NetAddress.formatIp(parsed)
}

/** As `canonicalAddress`, from the 4 or 16 bytes of a socket's peer. "" where the socket is already gone. */
export const addressFromBytes = (bytes: Uint8Array): string => {
  if (bytes.length === 4) return `${bytes[0]}.${bytes[1]}.${bytes[2]}.${bytes[3]}`
  if (bytes.length !== 16) return ""
  return NetAddress.formatIp(unmapped(NetAddress.ipv6FromBytesUnsafe(bytes)))
}

/** The smallest block of a provider's customer: an IPv4 address, or the /64 of an IPv6 address in canonical text. */
export const addressBlock = (address: string): string => {
  const parsed = address.includes(":") ? parse(address) : undefined
  return parsed === undefined || !NetAddress.isIpv6Address(parsed)
    ? address
    : Buffer.from(NetAddress.ipv6ToOctets(parsed).slice(0, 8)).toString("hex")
}

/**
 * `trust`: a number of hops, or networks in CIDR notation. Throws on an invalid network: a fault of the options.
 * `onMissing` is called when the address is wanted of a request that a trusted proxy passed on without the header.
 */
export const make = (
  trust: number | ReadonlyArray<string> | undefined,
  onMissing: (peer: string) => void = () => undefined
): ClientAddress => {
  if (trust === undefined || trust === 0) {
    return Object.assign((peer: () => string) => peer(), { isProxied: () => false })
  }
  if (typeof trust === "number") {
    const client = (peer: () => string, forwardedFor: string): string => {
      if (forwardedFor === "") onMissing(peer())
      return byHops(peer, forwardedFor, trust)
    }
    return Object.assign(client, { isProxied: () => true })
  }
  const networks = trust.map((network) =>
    IpNetwork.fromStringUnsafe(network.includes("/") ? network : single(network))
  )
  const client = (peer: () => string, forwardedFor: string): string => {
    if (forwardedFor === "" && isTrusted(peer(), networks)) onMissing(peer())
    return byNetworks(peer, forwardedFor, networks)
  }
  return Object.assign(client, { isProxied: (peer: () => string) => isTrusted(peer(), networks) })
}

/** With n hops the n-th address from the right was appended by the outermost trusted proxy. */
const byHops = (peer: () => string, forwardedFor: string, hops: number): string => {
  const chain = entries(forwardedFor)
  let client: string | undefined
  for (let hop = 1; hop <= hops && hop <= chain.length; hop++) {
    const address = canonicalAddress(chain[chain.length - hop] ?? "")
    if (address === undefined) break
    client = address
  }
  return client ?? peer()
}

const byNetworks = (
  peer: () => string,
  forwardedFor: string,
  networks: ReadonlyArray<IpNetwork.IpNetwork>
): string => {
  const chain = entries(forwardedFor)
  let client = peer()
  for (let index = chain.length - 1; index >= 0 && isTrusted(client, networks); index--) {
    const address = canonicalAddress(chain[index] ?? "")
    if (address === undefined) return client
    client = address
  }
  return client
}

const isTrusted = (address: string, networks: ReadonlyArray<IpNetwork.IpNetwork>): boolean => {
  const parsed = parse(address)
  return parsed !== undefined && networks.some((network) => IpNetwork.contains(network, parsed))
}

const entries = (forwardedFor: string): ReadonlyArray<string> =>
  forwardedFor === "" ? [] : forwardedFor.split(",")

/** Proxies write `192.0.2.1`, `192.0.2.1:4711`, `2001:db8::1` and `[2001:db8::1]:4711`. */
const parse = (entry: string): NetAddress.IpAddress | undefined => {
  const text = entry.trim()
  const bare = text.startsWith("[")
    ? text.slice(1, text.indexOf("]"))
    : text.includes(".") && text.indexOf(":") === text.lastIndexOf(":")
      ? text.replace(/:\d+$/, "")
      : text
  const address = NetAddress.ipFromString(bare)
  return Result.isSuccess(address) ? unmapped(address.success) : undefined
}

const unmapped = (address: NetAddress.IpAddress): NetAddress.IpAddress => {
  if (!NetAddress.isIpv6Address(address)) return address
  const octets = NetAddress.ipv6ToOctets(address)
  const isMapped =
    octets.slice(0, 10).every((octet) => octet === 0) && octets[10] === 255 && octets[11] === 255
  return isMapped ? NetAddress.ipv4FromBytesUnsafe(Uint8Array.from(octets.slice(12))) : address
}

const single = (address: string): string => `${address}/${address.includes(":") ? 128 : 32}`
