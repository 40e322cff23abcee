import { webcrypto } from "node:crypto"
import { assert } from "@effect/vitest"
import type { PushTarget } from "#streams/notify/channels/Channel.ts"

/**
 * The other end of RFC 8291 and 8188, written from their texts over Web Crypto, which the code under test does not use. It
 * insists on all that a receiver may.
 */
const { subtle } = webcrypto
const p256 = { name: "ECDH", namedCurve: "P-256" }

export const bytes = (base64url: string): Uint8Array<ArrayBuffer> =>
  Uint8Array.from(Buffer.from(base64url, "base64url"))

const derive = async (
  ikm: Uint8Array<ArrayBuffer>,
  salt: Uint8Array<ArrayBuffer>,
  info: Uint8Array<ArrayBuffer>,
  length: number
): Promise<Uint8Array<ArrayBuffer>> => {
  const key = await subtle.importKey("raw", ikm, "HKDF", false, ["deriveBits"])
  return new Uint8Array(
    await subtle.deriveBits({ name: "HKDF", hash: "SHA-256", salt, info }, key, length * 8)
  )
}

const text = (value: string): Uint8Array<ArrayBuffer> => Uint8Array.from(Buffer.from(value))

/** The twelve bytes of the nonce, the last of which count the records. */
const nonceOf = (base: Uint8Array<ArrayBuffer>, record: number): Uint8Array<ArrayBuffer> => {
  const nonce = Uint8Array.from(base)
  for (let at = 11, left = record; left > 0; at--, left = Math.floor(left / 256))
    nonce[at] = (nonce[at] ?? 0) ^ (left & 0xff)
  return nonce
}

export interface Decoded {
  readonly keyId: Uint8Array<ArrayBuffer>
  readonly recordBytes: number
  readonly records: number
  readonly plaintext: Buffer
}

/** Decodes `aes128gcm`; `ikmOf` finds the keying material by the key id. */
export const decode = async (
  body: Uint8Array,
  ikmOf: (keyId: Uint8Array<ArrayBuffer>) => Promise<Uint8Array<ArrayBuffer>>
): Promise<Decoded> => {
  const all = Uint8Array.from(body)
  const salt = all.slice(0, 16)
  const recordBytes = new DataView(all.buffer).getUint32(16)
  assert.isAtLeast(recordBytes, 18)
  const start = 21 + (all[20] ?? 0)
  const keyId = all.slice(21, start)
  const ikm = await ikmOf(keyId)
  const cek = await derive(ikm, salt, text("Content-Encoding: aes128gcm\0"), 16)
  const base = await derive(ikm, salt, text("Content-Encoding: nonce\0"), 12)
  const key = await subtle.importKey("raw", cek, "AES-GCM", false, ["decrypt"])
  const pieces: Array<Uint8Array> = []
  for (let at = start; at < all.length; at += recordBytes) {
    const sealed = all.slice(at, at + recordBytes)
    const iv = nonceOf(base, pieces.length)
    const opened = new Uint8Array(await subtle.decrypt({ name: "AES-GCM", iv }, key, sealed))
    const end = opened.findLastIndex((byte) => byte !== 0)
    assert.strictEqual(opened[end], at + recordBytes < all.length ? 1 : 2, "the delimiter")
    pieces.push(opened.slice(0, end))
  }
  return { keyId, recordBytes, records: pieces.length, plaintext: Buffer.concat(pieces) }
}

/** A browser with a subscription. */
export class PushBrowser {
  readonly target: PushTarget
  readonly #privateKey: webcrypto.CryptoKey

  private constructor(target: PushTarget, privateKey: webcrypto.CryptoKey) {
    this.target = target
    this.#privateKey = privateKey
  }

  static async make(endpoint = "https://push.example.net/p/token"): Promise<PushBrowser> {
    const { privateKey, publicKey } = await subtle.generateKey(p256, true, ["deriveBits"])
    const p256dh = Buffer.from(await subtle.exportKey("raw", publicKey)).toString("base64url")
    const auth = Buffer.from(webcrypto.getRandomValues(new Uint8Array(16))).toString("base64url")
    return new PushBrowser({ endpoint, p256dh, auth }, privateKey)
  }

  /** With given keys: `d` is the private one. */
  static async of(target: PushTarget, d: string): Promise<PushBrowser> {
    const point = bytes(target.p256dh)
    const [x, y] = [point.slice(1, 33), point.slice(33)].map((part) =>
      Buffer.from(part).toString("base64url")
    )
    assert.isDefined(x)
    assert.isDefined(y)
    const jwk = { kty: "EC", crv: "P-256", x: x ?? "", y: y ?? "", d }
    return new PushBrowser(target, await subtle.importKey("jwk", jwk, p256, false, ["deriveBits"]))
  }

  async decrypt(body: Uint8Array): Promise<Decoded> {
    assert.isAtMost(body.length, 4_096)
    const decoded = await decode(body, async (keyId) => {
      const server = await subtle.importKey("raw", keyId, p256, false, [])
      const shared = await subtle.deriveBits({ name: "ECDH", public: server }, this.#privateKey, 256)
      const info = Buffer.concat([text("WebPush: info\0"), bytes(this.target.p256dh), keyId])
      return derive(new Uint8Array(shared), bytes(this.target.auth), Uint8Array.from(info), 32)
    })
    // RFC 8291, section 4.
    assert.strictEqual(decoded.records, 1)
    return decoded
  }
}

export interface Token {
  readonly header: unknown
  readonly claims: { readonly aud: string; readonly exp: number; readonly sub?: string }
  readonly publicKey: string
}

/** Checks an `Authorization` as a push service does. Source: RFC 8292, sections 2 and 3. */
export const verifiedToken = async (authorization: string): Promise<Token> => {
  const [, token = "", publicKey = ""] = /^vapid t=([\w.-]+), k=([\w-]+)$/.exec(authorization) ?? []
  const [header = "", claims = "", signature = ""] = token.split(".")
  const algorithm = { name: "ECDSA", namedCurve: "P-256" }
  const key = await subtle.importKey("raw", bytes(publicKey), algorithm, false, ["verify"])
  const isSigned = await subtle.verify(
    { name: "ECDSA", hash: "SHA-256" },
    key,
    bytes(signature),
    text(`${header}.${claims}`)
  )
  assert.isTrue(isSigned, "the signature")
  const read = (part: string): unknown => JSON.parse(Buffer.from(part, "base64url").toString())
  const told: Token["claims"] = JSON.parse(Buffer.from(claims, "base64url").toString())
  return { header: read(header), claims: told, publicKey }
}
