import {
  createCipheriv,
  createECDH,
  createPrivateKey,
  generateKeyPairSync,
  hkdfSync,
  randomBytes,
  sign
} from "node:crypto"
import type { SandboxSubscription } from "./SandboxClient.ts"

const coded = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url")

export interface Token {
  readonly header?: unknown
  readonly claims: unknown
  /** in place of the signature */
  readonly signature?: string
  /** in place of the key that signed */
  readonly k?: string
}

/** Makes tokens as a sender of one key would, and as none should. */
export const makeForger = () => {
  const curve = createECDH("prime256v1")
  const point = curve.generateKeys()
  const part = (bytes: Buffer): string => bytes.toString("base64url")
  const d = Buffer.concat([Buffer.alloc(32), curve.getPrivateKey()]).subarray(-32)
  const jwk = {
    kty: "EC",
    crv: "P-256",
    d: part(d),
    x: part(point.subarray(1, 33)),
    y: part(point.subarray(33))
  }
  const key = createPrivateKey({ key: jwk, format: "jwk" })
  const publicKey = part(point)
  return {
    publicKey,
    authorization: ({
      claims,
      header = { typ: "JWT", alg: "ES256" },
      k = publicKey,
      signature
    }: Token): string => {
      const text = `${coded(header)}.${coded(claims)}`
      const own = sign("sha256", Buffer.from(text), { key, dsaEncoding: "ieee-p1363" }).toString("base64url")
      return `vapid t=${text}.${signature ?? own}, k=${k}`
    }
  }
}

/** A token that an RSA key signed. */
export const rsaSignature = (): string => {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2_048 })
  return sign("sha256", Buffer.from("x"), privateKey).toString("base64url")
}

export interface Record {
  /** with its delimiter and padding */
  readonly padded: Buffer
  readonly recordBytes?: number
  readonly keyId?: Buffer
  /** another browser's secret */
  readonly auth?: string
}

/** A body of `aes128gcm` with a record of any form. Source: RFC 8188, 2 and RFC 8291, 3.4. */
export const sealed = (
  { keys }: SandboxSubscription,
  { auth = keys.auth, keyId, padded, recordBytes = 4_096 }: Record
): Buffer => {
  const curve = createECDH("prime256v1")
  const own = curve.generateKeys()
  const peer = Buffer.from(keys.p256dh, "base64url")
  const bytes = (secret: Uint8Array, salt: Uint8Array, info: string | Buffer, length: number): Buffer =>
    Buffer.from(hkdfSync("sha256", secret, salt, info, length))
  const info = Buffer.concat([Buffer.from("WebPush: info\0"), peer, own])
  const material = bytes(curve.computeSecret(peer), Buffer.from(auth, "base64url"), info, 32)
  const salt = randomBytes(16)
  const cipher = createCipheriv(
    "aes-128-gcm",
    bytes(material, salt, "Content-Encoding: aes128gcm\0", 16),
    bytes(material, salt, "Content-Encoding: nonce\0", 12)
  )
  const head = Buffer.alloc(5)
  head.writeUInt32BE(recordBytes)
  head.writeUInt8((keyId ?? own).length, 4)
  return Buffer.concat([salt, head, keyId ?? own, cipher.update(padded), cipher.final(), cipher.getAuthTag()])
}
