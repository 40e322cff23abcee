import { createHash, timingSafeEqual } from "node:crypto"
import { crc32 } from "node:zlib"
import { Result } from "effect"
import type { FieldFault } from "#schemas/core/FieldFault.ts"

/** In the order of preference in which they are told. */
export const checksumAlgorithms = ["sha256", "sha512", "sha1", "md5", "crc32"] as const

type Algorithm = (typeof checksumAlgorithms)[number]

const digestBytes: Readonly<Record<Algorithm, number>> = {
  sha256: 32,
  sha512: 64,
  sha1: 20,
  md5: 16,
  crc32: 4
}

const isKnown = (name: string): name is Algorithm => Object.hasOwn(digestBytes, name)

/** The checksum that the bytes of one request have to have. */
export interface UploadChecksum {
  readonly algorithm: Algorithm
  readonly digest: Buffer
}

const fault = (text: string): Result.Result<never, FieldFault> =>
  Result.fail({ field: "Upload-Checksum", text })

/** Reads `sha1 base64`; undefined where the header is absent. CRC-32 is four bytes, the most significant first. */
export const readChecksum = (header: string): Result.Result<UploadChecksum | undefined, FieldFault> => {
  if (header === "") return Result.succeed(undefined)
  const [algorithm = "", encoded = "", more] = header.trim().split(/ +/)
  if (!isKnown(algorithm)) return fault(`expected one of ${checksumAlgorithms.join(", ")}`)
  const digest = Buffer.from(encoded, "base64")
  return more === undefined && digest.length === digestBytes[algorithm]
    ? Result.succeed({ algorithm, digest })
    : fault(`expected ${digestBytes[algorithm]} bytes as Base64 behind ${algorithm}`)
}

interface Digest {
  update(bytes: Uint8Array): void
  end(): Buffer
}

const digestOf = (algorithm: Algorithm): Digest => {
  if (algorithm !== "crc32") {
    const hash = createHash(algorithm)
    return { update: (bytes) => void hash.update(bytes), end: () => hash.digest() }
  }
  let sum = 0
  return {
    update: (bytes) => void (sum = crc32(bytes, sum)),
    end: () => {
      const digest = Buffer.alloc(4)
      digest.writeUInt32BE(sum)
      return digest
    }
  }
}

/** Compares bytes that come piece by piece with a checksum. */
export class ChecksumCheck {
  private readonly digest: Digest
  private readonly wanted: Buffer

  constructor({ algorithm, digest }: UploadChecksum) {
    this.digest = digestOf(algorithm)
    this.wanted = digest
  }

  update(bytes: Uint8Array): void {
    this.digest.update(bytes)
  }

  /** Once, behind the last of them. */
  isGood(): boolean {
    return timingSafeEqual(this.digest.end(), this.wanted)
  }
}
