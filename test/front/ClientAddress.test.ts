import { assert, describe, it } from "@effect/vitest"
import { addressFromBytes, canonicalAddress, make } from "#src/front/ClientAddress.ts"

describe("the client's address", () => {
  it("is the peer's where no proxy is trusted, whatever the header says", () => {
    for (const trust of [undefined, 0, []]) {
      assert.strictEqual(
        make(trust)(() => "192.0.2.1", "198.51.100.1"),
        "192.0.2.1"
      )
    }
  })

  it("is told by a proxy where the peer is one that is trusted", () => {
    const proxied = (trust: number | ReadonlyArray<string> | undefined, peer: string) =>
      make(trust).isProxied(() => peer)
    for (const trust of [undefined, 0, []]) assert.isFalse(proxied(trust, "192.0.2.1"))
    assert.isTrue(proxied(1, "192.0.2.1"))
    assert.isTrue(proxied(["192.0.2.0/24"], "192.0.2.1"))
    assert.isFalse(proxied(["192.0.2.0/24"], "198.51.100.1"))
  })

  it("is missed where a trusted proxy does not tell it", () => {
    const missed: Array<string> = []
    const miss = (peer: string) => void missed.push(peer)
    for (const trust of [undefined, 0, 1, ["192.0.2.0/24"]]) {
      for (const forwarded of ["", "203.0.113.7"]) {
        for (const peer of ["192.0.2.1", "198.51.100.1"]) make(trust, miss)(() => peer, forwarded)
      }
    }
    assert.deepStrictEqual(missed, ["192.0.2.1", "198.51.100.1", "192.0.2.1"])
  })

  it("is the n-th address from the right behind n hops", () => {
    const chain = "6.6.6.6, 198.51.100.1, 10.0.0.1"
    assert.strictEqual(
      make(1)(() => "192.0.2.1", chain),
      "10.0.0.1"
    )
    assert.strictEqual(
      make(2)(() => "192.0.2.1", chain),
      "198.51.100.1"
    )
    assert.strictEqual(
      make(9)(() => "192.0.2.1", chain),
      "6.6.6.6"
    )
    assert.strictEqual(
      make(1)(() => "192.0.2.1", ""),
      "192.0.2.1"
    )
  })

  it("behind n hops does not ask for the peer where the header names the client", () => {
    const peer = (): string => assert.fail("the peer was asked for")
    assert.strictEqual(make(1)(peer, "198.51.100.1"), "198.51.100.1")
  })

  it("is the first address from the right that is outside the trusted networks", () => {
    const client = make(["192.0.2.0/24", "10.0.0.0/8", "2001:db8::/32"])
    assert.strictEqual(
      client(() => "192.0.2.1", "6.6.6.6, 198.51.100.1, 10.0.0.1"),
      "198.51.100.1"
    )
    assert.strictEqual(
      client(() => "192.0.2.1", "6.6.6.6, 198.51.100.1, 2001:db8::7"),
      "198.51.100.1"
    )
    assert.strictEqual(
      client(() => "203.0.113.1", "6.6.6.6"),
      "203.0.113.1"
    )
    assert.strictEqual(
      client(() => "192.0.2.1", "10.0.0.2, 10.0.0.1"),
      "10.0.0.2"
    )
  })

  it("takes a single address for a network of one", () => {
    assert.strictEqual(
      make(["192.0.2.1"])(() => "192.0.2.1", "198.51.100.1"),
      "198.51.100.1"
    )
    assert.strictEqual(
      make(["::1"])(() => "::1", "198.51.100.1"),
      "198.51.100.1"
    )
  })

  it("stops at what is no address, so that nobody can smuggle one in from the left", () => {
    assert.strictEqual(
      make(2)(() => "192.0.2.1", "198.51.100.1, unknown"),
      "192.0.2.1"
    )
    assert.strictEqual(
      make(["192.0.2.0/24"])(() => "192.0.2.1", "198.51.100.1, unknown"),
      "192.0.2.1"
    )
  })

  it("reads ports, brackets and IPv4 inside IPv6", () => {
    assert.strictEqual(canonicalAddress("192.0.2.1:4711"), "192.0.2.1")
    assert.strictEqual(canonicalAddress("[2001:DB8::1]:4711"), "2001:db8::1")
    assert.strictEqual(canonicalAddress("::ffff:192.0.2.1"), "192.0.2.1")
    assert.isUndefined(canonicalAddress("host.example"))
  })

  it("is the same from a socket's bytes", () => {
    assert.strictEqual(addressFromBytes(Uint8Array.of(192, 0, 2, 1)), "192.0.2.1")
    const mapped = Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 192, 0, 2, 1)
    assert.strictEqual(addressFromBytes(mapped), "192.0.2.1")
    assert.strictEqual(
      addressFromBytes(Uint8Array.of(32, 1, 13, 184, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1)),
      "2001:db8::1"
    )
    assert.strictEqual(addressFromBytes(new Uint8Array(0)), "")
  })
})
