import { createECDH, randomBytes } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import {
  agreementOf,
  curveName,
  encodeRecord,
  encryptPush,
  plaintextBytesMax
} from "#streams/notify/channels/PushEncryption.ts"
import { bytes, decode, PushBrowser } from "./PushBrowser.ts"

describe("aes128gcm", () => {
  const walrus = Buffer.from("I am the walrus")

  it("encodes the example of RFC 8188, section 3.1", () => {
    const salt = bytes("I1BsxtFttlv3u_Oo94xnmw")
    const body = encodeRecord(walrus, bytes("yqdlZ-tYemfogSmv7Ws5PQ"), { salt, keyId: new Uint8Array() })
    assert.strictEqual(
      body.toString("base64url"),
      "I1BsxtFttlv3u_Oo94xnmwAAEAAA-NAVub2qFgBEuQKRapoZu-IxkIva3MEB1PD-ly8Thjg"
    )
  })

  it("is decoded by a receiver that knows the example of RFC 8188, section 3.2: two records, padding and a key id", async () => {
    const body = bytes(
      "uNCkWiNYzKTnBN9ji3-qWAAAABkCYTHOG8chz_gnvgOqdGYovxyjuqRyJFjEDyoF1Fvkj6hQPdPHI51OEUKEpgz3SsLWIqS_uA"
    )
    const { plaintext, recordBytes, records } = await decode(body, (keyId) => {
      assert.strictEqual(Buffer.from(keyId).toString(), "a1")
      return Promise.resolve(bytes("BO3ZVPxUlnLORbVGMpbT1Q"))
    })
    assert.deepStrictEqual([plaintext, recordBytes, records], [walrus, 25, 2])
  })

  it("refuses more than one record holds, and takes key ids of every length", async () => {
    const ikm = bytes("yqdlZ-tYemfogSmv7Ws5PQ")
    const salt = new Uint8Array(16)
    for (const length of [0, 1, 65, 255]) {
      const keyId = new Uint8Array(length).fill(7)
      const most = Buffer.alloc(4_096 - 17, "x")
      const decoded = await decode(encodeRecord(most, ikm, { salt, keyId }), () => Promise.resolve(ikm))
      assert.deepStrictEqual(decoded.plaintext, most)
      assert.strictEqual(decoded.keyId.length, length)
      assert.throws(() => encodeRecord(Buffer.alloc(most.length + 1), ikm, { salt, keyId }), RangeError)
    }
  })
})

describe("the encryption of push messages", () => {
  it("gives the example of RFC 8291, appendix A, byte for byte", async () => {
    const server = createECDH(curveName)
    server.setPrivateKey(bytes("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"))
    const target = {
      endpoint: "https://push.example.net/push/JzLQ3raZJfFBR0aqvOMsLrt54w4rJUsV",
      p256dh: "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
      auth: "BTBZMqHH6r4Tts7J_aSIgg"
    }
    const message = Buffer.from("When I grow up, I want to be a watermelon")
    const body = encryptPush(message, target, {
      agree: agreementOf(server),
      salt: () => bytes("DGv6ra1nlYgDCS1FRnbzlw")
    })
    assert.strictEqual(
      body.toString("base64url"),
      "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
    )
    const browser = await PushBrowser.of(target, "q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94")
    assert.deepStrictEqual((await browser.decrypt(body)).plaintext, message)
  })

  it("is read by the browser at every length that a push service takes, and by no other", async () => {
    const [browser, other] = [await PushBrowser.make(), await PushBrowser.make()]
    for (const length of [0, 1, 15, 16, 17, 100, 3_990, plaintextBytesMax]) {
      const message = randomBytes(length)
      const body = encryptPush(message, browser.target)
      assert.strictEqual(body.length, 103 + length)
      const { plaintext, recordBytes } = await browser.decrypt(body)
      assert.deepStrictEqual([plaintext, recordBytes], [message, 4_096])
      const failure = await other.decrypt(body).then(
        () => undefined,
        (error: unknown) => error
      )
      assert.instanceOf(failure, Error)
    }
    assert.strictEqual(plaintextBytesMax, 3_993)
    assert.throws(() => encryptPush(Buffer.alloc(3_994), browser.target), "at most 3993 bytes, not 3994")
  })

  it("has a key pair and a salt of its own for each message", async () => {
    const { target } = await PushBrowser.make()
    const bodies = Array.from({ length: 300 }, () => encryptPush(Buffer.from("same"), target))
    const salts = new Set(bodies.map((body) => body.toString("hex", 0, 16)))
    const keys = new Set(bodies.map((body) => body.toString("hex", 21, 86)))
    assert.deepStrictEqual([salts.size, keys.size], [300, 300])
  })

  it("throws on keys that no browser has", async () => {
    const { target } = await PushBrowser.make()
    const offCurve = Buffer.from(bytes(target.p256dh))
    offCurve[64] = (offCurve[64] ?? 0) ^ 1
    for (const p256dh of ["", "AAAA", offCurve.toString("base64url"), Buffer.alloc(65).toString("base64url")])
      assert.throws(() => encryptPush(Buffer.from("a"), { ...target, p256dh }), Error)
  })
})
