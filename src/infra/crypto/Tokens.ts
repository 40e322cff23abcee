import { createHash, randomBytes } from "node:crypto"
import { secretPrefixLength } from "#schemas/core/Secrets.ts"

const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
const base = BigInt(digits.length)

/** 22 base62 digits hold 128 bits. */
const idDigits = 22
const secretDigits = 40

/** `<prefix>_` and 128 random bits in base62, padded to 22 digits. Form: schemas/core/Ids.ts. */
export const newId = (prefix: string): string => {
  let rest = BigInt(`0x${randomBytes(16).toString("hex")}`)
  let text = ""
  for (let place = 0; place < idDigits; place++) {
    text = digits.charAt(Number(rest % base)) + text
    rest /= base
  }
  return `${prefix}_${text}`
}

/** The prefix and 40 uniform base62 digits. Source: decisions, Common (Ids). */
export const newSecret = (prefix: string): string => {
  let text = ""
  while (text.length < secretDigits) {
    for (const byte of randomBytes(secretDigits)) {
      // 248 is the largest multiple of 62 in a byte: above it the low digits would be likelier.
      if (byte < 248 && text.length < secretDigits) text += digits.charAt(byte % 62)
    }
  }
  return prefix + text
}

/** What is stored of a secret. 238 random bits need no salt and no slow hash. */
export const hashOf = (secret: string): Buffer => createHash("sha256").update(secret).digest()

/** The readable beginning by which an owner tells keys apart. */
export const prefixOf = (secret: string): string => secret.slice(0, secretPrefixLength)
