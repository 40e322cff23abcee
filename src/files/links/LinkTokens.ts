import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto"
import { hashOf, newId } from "#src/infra/crypto/Tokens.ts"

/** A secret of an address, and the SHA-256 by which it is found. */
export interface LinkToken {
  /** 22 base62 digits of 128 random bits */
  readonly token: string
  readonly hash: Buffer
}

const form = /^[0-9A-Za-z]{22}$/

const prefix = "t"

export const newToken = (): LinkToken => {
  const token = newId(prefix).slice(prefix.length + 1)
  return { token, hash: hashOf(token) }
}

/** undefined: it cannot be one */
export const tokenHash = (token: string): Buffer | undefined => (form.test(token) ? hashOf(token) : undefined)

const cipher = "aes-256-gcm"
const nonceBytes = 12
const tagBytes = 16

/** A token as its row has it, for the lists of its owner: AES-256-GCM, as nonce, text, tag. `key` has 32 bytes. */
export const sealed = ({ hash, token }: LinkToken, key: Uint8Array): Buffer => {
  const nonce = randomBytes(nonceBytes)
  const seal = createCipheriv(cipher, key, nonce).setAAD(hash)
  return Buffer.concat([nonce, seal.update(token, "latin1"), seal.final(), seal.getAuthTag()])
}

/** Throws where it was sealed by another key, or for another row. */
export const unsealed = (bytes: Uint8Array, hash: Uint8Array, key: Uint8Array): string => {
  const open = createDecipheriv(cipher, key, bytes.subarray(0, nonceBytes))
    .setAAD(hash)
    .setAuthTag(bytes.subarray(-tagBytes))
  const text = open.update(bytes.subarray(nonceBytes, -tagBytes), undefined, "latin1")
  return text + open.final("latin1")
}
