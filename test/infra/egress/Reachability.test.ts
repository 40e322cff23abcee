import { assert, describe, it } from "@effect/vitest"
import { IpNetwork, NetAddress } from "effect/net"
import { blocks, embeddedIpv4, OwnAddresses, specialPurposeOf } from "#src/infra/egress/Reachability.ts"

const address = NetAddress.ipFromStringUnsafe
const embeddedOf = (text: string): string | undefined => {
  const embedded = embeddedIpv4(address(text))
  return embedded === undefined ? undefined : NetAddress.formatIp(embedded)
}

describe("blocks of special purpose", () => {
  it("are those of both registries, with a reason unless they are globally reachable", () => {
    assert.isAtLeast(blocks.length, 50)
    for (const { network, reachable, reason } of blocks)
      if (reachable !== "true") assert.isDefined(reason, IpNetwork.format(network))
  })

  it("count from their first address to their last, unless a smaller block has it", () => {
    for (const { network, reason } of blocks) {
      for (const edge of [IpNetwork.firstAddress(network), IpNetwork.lastAddress(network)]) {
        const smallest = blocks.find((block) => IpNetwork.contains(block.network, edge))
        if (smallest?.network === network)
          assert.strictEqual(specialPurposeOf(edge), reason, NetAddress.formatIp(edge))
      }
    }
  })

  it.each([
    ["0.0.0.0", "unspecified address"],
    ["0.1.2.3", "unspecified address"],
    ["9.255.255.255", undefined],
    ["10.0.0.0", "private address"],
    ["10.255.255.255", "private address"],
    ["11.0.0.0", undefined],
    ["100.63.255.255", undefined],
    ["100.64.0.0", "shared address"],
    ["100.100.100.200", "shared address"],
    ["100.127.255.255", "shared address"],
    ["100.128.0.0", undefined],
    ["127.255.255.254", "loopback address"],
    ["128.0.0.1", undefined],
    ["168.63.129.16", "cloud platform address"],
    ["169.254.169.254", "link-local address"],
    ["172.15.255.255", undefined],
    ["172.16.0.1", "private address"],
    ["172.31.255.255", "private address"],
    ["172.32.0.0", undefined],
    ["192.0.0.9", "nearest server of an anycast address"],
    ["192.0.0.192", "reserved address"],
    ["192.0.1.1", undefined],
    ["192.0.2.1", "documentation address"],
    ["192.31.196.1", undefined],
    ["192.88.99.1", "6to4 address"],
    ["192.168.255.255", "private address"],
    ["192.169.0.0", undefined],
    ["198.17.255.255", undefined],
    ["198.19.255.255", "benchmarking address"],
    ["198.51.100.7", "documentation address"],
    ["203.0.113.7", "documentation address"],
    ["223.255.255.255", undefined],
    ["224.0.0.1", "multicast address"],
    ["239.255.255.255", "multicast address"],
    ["240.0.0.1", "reserved address"],
    ["255.255.255.254", "reserved address"],
    ["255.255.255.255", "broadcast address"],
    ["::", "unspecified address"],
    ["::1", "loopback address"],
    ["::2", "IPv4 address in IPv6"],
    ["::ffff:8.8.8.8", "IPv4 address in IPv6"],
    ["::ffff:0:8.8.8.8", "IPv4 address in IPv6"],
    ["64:ff9b::8.8.8.8", "NAT64 address"],
    ["64:ff9b:1:2::1", "NAT64 address"],
    ["64:ff9b:2::1", "reserved address"],
    ["100::1", "reserved address"],
    ["100:0:0:1::1", "reserved address"],
    ["200::1", "reserved address"],
    ["1fff::1", "reserved address"],
    ["2001:0:4136:e378::1", "Teredo address"],
    ["2001:1::1", "nearest server of an anycast address"],
    ["2001:1::4", "reserved address"],
    ["2001:2::1", "benchmarking address"],
    ["2001:4:112::1", undefined],
    ["2001:10::1", "reserved address"],
    ["2001:200::1", undefined],
    ["2001:4860:4860::8888", undefined],
    ["2001:db8::1", "documentation address"],
    ["2002:808:808::1", "6to4 address"],
    ["2606:4700::1111", undefined],
    ["2606:4700::5efe:8.8.8.8", "ISATAP address"],
    ["2606:4700::200:5efe:8.8.8.8", "ISATAP address"],
    ["3ffe::1", undefined],
    ["3fff:fff::1", "documentation address"],
    ["3fff:1000::1", undefined],
    ["4000::1", "reserved address"],
    ["5f00::1", "reserved address"],
    ["fc00::1", "private address"],
    ["fd00:ec2::254", "private address"],
    ["fe80::1", "link-local address"],
    ["fec0::1", "private address"],
    ["ff02::1", "multicast address"]
  ])("judge %s as %s", (text, reason) => {
    assert.strictEqual(specialPurposeOf(address(text)), reason)
  })

  it("tell the IPv4 address that a gateway or tunnel would send to", () => {
    assert.strictEqual(embeddedOf("::ffff:10.0.0.1"), "10.0.0.1")
    assert.strictEqual(embeddedOf("::10.0.0.1"), "10.0.0.1")
    assert.strictEqual(embeddedOf("64:ff9b::10.0.0.1"), "10.0.0.1")
    assert.strictEqual(embeddedOf("2002:a00:1:5::9"), "10.0.0.1")
    // 192.0.2.45 inverted, the example of RFC 4380.
    assert.strictEqual(embeddedOf("2001:0:4136:e378:8000:63bf:3fff:fdd2"), "192.0.2.45")
    assert.strictEqual(embeddedOf("fd00::5efe:10.0.0.1"), "10.0.0.1")
    for (const none of ["::1", "::", "10.0.0.1", "2606:4700::1111"])
      assert.isUndefined(embeddedOf(none), none)
  })
})

describe("the own addresses", () => {
  it("are looked at again, and stay where the system refuses to tell them", () => {
    let found: Record<string, ReadonlyArray<{ readonly address: string }>> | undefined = {
      eth0: [{ address: "9.9.9.9" }, { address: "fe80::1%eth0" }]
    }
    const errors: Array<unknown> = []
    const own = new OwnAddresses(
      () => {
        if (found === undefined) throw new Error("not permitted")
        return found
      },
      0,
      (error) => errors.push(error)
    )
    assert.isTrue(own.has(address("9.9.9.9")))
    assert.isTrue(own.has(address("fe80::1")))
    found = { eth0: [{ address: "2606:4700::1" }] }
    assert.isFalse(own.has(address("9.9.9.9")))
    assert.isTrue(own.has(address("2606:4700:0::1")))
    found = undefined
    assert.isTrue(own.has(address("2606:4700::1")))
    assert.lengthOf(errors, 1)
  })
})
