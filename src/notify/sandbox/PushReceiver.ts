import { createDecipheriv, createECDH, ECDH, hkdfSync, randomBytes } from "node:crypto"
import { Result } from "effect"

const curveName = "prime256v1"
const pointBytes = 65
const headerBytes = 16 + 4 + 1
const tagBytes = 16

/** The bytes of base64url that are a point of P-256; undefined if they are none. */
export const pointOf = (text: string): Buffer | undefined => {
  const bytes = /^[\w-]{86,88}=?$/u.test(text) ? Buffer.from(text, "base64url") : Buffer.alloc(0)
  if (bytes.length !== pointBytes || bytes[0] !== 4) return undefined
  try {
    ECDH.convertKey(bytes, curveName)
    return bytes
  } catch {
    // It is not on the curve.
    return undefined
  }
}

/** The keys of a subscription, as a browser makes and keeps them. Source: RFC 8291, section 2. */
export class PushReceiver {
  readonly p256dh: string
  readonly auth: string
  readonly #curve: ECDH = createECDH(curveName)
  readonly #point: Buffer
  readonly #secret: Buffer = randomBytes(16)

  constructor() {
    this.#point = this.#curve.generateKeys()
    this.p256dh = this.#point.toString("base64url")
    this.auth = this.#secret.toString("base64url")
  }

  /** The message in a body of `aes128gcm`, or why there is none. Source: RFC 8188 and RFC 8291, sections 3 and 4. */
  decrypt(body: Buffer): Result.Result<Buffer, string> {
    if (body.length < headerBytes) return Result.fail("it has no header of aes128gcm")
    const keyEnd = headerBytes + body.readUInt8(20)
    const recordBytes = body.readUInt32BE(16)
    const publicKey = pointOf(body.subarray(headerBytes, keyEnd).toString("base64url"))
    if (publicKey === undefined) return Result.fail("its key id is no point of P-256")
    const record = body.subarray(keyEnd)
    if (record.length <= tagBytes) return Result.fail("it has no record")
    if (recordBytes < 18 || record.length > recordBytes) return Result.fail("it has more than one record")
    return padless(opened(record, body.subarray(0, 16), this.#materialOf(publicKey)))
  }

  #materialOf(publicKey: Buffer): Buffer {
    const shared = this.#curve.computeSecret(publicKey)
    const info = Buffer.concat([Buffer.from("WebPush: info\0"), this.#point, publicKey])
    return Buffer.from(hkdfSync("sha256", shared, this.#secret, info, 32))
  }
}

const opened = (record: Buffer, salt: Buffer, material: Buffer): Buffer | undefined => {
  const derived = (info: string, length: number): Buffer =>
    Buffer.from(hkdfSync("sha256", material, salt, `Content-Encoding: ${info}\0`, length))
  const decipher = createDecipheriv("aes-128-gcm", derived("aes128gcm", 16), derived("nonce", 12))
  decipher.setAuthTag(record.subarray(-tagBytes))
  const padded = decipher.update(record.subarray(0, -tagBytes))
  try {
    decipher.final()
    return padded
  } catch {
    // The tag does not match.
    return undefined
  }
}

/** Behind the message stand a delimiter, 2 in the last record, and zeros. */
const padless = (padded: Buffer | undefined): Result.Result<Buffer, string> => {
  if (padded === undefined) return Result.fail("it is not encrypted for this subscription")
  const end = padded.findLastIndex((byte) => byte !== 0)
  return padded[end] === 2
    ? Result.succeed(padded.subarray(0, end))
    : Result.fail("its last record has no delimiter")
}
