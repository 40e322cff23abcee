import { Result } from "effect"
import type { BlobSource } from "./BlobFiles.ts"
import { slowBuffers } from "./BlobWriter.ts"

/** A source that still brings bytes so long after its first ones is slow: they wait on the disk, not in memory. */
const slowAfterMillis = 500

/** The bytes of a short source; or one that is longer than `mostBytes`, or slow, from its beginning. */
export const gather = async <E>(
  source: BlobSource<E>,
  mostBytes: number,
  slowMillis = slowAfterMillis
): Promise<Result.Result<Buffer | BlobSource<E>, E>> => {
  const blocks: Array<Buffer> = []
  let gatheredBytes = 0
  let begunAt = Number.POSITIVE_INFINITY
  for (;;) {
    const next = await source()
    const now = performance.now()
    begunAt = Math.min(begunAt, now)
    if (Result.isFailure(next)) return Result.fail(next.failure)
    const piece = next.success
    if (piece === undefined) return Result.succeed(joined(blocks, gatheredBytes))
    if (gatheredBytes + piece.length > mostBytes || now - begunAt > slowMillis)
      return Result.succeed(resumed(filled(blocks, gatheredBytes), piece, source))
    copyBehind(blocks, gatheredBytes, piece)
    gatheredBytes += piece.length
  }
}

/** A piece is valid until the next one is asked for. */
const copyBehind = (blocks: Array<Buffer>, bytes: number, piece: Uint8Array): void => {
  for (let at = 0; at < piece.length;) {
    const used = (bytes + at) % slowBuffers.bytes
    if (used === 0) blocks.push(slowBuffers.take())
    const part = piece.subarray(at, at + slowBuffers.bytes - used)
    blocks.at(-1)?.set(part, used)
    at += part.length
  }
}

const filled = (blocks: ReadonlyArray<Buffer>, bytes: number): Array<Buffer> =>
  blocks.map((block, index) => block.subarray(0, bytes - index * slowBuffers.bytes))

const joined = (blocks: ReadonlyArray<Buffer>, bytes: number): Buffer => {
  const whole = Buffer.concat(blocks, bytes)
  for (const block of blocks) slowBuffers.giveBack(block)
  return whole
}

/** The bytes that were gathered, then the piece that was too much, and the source behind it. */
const resumed = <E>(gathered: Array<Buffer>, tooMuch: Uint8Array, source: BlobSource<E>): BlobSource<E> => {
  let last: Buffer | undefined
  let isAtSource = false
  return async () => {
    if (isAtSource) return source()
    if (last !== undefined) slowBuffers.giveBack(last)
    // Taken out, since an iterator at its end would hold them all for as long as the source is there.
    last = gathered.shift()
    isAtSource = last === undefined
    return Result.succeed(last ?? tooMuch)
  }
}

/** Bytes that are there. */
export const sourceOf = (bytes: Buffer): BlobSource<never> => {
  const pieces = [bytes]
  return async () => Result.succeed(pieces.pop())
}
