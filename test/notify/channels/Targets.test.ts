import { createECDH, randomBytes } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import * as fc from "fast-check"
import { readAddress, readSubscription } from "#streams/notify/channels/Targets.ts"

const point = createECDH("prime256v1").generateKeys()
const secret = randomBytes(16)
const keys = { p256dh: point.toString("base64url"), auth: secret.toString("base64url") }
const endpoint = "https://push.example.net/p/token"

const faultOf = (value: unknown): string => {
  const { field, text } = Result.getOrThrow(Result.flip(readSubscription(value)))
  return `${field}: ${text}`
}

describe("a subscription", () => {
  it("is taken as browsers write it, and normalised", () => {
    const expected = { endpoint, ...keys }
    const padded = { p256dh: point.toString("base64"), auth: secret.toString("base64") }
    for (const value of [
      { endpoint, expirationTime: null, keys },
      { endpoint: "HTTPS://PUSH.example.net:443/p/token#x", keys },
      { endpoint, keys: { ...padded, other: 1 } }
    ])
      assert.deepStrictEqual(Result.getOrThrow(readSubscription(value)), expected)
  })

  it("has an https endpoint of at most 2,048 characters", () => {
    const start = "https://push.example.net/"
    const fault = "endpoint: expected an https address of at most 2048 characters"
    assert.isTrue(Result.isSuccess(readSubscription({ endpoint: start.padEnd(2_048, "a"), keys })))
    for (const odd of [
      start.padEnd(2_049, "a"),
      // It fits only until it is percent-encoded.
      start.padEnd(1_000, "€"),
      "http://push.example.net/",
      "push.example.net",
      "",
      "https://",
      "javascript:alert(1)",
      "https://[::1",
      1,
      {},
      []
    ])
      assert.strictEqual(faultOf({ endpoint: odd, keys }), fault, JSON.stringify(odd).slice(0, 40))
    for (const none of [undefined, null])
      assert.strictEqual(faultOf({ endpoint: none, keys }), "endpoint: is required")
    assert.strictEqual(
      faultOf({ endpoint: "https://me:pass@push.example.net/", keys }),
      "endpoint: expected an address without a name and password"
    )
  })

  it("takes http where the caller says so, for that host alone", () => {
    const isHttpAllowed = ({ host }: URL) => host === "127.0.0.1:4000"
    const read = (address: string) => readAddress(address, "url", { isHttpAllowed })
    assert.deepStrictEqual(read("http://127.0.0.1:4000/p"), Result.succeed("http://127.0.0.1:4000/p"))
    for (const other of ["http://127.0.0.1:4001/p", "ftp://127.0.0.1:4000/p"])
      assert.isTrue(Result.isFailure(read(other)), other)
  })

  it("has a point of the curve: 65 bytes, uncompressed", () => {
    const fault = "keys.p256dh: expected a point of P-256: 65 bytes in base64url"
    const changed = (at: number, byte: number) => {
      const copy = Buffer.from(point)
      copy[at] = byte
      return copy
    }
    const off = changed(64, (point[64] ?? 0) ^ 1)
    const hybrid = changed(0, 6 + ((point[64] ?? 0) & 1))
    const points = [
      off,
      hybrid,
      changed(0, 0),
      Buffer.alloc(65),
      Buffer.alloc(65, 0xff),
      Buffer.of(4, ...Buffer.alloc(64)),
      // x is above the prime.
      Buffer.concat([Buffer.of(4), Buffer.alloc(32, 0xff), point.subarray(33)]),
      Buffer.from(createECDH("prime256v1").generateKeys("hex", "compressed"), "hex"),
      Buffer.of(0),
      point.subarray(0, 64),
      Buffer.concat([point, Buffer.of(0)]),
      createECDH("secp256k1").generateKeys()
    ].map((bytes) => bytes.toString("base64url"))
    const texts = ["", "=", `${keys.p256dh} `, `${keys.p256dh}===`, "!".repeat(87), "a".repeat(100_000)]
    for (const p256dh of [...points, ...texts, undefined, null, 4, [keys.p256dh], { length: 65 }])
      assert.strictEqual(faultOf({ endpoint, keys: { ...keys, p256dh } }), fault, String(p256dh).slice(0, 90))
  })

  it("has a secret of 16 bytes", () => {
    const fault = "keys.auth: expected 16 bytes in base64url"
    for (const auth of [
      "",
      randomBytes(15).toString("base64url"),
      randomBytes(17).toString("base64url"),
      null,
      1
    ])
      assert.strictEqual(faultOf({ endpoint, keys: { ...keys, auth } }), fault, String(auth))
  })

  it("names the field that is missing", () => {
    assert.strictEqual(faultOf({ endpoint }), "keys: is required")
    assert.strictEqual(faultOf({ endpoint, keys: null }), "keys: is required")
    assert.strictEqual(faultOf({ endpoint, keys: "keys" }), "keys: expected object")
    for (const nothing of [undefined, null, 1, "text", [], {}])
      assert.strictEqual(faultOf(nothing), "endpoint: is required", JSON.stringify(nothing))
  })

  it("is refused without an exception, whatever it is", () => {
    const anyKeys = fc.oneof(fc.jsonValue(), fc.record({ p256dh: fc.jsonValue(), auth: fc.jsonValue() }))
    const anything = fc.oneof(
      fc.jsonValue(),
      fc.record({ endpoint: fc.oneof(fc.constant(endpoint), fc.jsonValue()), keys: anyKeys })
    )
    fc.assert(fc.property(anything, (value) => assert.isTrue(Result.isFailure(readSubscription(value)))))
  })
})
