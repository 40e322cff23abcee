import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto"
import type { Selector } from "#schemas/mail/Domain.ts"

/** The place of a key: a sealed one opens in no other. */
interface KeyPlace {
  readonly domainId: string
  readonly selector: Selector
}

const cipher = "aes-256-gcm"
const nonceBytes = 12
const tagBytes = 16

const placeOf = ({ domainId, selector }: KeyPlace): Buffer => Buffer.from(`${domainId} ${selector}`)

/** A private key in PEM as its row has it: AES-256-GCM, as nonce, text, tag. `secret` has 32 bytes. */
export const sealed = (privateKey: string, place: KeyPlace, secret: Uint8Array): Buffer => {
  const nonce = randomBytes(nonceBytes)
  const seal = createCipheriv(cipher, secret, nonce).setAAD(placeOf(place))
  return Buffer.concat([nonce, seal.update(privateKey, "latin1"), seal.final(), seal.getAuthTag()])
}

/** Throws where it was sealed by another secret, or for another place. */
export const unsealed = (bytes: Uint8Array, place: KeyPlace, secret: Uint8Array): string => {
  const open = createDecipheriv(cipher, secret, bytes.subarray(0, nonceBytes))
    .setAAD(placeOf(place))
    .setAuthTag(bytes.subarray(-tagBytes))
  const text = open.update(bytes.subarray(nonceBytes, -tagBytes), undefined, "latin1")
  return text + open.final("latin1")
}
