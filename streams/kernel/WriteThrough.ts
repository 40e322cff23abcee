import { join } from "node:path"
import { Clock, Effect, type Scope } from "effect"
import { frameAt, headerBytes, putRecord, recordHeaderBytes, seal, type Frame } from "./Frame.ts"
import type { FileFailed } from "./LogFailure.ts"
import type { LogFile, LogFileSystem } from "./LogFiles.ts"
import type { Segments } from "./Segments.ts"
import { readWhole } from "./WholeFile.ts"

/**
 * The records that gather for the next group commit, and those of the commit under way, kept with the operating system
 * from the instant they are appended: they survive `kill -9`, not a power cut. Beside the segments stand two small
 * files that are written over and over, one for the batch that gathers, one for the batch under way. The next process
 * writes their records beyond the segments' end there, before any read.
 *
 * The segments know nothing of this, so the rules for what is torn and what is damage there stay as they are. Here
 * nothing is damage: a file is good up to the first invalid frame, and leftovers of an earlier batch lie below the
 * segments' end.
 */
export interface WriteThrough {
  /** Once it returns undefined the records are in the kernel's hands; otherwise none of them counts. */
  readonly put: (firstOffset: number, records: ReadonlyArray<Uint8Array>) => FileFailed | undefined
  /** The batch that gathered is taken: from here on the other file is written, whose batch is on disk. */
  readonly turn: () => void
  /** Forgets everything, durably: after a batch failed its offsets are given out again. */
  readonly wipe: Effect.Effect<void, FileFailed>
}

const fileNames = ["write-through-0", "write-through-1"] as const

/** Overwriting a block that is there costs a third of growing a file, and never waits for the disk's journal. */
const firstBytes = 64 * 1024

interface Slot {
  readonly file: LogFile
  /** where the next frame goes */
  end: number
}

interface WriteThroughOptions {
  readonly files: LogFileSystem
  readonly directory: string
  readonly logId: bigint
}

/** Brings what a killed process left in the files into the segments, then begins with empty ones. */
export const open = Effect.fnUntraced(function* (
  options: WriteThroughOptions,
  segments: Segments
): Effect.fn.Return<WriteThrough, FileFailed, Scope.Scope> {
  yield* recover(options, segments)
  const slots: Array<Slot> = []
  for (const name of fileNames) slots.push({ file: yield* openFile(options, name), end: 0 })
  const [first, second] = slots
  if (first === undefined || second === undefined) return yield* Effect.die("two files were opened")
  const wipe = Effect.uninterruptible(
    Effect.forEach(slots, (slot) => Effect.tap(zero(slot.file), () => Effect.sync(() => (slot.end = 0))), {
      discard: true
    })
  )
  yield* wipe
  yield* options.files.syncDirectory(options.directory)
  return writeThrough(options.logId, first, second, wipe)
})

const openFile = ({ directory, files }: WriteThroughOptions, name: string) => {
  const path = join(directory, name)
  return Effect.acquireRelease(
    Effect.catchIf(
      files.open(path, "write"),
      (error) => error.code === "ENOENT",
      () => files.open(path, "create")
    ),
    (file) =>
      file.close.pipe(
        Effect.catch((error) => Effect.logWarning("closing a file of gathering records failed", error))
      )
  )
}

/** In place: on a full disk there is room for it. */
const zero = Effect.fnUntraced(function* (file: LogFile) {
  const end = Math.max(firstBytes, yield* file.size)
  const zeros = new Uint8Array(firstBytes)
  let at = 0
  while (at < end) at += yield* file.write(zeros.subarray(0, Math.min(firstBytes, end - at)), at)
  yield* file.sync
})

const writeThrough = (logId: bigint, first: Slot, second: Slot, wipe: WriteThrough["wipe"]): WriteThrough => {
  let gathering = first
  let scratch = new Uint8Array(4096)
  const frameOf = (baseOffset: number, records: ReadonlyArray<Uint8Array>): Uint8Array => {
    const length = records.reduce((sum, record) => sum + recordHeaderBytes + record.length, headerBytes)
    if (length > scratch.length) scratch = new Uint8Array(length * 2)
    let at = headerBytes
    for (const record of records) at = putRecord(scratch, at, record)
    return seal(scratch.subarray(0, at), { logId, baseOffset, count: records.length, appendedAtMillis: 0 })
      .bytes
  }
  return {
    put: (firstOffset, records) => {
      if (records.length === 0) return undefined
      const bytes = frameOf(firstOffset, records)
      const slot = gathering
      for (let written = 0; written < bytes.length;) {
        const outcome = slot.file.writeNow(bytes.subarray(written), slot.end + written)
        // A partly written frame ends the file for its readers, until the next frame is written over it.
        if (typeof outcome !== "number") return outcome
        written += outcome
      }
      slot.end += bytes.length
      return undefined
    },
    turn: () => {
      gathering = gathering === first ? second : first
      gathering.end = 0
    },
    wipe
  }
}

const recover = Effect.fnUntraced(function* (
  { directory, files, logId }: WriteThroughOptions,
  segments: Segments
) {
  const found: Array<Frame> = []
  for (const name of fileNames) {
    const content = (yield* readWhole(files, join(directory, name))) ?? new Uint8Array()
    found.push(...framesOf(content, logId))
  }
  const baseOffset = segments.endOffset()
  const parts: Array<Uint8Array> = []
  let end = baseOffset
  for (const frame of found.sort((a, b) => a.baseOffset - b.baseOffset)) {
    if (frame.baseOffset !== end) continue
    parts.push(frame.bytes.subarray(headerBytes))
    end += frame.count
  }
  if (parts.length === 0) return
  const bytes = Buffer.concat([new Uint8Array(headerBytes), ...parts])
  const appendedAtMillis = Math.trunc(yield* Clock.currentTimeMillis)
  const stamp = { logId, baseOffset, count: end - baseOffset, appendedAtMillis }
  yield* segments.append(seal(bytes, stamp))
})

/** The whole frames at the start of a file: those of its batch, and perhaps some of a batch before, which are below it. */
const framesOf = (content: Uint8Array, logId: bigint): ReadonlyArray<Frame> => {
  const frames: Array<Frame> = []
  let at = 0
  for (;;) {
    const frame = frameAt(content, at, logId)
    if (frame === undefined) return frames
    frames.push(frame)
    at += frame.bytes.length
  }
}
