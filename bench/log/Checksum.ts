import { crc32 } from "node:zlib"
import { type BenchCase, sized } from "#bench/harness/Suite.ts"
import { crc32c } from "#streams/kernel/Crc32c.ts"

/** The cost of CRC-32C in JavaScript against the other polynomial, which Node has natively. */
const checksum =
  (length: number, of: (bytes: Uint8Array) => number): BenchCase["run"] =>
  async (context) => {
    const bytes = Uint8Array.from({ length }, (_, index) => (index * 31) & 255)
    const work = Math.ceil(sized(context, { tiny: 1e6, quick: 5e8, full: 2e9 }) / length)
    let sum = 0
    const startedAt = performance.now()
    for (let i = 0; i < work; i++) sum ^= of(bytes)
    const elapsedMillis = performance.now() - startedAt
    if (!Number.isInteger(sum)) throw new Error("not a checksum")
    return { work, elapsedMillis, figures: { "MB/s": (work * length) / elapsedMillis / 1000 } }
  }

export const checksumCases = (length: number): ReadonlyArray<BenchCase> => {
  const group = `checksum of ${length} bytes`
  return [
    {
      name: `zlib.crc32 (native), ${length}`,
      group,
      baseline: true,
      run: checksum(length, (bytes) => crc32(bytes))
    },
    {
      name: `CRC-32C, ${length}`,
      group,
      compared: "always",
      run: checksum(length, (bytes) => crc32c(bytes, 0, bytes.length))
    }
  ]
}
