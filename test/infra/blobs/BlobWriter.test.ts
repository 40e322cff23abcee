import { afterEach, assert, beforeEach, describe, it, vi } from "@effect/vitest"
import { BlobWriter } from "#src/infra/blobs/BlobWriter.ts"

const kib = 1024

/** A file that keeps the sizes of its writes alone. */
const makeFile = () => {
  const sizes: Array<number> = []
  return {
    sizes,
    writeFile: async (chunk: Uint8Array) => void sizes.push(chunk.length / kib),
    truncate: async () => undefined,
    datasync: async () => undefined,
    sync: async () => undefined,
    close: async () => undefined
  }
}

describe("the writes of a blob", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["performance"] }))
  afterEach(() => void vi.useRealTimers())

  /** The sizes of the writes of a blob that comes in pieces of 16 KiB, one in so many milliseconds. */
  const written = async (pieceMillis: ReadonlyArray<number>): Promise<ReadonlyArray<number>> => {
    const file = makeFile()
    const writer = new BlobWriter(file)
    for (const millis of pieceMillis) {
      vi.advanceTimersByTime(millis)
      await writer.write(new Uint8Array(16 * kib))
    }
    await writer.finish()
    await writer.settled()
    return file.sizes
  }

  it("grow while they come quickly, up to a mebibyte", async () => {
    const sizes = await written(Array.from({ length: 256 }, () => 0))
    assert.deepStrictEqual(sizes, [16, 32, 64, 128, 256, 512, 1024, 1024, 1024, 16])
  })

  it("hold about a tenth of a second's bytes, and few for ever where they come slowly", async () => {
    assert.deepStrictEqual(await written(Array.from({ length: 31 }, () => 20)), [16, 32, 64, 128, 128, 128])
    assert.deepStrictEqual(
      await written(Array.from({ length: 8 }, () => 3_200)),
      Array.from({ length: 8 }, () => 16)
    )
  })

  it("shrink where they have become slow", async () => {
    const slow = [16, 32].map(() => 2_000)
    assert.deepStrictEqual(await written([0, 0, 0, ...slow, 2_000, 2_000, 2_000]), [16, 32, 64, 16])
  })
})
