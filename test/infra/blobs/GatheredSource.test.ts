import { Result } from "effect"
import { expect, test } from "vitest"
import type { BlobSource } from "#src/infra/blobs/BlobFiles.ts"
import { gather } from "#src/infra/blobs/GatheredSource.ts"

/** A source whose pieces share one buffer, as those of a socket may. */
const reusing = (bytes: Buffer, pieceBytes: number): BlobSource<never> => {
  const shared = Buffer.alloc(pieceBytes)
  let at = 0
  return async () => {
    if (at >= bytes.length) return Result.succeed(undefined)
    const length = bytes.copy(shared, 0, at, at + pieceBytes)
    at += length
    return Result.succeed(shared.subarray(0, length))
  }
}

const numbered = (length: number): Buffer =>
  Buffer.from(Array.from({ length }, (_, index) => (index * 7) % 251))

const readAll = async (source: BlobSource<never>): Promise<Buffer> => {
  const copies: Array<Buffer> = []
  for (;;) {
    const piece = Result.getOrThrow(await source())
    if (piece === undefined) return Buffer.concat(copies)
    copies.push(Buffer.from(piece))
  }
}

const mostBytes = 16 * 1024
const patient = Number.POSITIVE_INFINITY

test.each([1, 1_000, 4_096, 5_000, 16_384, 40_000])(
  "pieces of %d bytes come whole, shorter and longer than what is gathered",
  async (pieceBytes) => {
    for (const length of [0, 1, 4_095, 4_096, 4_097, mostBytes - 1, mostBytes, mostBytes + 1, 100_000]) {
      const bytes = numbered(length)
      const gathered = Result.getOrThrow(await gather(reusing(bytes, pieceBytes), mostBytes, patient))
      expect(Buffer.isBuffer(gathered), `${length} bytes`).toBe(length <= mostBytes)
      const read = Buffer.isBuffer(gathered) ? gathered : await readAll(gathered)
      expect(read.equals(bytes), `${length} bytes`).toBe(true)
    }
  }
)

test("two sources that are gathered at once share no block", async () => {
  const others = numbered(30_000).map((byte) => 255 - byte)
  const [one, other] = [reusing(numbered(30_000), 1_000), reusing(Buffer.from(others), 1_000)]
  const [first, second] = await Promise.all([
    gather(one, mostBytes, patient),
    gather(other, mostBytes, patient)
  ])
  const sources = [first, second].map((result) => Result.getOrThrow(result))
  const [whole, otherWhole] = await Promise.all(
    sources.map((source) => (Buffer.isBuffer(source) ? source : readAll(source)))
  )
  expect(whole?.equals(numbered(30_000))).toBe(true)
  expect(otherWhole?.equals(Buffer.from(others))).toBe(true)
})

test("a slow source is not gathered to its end, and comes whole", async () => {
  const bytes = numbered(3_000)
  const quick = reusing(bytes, 1_000)
  const slow: BlobSource<never> = async () => {
    await new Promise((resolve) => setTimeout(resolve, 20))
    return quick()
  }
  const gathered = Result.getOrThrow(await gather(slow, mostBytes, 1))
  if (Buffer.isBuffer(gathered)) throw new Error("It was gathered to its end")
  expect((await readAll(gathered)).equals(bytes)).toBe(true)
})
