import { Effect } from "effect"
import { claimedBytes, frameAt, hasFrameAfter, headerBytes, type Frame } from "./Frame.ts"
import { FileFailed, LogCorrupt } from "./LogFailure.ts"
import type { LogFile, LogFileSystem } from "./LogFiles.ts"
import { collect, type RecordBatch } from "./LogRecord.ts"

/** One file of the log, named after its first offset; only the newest is written to. */
export interface Segment {
  readonly path: string
  readonly baseOffset: number
  endOffset: number
  /** length of its durable, undamaged frames: reads never go beyond */
  bytes: number
  /** where some frames begin, at least `markEveryBytes` apart: a read starts at the nearest one */
  readonly marks: Array<{ readonly offset: number; readonly position: number }>
}

const markEveryBytes = 64 * 1024
const readBytes = 1024 * 1024

const suffix = ".segment"

export const fileName = (baseOffset: number): string => baseOffset.toString().padStart(16, "0") + suffix

/** The first offset that a segment's file name states; undefined for another file. */
export const baseOffsetOf = (name: string): number | undefined =>
  /^\d{16}\.segment$/.test(name) ? Number(name.slice(0, -suffix.length)) : undefined

export const empty = (path: string, baseOffset: number): Segment => ({
  path,
  baseOffset,
  endOffset: baseOffset,
  bytes: 0,
  marks: []
})

/** Counts a frame that now stands durably at the segment's end. */
export const extend = (segment: Segment, frame: Frame): void => {
  const lastMark = segment.marks.at(-1)
  if (lastMark === undefined || segment.bytes - lastMark.position >= markEveryBytes) {
    segment.marks.push({ offset: frame.baseOffset, position: segment.bytes })
  }
  segment.bytes += frame.bytes.length
  segment.endOffset = frame.baseOffset + frame.count
}

/**
 * Finds the frames in a segment's content. The segment must hold every offset up to `nextBaseOffset`, the name of the
 * segment after it; the rest is a batch that failed and was written again into that next segment. In the newest segment
 * (`nextBaseOffset` undefined) only the very last frame can be torn, because a write begins after the one before it is
 * durable: a bad frame that is followed by a good one is damage, not a crash.
 */
export const scan = (
  path: string,
  baseOffset: number,
  content: Uint8Array,
  logId: bigint,
  nextBaseOffset: number | undefined
): Segment | LogCorrupt => {
  const segment = empty(path, baseOffset)
  while (segment.endOffset !== nextBaseOffset) {
    const frame = frameAt(content, segment.bytes, logId)
    if (frame === undefined || frame.baseOffset !== segment.endOffset) break
    if (nextBaseOffset !== undefined && frame.baseOffset + frame.count > nextBaseOffset) break
    extend(segment, frame)
  }
  if (nextBaseOffset !== undefined) {
    if (segment.endOffset === nextBaseOffset) return segment
    const problem = `no valid frame for offset ${segment.endOffset}, and the next segment begins at ${nextBaseOffset}`
    return new LogCorrupt({ file: path, position: segment.bytes, problem })
  }
  if (hasFrameAfter(content, segment.bytes, logId)) {
    const problem = `no valid frame for offset ${segment.endOffset}, but valid frames follow`
    return new LogCorrupt({ file: path, position: segment.bytes, problem })
  }
  return segment
}

const markBefore = (segment: Segment, offset: number): number => {
  let low = 0
  let high = segment.marks.length - 1
  while (low < high) {
    const middle = (low + high + 1) >> 1
    if ((segment.marks[middle]?.offset ?? Infinity) <= offset) low = middle
    else high = middle - 1
  }
  return segment.marks[low]?.position ?? 0
}

/** Adds the segment's records from offset `from` on, until the batch is full or the segment ends. */
export const read = (
  files: LogFileSystem,
  segment: Segment,
  logId: bigint,
  from: number,
  into: RecordBatch
): Effect.Effect<void, FileFailed> =>
  Effect.acquireUseRelease(
    files.open(segment.path, "read"),
    (file) => readFrames(file, segment, logId, from, into),
    (file) => file.close
  )

const readFrames = Effect.fnUntraced(function* (
  file: LogFile,
  segment: Segment,
  logId: bigint,
  from: number,
  into: RecordBatch
) {
  const end = segment.bytes
  let position = markBefore(segment, from)
  let chunkBytes = readBytes
  while (position < end && !into.full) {
    const chunk = new Uint8Array(Math.min(chunkBytes, end - position))
    const filled = yield* file.read(chunk, position)
    const taken = takeFrames(chunk.subarray(0, filled), logId, from, into)
    if (taken === 0) {
      const claimed = claimedBytes(chunk, 0) ?? 0
      if (filled < chunk.length || claimed <= chunk.length) return yield* unreadable(segment, position)
      // One frame larger than the chunk.
      chunkBytes = claimed
    }
    position += taken
  }
})

/** Answers the bytes of the whole frames at the start of the chunk. */
const takeFrames = (chunk: Uint8Array, logId: bigint, from: number, into: RecordBatch): number => {
  let at = 0
  while (at + headerBytes <= chunk.length && !into.full) {
    const frame = frameAt(chunk, at, logId)
    if (frame === undefined) break
    if (frame.baseOffset + frame.count > from) collect(frame, from, into)
    at += frame.bytes.length
  }
  return at
}

const unreadable = (segment: Segment, position: number): FileFailed =>
  new FileFailed({
    operation: "read",
    path: segment.path,
    code: "EBADMSG",
    cause: new LogCorrupt({ file: segment.path, position, problem: "a frame that was valid no longer is" })
  })
