import { hash, randomBytes, randomFillSync } from "node:crypto"

/** Number of leading characters of a key or secret that stay readable, so that its owner can tell keys apart. */
const secretPrefixLength = 12

const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

const digitCodes = Buffer.from(digits)

/**
 * 22 base62 digits hold 128 bits: eight hold 47, eight more the next 47, and six the other 34. Each part is an exact
 * number of its own, and the digits of one are made by few divisions.
 */
const idDigits = 22
const idBytes = 16
const half = digits.length ** 4
const secretDigits = 40

/** `<prefix>_` and 128 random bits in base62, in 22 digits. Form: schemas/core/Ids.ts. */
export const newId = (prefix: string): string => {
  if (poolUsed === pool.length) {
    randomFillSync(pool)
    poolUsed = 0
  }
  const [first, second] = [pool.readUIntBE(poolUsed, 6), pool.readUIntBE(poolUsed + 6, 6)]
  const last = pool.readUInt32BE(poolUsed + 12)
  poolUsed += idBytes
  // The 48th bits of the first two go to the last.
  const [one, two] = [Math.floor(first / 2), Math.floor(second / 2)]
  const three = last * 4 + (first - one * 2) * 2 + (second - two * 2)
  putDigits(0, 4, Math.floor(one / half))
  putDigits(4, 4, one % half)
  putDigits(8, 4, Math.floor(two / half))
  putDigits(12, 4, two % half)
  putDigits(16, 2, Math.floor(three / half))
  putDigits(18, 4, three % half)
  return `${prefix}_${idCodes.toString("latin1")}`
}

/** Random bytes are fetched for many ids at once: a call of its own for each costs more than the id. */
const pool = Buffer.alloc(idBytes * 256)
let poolUsed = pool.length

/** The digits of one id: every request has an id. */
const idCodes = Buffer.alloc(idDigits)

const putDigits = (from: number, count: number, value: number): void => {
  let left = value
  for (let place = from + count - 1; place >= from; place--) {
    idCodes[place] = digitCodes[left % digits.length] ?? 0
    left = Math.trunc(left / digits.length)
  }
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

/** The same in hexadecimal: at once, since a Buffer for each request costs more than the hash. */
export const hexHashOf = (secret: string): string => hash("sha256", secret, "hex")

/** The readable beginning by which an owner tells keys apart. */
export const prefixOf = (secret: string): string => secret.slice(0, secretPrefixLength)
