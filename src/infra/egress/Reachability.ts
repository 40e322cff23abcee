import { readFileSync } from "node:fs"
import type { NetworkInterfaceInfo } from "node:os"
import { join } from "node:path"
import * as IpNetwork from "effect/net/IpNetwork"
import * as NetAddress from "effect/net/NetAddress"
import { type EgressReason, openReasons } from "./EgressError.ts"

interface Block {
  readonly network: IpNetwork.IpNetwork
  /** as the registry has it: true, false, n/a, deprecated */
  readonly reachable: string
  /** undefined: its addresses may be reached */
  readonly reason: EgressReason | undefined
}

const blockOf = (line: string): Block => {
  const [network = "", reachable = "", words = "", name, source] = line.split("\t")
  const reason = openReasons.find((known) => known === words)
  if (source === undefined || (reason === undefined && words !== "-"))
    throw new Error(`SpecialPurpose.tsv: not a block: ${name ?? line}`)
  return { network: IpNetwork.fromStringUnsafe(network), reachable, reason }
}

/** The lines of SpecialPurpose.tsv, whose head says how they are written; the smallest blocks first. */
export const blocks: ReadonlyArray<Block> = readFileSync(
  join(import.meta.dirname, "SpecialPurpose.tsv"),
  "utf8"
)
  .split("\n")
  .filter((line) => line !== "" && !line.startsWith("#"))
  .map(blockOf)
  .sort((one, other) => other.network.prefixLength - one.network.prefixLength)

/** The last 64 bits of an ISATAP address are `0:5efe` or `200:5efe` (its own IPv4 address is a global one) and that address. */
const isIsatap = (octets: ReadonlyArray<number>): boolean =>
  (octets[8] === 0 || octets[8] === 2) && octets[9] === 0 && octets[10] === 0x5e && octets[11] === 0xfe

/** Why an address is not one of the Internet's hosts, going by itself; undefined where it is. */
export const specialPurposeOf = (address: NetAddress.IpAddress): EgressReason | undefined => {
  const reason = blocks.find(({ network }) => IpNetwork.contains(network, address))?.reason
  if (reason !== undefined || !NetAddress.isIpv6Address(address)) return reason
  return isIsatap(NetAddress.ipv6ToOctets(address)) ? "ISATAP address" : undefined
}

/**
 * The IPv4 address that a gateway or tunnel would send to in the place of this one: those of RFC 4291, 6052 (with 96 bits of
 * prefix), 3056, 4380 (inverted: the client's own) and 5214.
 */
export const embeddedIpv4 = (address: NetAddress.IpAddress): NetAddress.Ipv4Address | undefined => {
  if (!NetAddress.isIpv6Address(address)) return undefined
  const octets = NetAddress.ipv6ToOctets(address)
  const at = (first: number, inverted = 0) =>
    NetAddress.ipv4FromBytesUnsafe(
      Uint8Array.from(octets.slice(first, first + 4), (octet) => octet ^ inverted)
    )
  switch (specialPurposeOf(address)) {
    case "IPv4 address in IPv6":
    case "NAT64 address":
      return at(12)
    case "6to4 address":
      return at(2)
    case "Teredo address":
      return at(12, 0xff)
    default:
      return isIsatap(octets) ? at(12) : undefined
  }
}

export type Interfaces = () => NodeJS.Dict<ReadonlyArray<Pick<NetworkInterfaceInfo, "address">>>

/** The addresses of this machine's interfaces, looked at again after `everyMillis`. */
export class OwnAddresses {
  #addresses: ReadonlySet<string> = new Set()
  #readAt = -Infinity
  readonly #interfaces: Interfaces
  readonly #everyMillis: number
  readonly #failed: (error: unknown) => void

  /** `failed` hears of a system that does not let its interfaces be listed: the ones known before count. */
  constructor(interfaces: Interfaces, everyMillis: number, failed: (error: unknown) => void) {
    this.#interfaces = interfaces
    this.#everyMillis = everyMillis
    this.#failed = failed
  }

  has(address: NetAddress.IpAddress): boolean {
    const now = performance.now()
    if (now - this.#readAt >= this.#everyMillis) {
      this.#readAt = now
      this.#read()
    }
    return this.#addresses.has(NetAddress.formatIp(address))
  }

  #read(): void {
    try {
      const all = Object.values(this.#interfaces()).flatMap((addresses) => addresses ?? [])
      this.#addresses = new Set(
        all.map(({ address }) =>
          NetAddress.formatIp(NetAddress.ipFromStringUnsafe(address.replace(/%.*$/, "")))
        )
      )
    } catch (error) {
      this.#failed(error)
    }
  }
}
