import { createHash, hash, type Hash } from "node:crypto"
import { crc32 } from "node:zlib"
import type { SummedBlob } from "./BlobIndex.ts"

/** The sums of bytes that come piece by piece. */
export class RunningSums {
  sizeBytes = 0
  private hash: Hash = createHash("sha256")
  private crc32 = 0

  update(bytes: Uint8Array): void {
    this.sizeBytes += bytes.length
    this.hash.update(bytes)
    this.crc32 = crc32(bytes, this.crc32)
  }

  /** The same up to here, which goes on by itself. */
  copy(): RunningSums {
    const other = new RunningSums()
    other.sizeBytes = this.sizeBytes
    other.hash = this.hash.copy()
    other.crc32 = this.crc32
    return other
  }

  /** Of all bytes so far. */
  get sums(): SummedBlob {
    return { sizeBytes: this.sizeBytes, sha256: this.hash.copy().digest("hex"), crc32: this.crc32 }
  }
}

export const sumsOf = (bytes: Uint8Array): SummedBlob => ({
  sizeBytes: bytes.length,
  sha256: hash("sha256", bytes),
  crc32: crc32(bytes)
})
