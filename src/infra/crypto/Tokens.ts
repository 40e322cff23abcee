import { hash, randomBytes, randomFillSync } from "node:crypto"

/** Number of leading characters of a key or secret that stay readable, so that its owner can tell keys apart. */
const secretPrefixLength = 12

const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

/** 22 base62 digits hold 128 bits. */
const idDigits = 22
const idBytes = 16
/** digits that come out of one division: 62^5 times 2^16 is still an exact number */
const digitsAtOnce = 5
const divisor = digits.length ** digitsAtOnce
const secretDigits = 40

/** `<prefix>_` and 128 random bits in base62, padded to 22 digits. Form: schemas/core/Ids.ts. */
export const newId = (prefix: string): string => {
  const limbs = randomLimbs()
  let text = ""
  while (text.length < idDigits) {
    let group = divide(limbs)
    for (let place = 0; place < digitsAtOnce && text.length < idDigits; place++) {
      text = digits.charAt(group % digits.length) + text
      group = Math.floor(group / digits.length)
    }
  }
  return `${prefix}_${text}`
}

/** Random bytes are fetched for many ids at once: a call of its own for each costs more than the id. */
const pool = Buffer.alloc(idBytes * 256)
let poolUsed = pool.length

/** 128 random bits as 16-bit limbs, the highest first. */
const randomLimbs = (): Uint16Array => {
  if (poolUsed === pool.length) {
    randomFillSync(pool)
    poolUsed = 0
  }
  const limbs = new Uint16Array(idBytes / 2)
  for (let limb = 0; limb < limbs.length; limb++) limbs[limb] = pool.readUInt16BE(poolUsed + limb * 2)
  poolUsed += idBytes
  return limbs
}

/** Divides the number in place; answers the remainder. */
const divide = (limbs: Uint16Array): number => {
  let remainder = 0
  for (const [at, limb] of limbs.entries()) {
    const value = remainder * 0x1_0000 + limb
    limbs[at] = Math.floor(value / divisor)
    remainder = value % divisor
  }
  return remainder
}

/** The prefix and 40 uniform base62 digits. Source: contract/http#identifiers. */
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

/** The stored form of a secret. 238 random bits need no salt and no slow hash. */
export const hashOf = (secret: string): Buffer => hash("sha256", secret, "buffer")

/** The readable beginning by which an owner tells keys apart. */
export const prefixOf = (secret: string): string => secret.slice(0, secretPrefixLength)
