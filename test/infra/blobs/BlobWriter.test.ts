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

  /** The sizes of the writes of a blob whose pieces take so many milliseconds each. */
  const written = async (
    pieceMillis: ReadonlyArray<number>,
    pieceKib = 16
  ): Promise<ReadonlyArray<number>> => {
    const file = makeFile()
    const writer = new BlobWriter(file)
    for (const millis of pieceMillis) {
      vi.advanceTimersByTime(millis)
      await writer.write(new Uint8Array(pieceKib * kib))
    }
    await writer.finish()
    await writer.settled()
    return file.sizes
  }

  /** The first bytes may have been gathered before, so that nothing tells how quickly they came. */
  const first = Array.from({ length: 9 }, () => 4)

  it("grow while they come quickly, up to a mebibyte", async () => {
    const sizes = await written(Array.from({ length: 256 }, () => 0))
    assert.deepStrictEqual(sizes, [...first, 8, 16, 32, 64, 128, 256, 512, 1024, 1024, 996])
  })

  it("hold about a tenth of a second's bytes, and few for ever where they come slowly", async () => {
    const quick = await written(Array.from({ length: 31 }, () => 20))
    assert.deepStrictEqual(quick, [...first, 8, 16, 32, 64, 128, 128, 84])
    const slow = await written(
      Array.from({ length: 128 }, () => 200),
      1
    )
    assert.deepStrictEqual(
      slow,
      Array.from({ length: 32 }, () => 4)
    )
  })

  it("shrink where they have become slow", async () => {
    const quick = Array.from({ length: 92 }, () => 0)
    const slow = Array.from({ length: 76 }, () => 600)
    assert.deepStrictEqual(await written([...quick, ...slow], 1), [...first, 8, 16, 32, 64, 4, 4, 4])
  })
})
