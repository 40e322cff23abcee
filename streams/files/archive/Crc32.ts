/**
 * CRC-32 of joined bytes, from those of the parts (the polynomial of gzip, RFC 1952; sums of bytes: `zlib.crc32`). A sum is a
 * polynomial over GF(2), lowest power in the highest bit: bytes that follow multiply it by a power of x.
 */
const polynomial = 0xedb88320

/** a times b, modulo the polynomial. */
const product = (a: number, b: number): number => {
  let sum = 0
  let power = b
  for (let bit = 0x80000000; bit !== 0; bit >>>= 1) {
    if ((a & bit) !== 0) {
      sum ^= power
      if ((a & (bit - 1)) === 0) break
    }
    power = (power & 1) === 0 ? power >>> 1 : (power >>> 1) ^ polynomial
  }
  return sum >>> 0
}

/** x to the power of 8 * 2^n: they repeat, as the powers of x to the 2^n do, after 32. */
const bytePowers: ReadonlyArray<number> = (() => {
  const powers = [0x40000000]
  while (powers.length < 32) {
    const last = powers[powers.length - 1] as number
    powers.push(product(last, last))
  }
  return powers.map((_, n) => powers[(n + 3) % 32] as number)
})()

/** The factor of a sum when so many bytes follow. */
const shiftOf = (bytes: number): number => {
  let shift = 0x80000000
  for (let left = bytes, n = 0; left > 0; left = Math.floor(left / 2), n++) {
    if (left % 2 === 1) shift = product(bytePowers[n % 32] as number, shift)
  }
  return shift
}

/** The sum of bytes with the sum `first` and behind them `secondBytes` bytes with the sum `second`. */
export const joinedCrc32 = (first: number, second: number, secondBytes: number): number =>
  (product(shiftOf(secondBytes), first) ^ second) >>> 0
