/**
 * CRC-32C (Castagnoli, RFC 3720 appendix B.4), eight bytes a step. Node has only the other polynomial natively
 * (`zlib.crc32`); its cost is in src/docs/decisions/0003-durable-log.md.
 */
const polynomial = 0x82f63b78

const table = (advance: (index: number) => number): Int32Array =>
  Int32Array.from({ length: 256 }, (_, i) => advance(i))

const t0 = table((index) => {
  let crc = index
  for (let bit = 0; bit < 8; bit++) crc = (crc & 1) === 1 ? (crc >>> 1) ^ polynomial : crc >>> 1
  return crc
})
const shift = (previous: Int32Array): Int32Array =>
  table((index) => {
    const crc = previous[index] as number
    return (crc >>> 8) ^ (t0[crc & 255] as number)
  })
const t1 = shift(t0)
const t2 = shift(t1)
const t3 = shift(t2)
const t4 = shift(t3)
const t5 = shift(t4)
const t6 = shift(t5)
const t7 = shift(t6)

/** The checksum of `bytes[start, end)`, as an unsigned 32-bit number. */
export const crc32c = (bytes: Uint8Array, start: number, end: number): number => {
  let crc = -1
  let i = start
  for (; i + 8 <= end; i += 8) {
    const x =
      crc ^
      ((bytes[i] as number) |
        ((bytes[i + 1] as number) << 8) |
        ((bytes[i + 2] as number) << 16) |
        ((bytes[i + 3] as number) << 24))
    crc =
      (t7[x & 255] as number) ^
      (t6[(x >>> 8) & 255] as number) ^
      (t5[(x >>> 16) & 255] as number) ^
      (t4[x >>> 24] as number) ^
      (t3[bytes[i + 4] as number] as number) ^
      (t2[bytes[i + 5] as number] as number) ^
      (t1[bytes[i + 6] as number] as number) ^
      (t0[bytes[i + 7] as number] as number)
  }
  for (; i < end; i++) crc = (crc >>> 8) ^ (t0[(crc ^ (bytes[i] as number)) & 255] as number)
  return ~crc >>> 0
}
