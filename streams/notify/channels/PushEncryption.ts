import { createCipheriv, createECDH, createHmac, type ECDH, randomFillSync } from "node:crypto"
import type { PushTarget } from "./Channel.ts"

/** The curve of RFC 8291 by its name in OpenSSL. */
export const curveName = "prime256v1"

/** Bytes of an uncompressed point. */
export const pointBytes = 65

const saltBytes = 16
const tagBytes = 16
/** of the header of RFC 8188 before the key id: salt, record size, length of the key id */
const headerBytes = saltBytes + 5
/** the record size of RFC 8291's example; a body of this size is the most that every push service takes */
const recordBytes = 4_096
const lastRecord = 2

/** One byte of delimiter in a body of 4,096 bytes: RFC 8291, section 4. */
export const plaintextBytesMax = recordBytes - headerBytes - pointBytes - 1 - tagBytes

/** Random parts of one message. RFC 8291, section 3.1, has a new key pair generated for each. */
export interface MessageRandomness {
  /** the point of a new key pair, and the secret that it shares with a peer's point */
  readonly agree: (peer: Uint8Array) => { readonly publicKey: Uint8Array; readonly secret: Uint8Array }
  readonly salt: () => Uint8Array
}

/** A key pair of `curve` as it is, which agrees again and again on the same secret. */
export const agreementOf =
  (curve: ECDH): MessageRandomness["agree"] =>
  (peer) => ({ publicKey: curve.getPublicKey(), secret: curve.computeSecret(peer) })

const makeSystemRandomness = (): MessageRandomness => {
  // One object, whose keys are replaced for each message: a new object would cost half as much again as its keys.
  const curve = createECDH(curveName)
  // Fetched for many messages at once: a call for each costs more than its bytes.
  const salts = Buffer.alloc(saltBytes * 256)
  let used = salts.length
  return {
    agree: (peer) => ({ publicKey: curve.generateKeys(), secret: curve.computeSecret(peer) }),
    salt: () => {
      if (used === salts.length) {
        randomFillSync(salts)
        used = 0
      }
      used += saltBytes
      return salts.subarray(used - saltBytes, used)
    }
  }
}

/** New keys and a new salt for each message. */
export const systemRandomness: MessageRandomness = makeSystemRandomness()

const hmac = (key: Uint8Array, data: Uint8Array): Buffer => createHmac("sha256", key).update(data).digest()

/** An `info` of HKDF and the counter of its first block: no key here is longer than one. */
const info = (text: string): Buffer => Buffer.from(`${text}\0\u0001`)
const keyInfo = info("Content-Encoding: aes128gcm")
const nonceInfo = info("Content-Encoding: nonce")

/**
 * The content coding `aes128gcm` of RFC 8188 as a single, last record without padding.
 *
 * @param ikm the input keying material
 * @param keyId at most 255 bytes, for the receiver to choose the material by
 */
export const encodeRecord = (
  plaintext: Uint8Array,
  ikm: Uint8Array,
  { keyId, salt }: { readonly salt: Uint8Array; readonly keyId: Uint8Array }
): Buffer => {
  const start = headerBytes + keyId.length
  const end = start + plaintext.length
  if (end - start + 1 + tagBytes > recordBytes)
    throw new RangeError(`${plaintext.length} bytes are too many for one record`)
  const body = Buffer.allocUnsafe(end + 1 + tagBytes)
  body.set(salt)
  body.writeUInt32BE(recordBytes, saltBytes)
  body.writeUInt8(keyId.length, saltBytes + 4)
  body.set(keyId, headerBytes)
  body.set(plaintext, start)
  body.writeUInt8(lastRecord, end)
  const secret = hmac(salt, ikm)
  const key = hmac(secret, keyInfo).subarray(0, 16)
  const cipher = createCipheriv("aes-128-gcm", key, hmac(secret, nonceInfo).subarray(0, 12))
  body.set(cipher.update(body.subarray(start, end + 1)), start)
  cipher.final()
  body.set(cipher.getAuthTag(), end + 1)
  return body
}

const webPushInfo = Buffer.from("WebPush: info\0")

/**
 * Encrypts a push message for the browser alone. Throws on more than `plaintextBytesMax` bytes, and on a key that
 * `readSubscription` would not have accepted. Source: RFC 8291.
 */
export const encryptPush = (
  plaintext: Uint8Array,
  { auth, p256dh }: Pick<PushTarget, "auth" | "p256dh">,
  { agree, salt }: MessageRandomness = systemRandomness
): Buffer => {
  if (plaintext.length > plaintextBytesMax)
    throw new RangeError(`a push message has at most ${plaintextBytesMax} bytes, not ${plaintext.length}`)
  const peer = Buffer.from(p256dh, "base64url")
  const { publicKey, secret } = agree(peer)
  const material = Buffer.allocUnsafe(webPushInfo.length + 2 * pointBytes + 1)
  material.set(webPushInfo)
  material.set(peer, webPushInfo.length)
  material.set(publicKey, webPushInfo.length + pointBytes)
  material.writeUInt8(1, material.length - 1)
  const ikm = hmac(hmac(Buffer.from(auth, "base64url"), secret), material)
  return encodeRecord(plaintext, ikm, { salt: salt(), keyId: publicKey })
}
