import { join } from "node:path"
import { Effect, Semaphore } from "effect"
import type { Frame } from "./Frame.ts"
import { FileFailed } from "./LogFailure.ts"
import type { LogFile, LogFileSystem } from "./LogFiles.ts"
import type { RecordBatch } from "./LogRecord.ts"
import * as Segment from "./Segment.ts"

/** The log's files: one writer at the end, readers anywhere, removal at the front. */
export interface Segments {
  /** durable when it succeeds. When it fails, nothing more may be appended before `repair` has succeeded */
  readonly append: (frame: Frame) => Effect.Effect<void, FileFailed>
  readonly repair: Effect.Effect<void, FileFailed>
  readonly read: (from: number, into: RecordBatch) => Effect.Effect<RecordBatch, FileFailed>
  /** removes the segments that hold no offset at or above `offset`, never the newest */
  readonly trim: (offset: number) => Effect.Effect<void, FileFailed>
  readonly close: Effect.Effect<void, FileFailed>
  readonly firstOffset: () => number
  readonly endOffset: () => number
  readonly bytes: () => number
  readonly count: () => number
}

interface SegmentsOptions {
  readonly files: LogFileSystem
  readonly directory: string
  readonly logId: bigint
  readonly segmentBytes: number
}

interface State {
  readonly list: Array<Segment.Segment>
  bytes: number
  /** the newest segment, when it is open for writing */
  active: { readonly file: LogFile; readonly segment: Segment.Segment } | undefined
  /** a segment whose end holds a batch that failed */
  damaged: Segment.Segment | undefined
}

/** `found` are the segments of the directory, oldest first, scanned and cut; the newest is written on. */
export const make = Effect.fnUntraced(function* (
  options: SegmentsOptions,
  found: ReadonlyArray<Segment.Segment>
) {
  const { files, logId } = options
  const state: State = {
    list: [...found],
    bytes: found.reduce((sum, segment) => sum + segment.bytes, 0),
    active: undefined,
    damaged: undefined
  }
  const newest = found.at(-1)
  if (newest !== undefined) state.active = { file: yield* files.open(newest.path, "write"), segment: newest }
  const trimming = yield* Semaphore.make(1)

  const segments: Segments = {
    append: (frame) => append(options, state, frame),
    repair: repair(options, state),
    read: Effect.fnUntraced(function* (from, into) {
      let at = from
      // A copy: a trim may shift the list between two reads.
      const list = state.list.slice()
      for (const segment of list) {
        if (into.full) break
        if (segment.endOffset <= at) continue
        yield* Segment.read(files, segment, logId, at, into)
        at = segment.endOffset
      }
      return into
    }),
    trim: (offset) => trimming.withPermit(trim(options, state, offset)),
    close: Effect.suspend(() => closeActive(state)),
    firstOffset: () => state.list[0]?.baseOffset ?? 0,
    endOffset: () => state.list.at(-1)?.endOffset ?? 0,
    bytes: () => state.bytes,
    count: () => state.list.length
  }
  return segments
})

const closeActive = (state: State): Effect.Effect<void, FileFailed> => {
  const file = state.active?.file
  state.active = undefined
  return file === undefined ? Effect.void : file.close
}

const append = Effect.fnUntraced(
  function* (options: SegmentsOptions, state: State, frame: Frame) {
    const current = state.active
    const isFull =
      current !== undefined &&
      current.segment.bytes > 0 &&
      current.segment.bytes + frame.bytes.length > options.segmentBytes
    const { file, segment } =
      current === undefined || isFull ? yield* roll(options, state, frame.baseOffset) : current
    yield* writeAll(file, segment, frame.bytes)
    yield* file.sync
    Segment.extend(segment, frame)
    state.bytes += frame.bytes.length
  },
  (effect, _options, state) => Effect.tapError(effect, () => abandon(state))
)

const writeAll = Effect.fnUntraced(function* (file: LogFile, segment: Segment.Segment, bytes: Uint8Array) {
  let written = 0
  while (written < bytes.length) {
    const rest = written === 0 ? bytes : bytes.subarray(written)
    const count = yield* file.write(rest, segment.bytes + written)
    if (count === 0) {
      const cause = new Error("the file takes no bytes")
      return yield* new FileFailed({ operation: "write", path: segment.path, code: "ENOSPC", cause })
    }
    written += count
  }
})

/** Begins a segment. Its name must be durable before a frame in it is acknowledged. */
const roll = Effect.fnUntraced(function* (options: SegmentsOptions, state: State, baseOffset: number) {
  yield* closeActive(state)
  const path = join(options.directory, Segment.fileName(baseOffset))
  const file = yield* options.files.open(path, "create")
  yield* options.files.syncDirectory(options.directory).pipe(Effect.tapError(() => file.close))
  const newest = state.list.at(-1)
  // A segment whose first batch failed has the same name, and is begun anew.
  const segment = newest?.baseOffset === baseOffset ? newest : Segment.empty(path, baseOffset)
  if (segment !== newest) state.list.push(segment)
  state.active = { file, segment }
  return state.active
})

/**
 * After a failed write or fdatasync it is unknown which part of the batch is on disk, and a later fdatasync of the same
 * pages may succeed without having written them ("fsyncgate"). So this segment is never written again: its end is cut
 * off, and the next batch begins a new segment.
 */
const abandon = (state: State): Effect.Effect<void> => {
  state.damaged = state.active?.segment ?? state.damaged
  // The descriptor is released even if close fails; the records were lost before.
  return closeActive(state).pipe(
    Effect.catch((error) => Effect.logWarning("closing a damaged segment failed", error))
  )
}

const repair = Effect.fnUntraced(function* (options: SegmentsOptions, state: State) {
  const damaged = state.damaged
  if (damaged === undefined) return
  yield* Effect.acquireUseRelease(
    options.files.open(damaged.path, "write"),
    (file) => Effect.andThen(file.truncate(damaged.bytes), file.sync),
    (file) => file.close
  )
  state.damaged = undefined
})

const trim = Effect.fnUntraced(function* (options: SegmentsOptions, state: State, offset: number) {
  for (;;) {
    const [oldest, next] = state.list
    if (oldest === undefined || next === undefined || next.baseOffset > offset) return
    yield* options.files.remove(oldest.path)
    state.list.shift()
    state.bytes -= oldest.bytes
    // One at a time, oldest first and durably: a crash must not bring back a segment from before a gap.
    yield* options.files.syncDirectory(options.directory)
  }
})
