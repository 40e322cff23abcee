import * as Result from "effect/Result"
import * as IpNetwork from "effect/net/IpNetwork"
import * as NetAddress from "effect/net/NetAddress"
import type { EnvironmentReader } from "#src/EnvironmentReader.ts"
import { hostOf, isPort } from "./EgressHost.ts"

type Opened =
  | { readonly name: string; readonly hasSubdomains: boolean }
  | { readonly network: IpNetwork.IpNetwork }

type Entry = Opened & { /** unset: all ports */ readonly port: number | undefined }

/** The hosts and networks that `EGRESS_ALLOW` opens to the addresses of strangers, with plain http too. */
export class EgressAllow {
  static readonly nothing = new EgressAllow([])
  readonly #entries: ReadonlyArray<Entry>

  private constructor(entries: ReadonlyArray<Entry>) {
    this.#entries = entries
  }

  /**
   * Entries with commas between them: `hooks.corp.test`, `*.corp.test` (every name below it), `10.1.2.3`, `10.0.0.0/8`, `fd00::/8`;
   * of one port: `hooks.corp.test:8080`, `10.0.0.0/8:8080`, `[fd00::/8]:8080`. undefined where one is none of these.
   */
  static parse(text: string): EgressAllow | undefined {
    const entries = text.split(",").map((part) => entryOf(part.trim()))
    const known = entries.filter((entry) => entry !== undefined)
    return known.length === entries.length ? new EgressAllow(known) : undefined
  }

  static from(read: EnvironmentReader): EgressAllow {
    const fault =
      "takes hosts (hooks.corp.test, *.corp.test), addresses and networks (10.0.0.0/8), each also with a port (10.1.2.3:8080, [fd00::/8]:8080), separated by commas"
    return read.parsed("EGRESS_ALLOW", (text) => EgressAllow.parse(text), fault) ?? EgressAllow.nothing
  }

  opensName(name: string, port: number): boolean {
    return this.#entries.some(
      (entry) =>
        "name" in entry &&
        isOf(entry, port) &&
        (entry.hasSubdomains ? name.endsWith(`.${entry.name}`) : name === entry.name)
    )
  }

  /** Whether a name of this port may have an address that is opened. */
  opensNetworks(port: number): boolean {
    return this.#entries.some((entry) => "network" in entry && isOf(entry, port))
  }

  opensAddress(address: NetAddress.IpAddress, port: number): boolean {
    return this.#entries.some(
      (entry) => "network" in entry && isOf(entry, port) && IpNetwork.contains(entry.network, address)
    )
  }
}

const isOf = (entry: Entry, port: number): boolean => entry.port === undefined || entry.port === port

const entryOf = (text: string): Entry | undefined => {
  // Several colons without brackets are IPv6, which has no port then.
  const isBare = /^[^[\]]*:[^[\]]*:/.test(text)
  const [, host = "", digits] = isBare
    ? [text, `[${text}]`]
    : (/^(\[[^[\]]*\]|[^:[\]]*)(?::(\d{1,5}))?$/.exec(text) ?? [])
  const opened = host.startsWith("[") ? openedBy(host.slice(1, -1), true) : openedBy(host, false)
  const port = digits === undefined ? undefined : Number(digits)
  return opened === undefined || (port !== undefined && !isPort(port)) ? undefined : { ...opened, port }
}

const openedBy = (text: string, isIpv6: boolean): Opened | undefined => {
  const [first = "", bits, ...more] = text.split("/")
  const hasSubdomains = first.startsWith("*.")
  const host = Result.getOrUndefined(hostOf(hasSubdomains ? first.slice(2) : first))
  if (host === undefined || more.length > 0) return undefined
  if (typeof host === "string")
    return bits === undefined && !isIpv6 ? { name: host, hasSubdomains } : undefined
  if (hasSubdomains || NetAddress.isIpv6Address(host) !== isIpv6 || !/^\d{1,3}$/.test(bits ?? "0"))
    return undefined
  const network = IpNetwork.fromAddress(host, Number(bits ?? NetAddress.width(host)))
  return Result.isSuccess(network) ? { network: network.success } : undefined
}
