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
  takeRandom()
  for (let place = idDigits; place > 0;) {
    let group = divide()
    for (let count = 0; count < digitsAtOnce && place > 0; count++) {
      idCodes[--place] = digits.charCodeAt(group % digits.length)
      group = Math.floor(group / digits.length)
    }
  }
  return `${prefix}_${idCodes.toString("latin1")}`
}

/** Random bytes are fetched for many ids at once: a call of its own for each costs more than the id. */
const pool = Buffer.alloc(idBytes * 256)
let poolUsed = pool.length

/** The number that becomes an id, as 16-bit limbs, the highest first, and its digits: every request has an id. */
const limbs = new Uint16Array(idBytes / 2)
const idCodes = Buffer.alloc(idDigits)

/** Sets the number to 128 random bits. */
const takeRandom = (): void => {
  if (poolUsed === pool.length) {
    randomFillSync(pool)
    poolUsed = 0
  }
  for (let limb = 0; limb < limbs.length; limb++) limbs[limb] = pool.readUInt16BE(poolUsed + limb * 2)
  poolUsed += idBytes
}

/** Divides the number in place; answers the remainder. */
const divide = (): number => {
  let remainder = 0
  for (let at = 0; at < limbs.length; at++) {
    const value = remainder * 0x1_0000 + (limbs[at] ?? 0)
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
