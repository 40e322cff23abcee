import { isIP, SocketAddress } from "node:net"

/**
 * One text for one address, so that a visitor is one visitor however the address is written: IPv6 in the form of RFC
 * 5952, IPv4-mapped IPv6 (`::ffff:192.0.2.1`) as IPv4. Undefined for anything but an address; a zone (`%eth0`) names an
 * interface of the sender's machine and is no address here.
 */
export const canonicalAddress = (text: string): string | undefined => {
  const family = isIP(text)
  if (family === 4) return text
  if (family === 0 || text.includes("%")) return undefined
  const address = new SocketAddress({ address: text, family: "ipv6" }).address
  return address.startsWith("::ffff:") && address.includes(".") ? address.slice(7) : address
}
