import { randomBytes } from "node:crypto"
import { join } from "node:path"
import { Effect, Exit, Fiber, Scope } from "effect"
import * as Consumer from "./Consumer.ts"
import { claimedCount } from "./Frame.ts"
import { GroupCommit, type Acknowledge, type GroupCommitOptions } from "./GroupCommit.ts"
import { LogCorrupt, unavailable, type LogFull, type LogLocked, type LogUnavailable } from "./LogFailure.ts"
import { LogFiles, type LogFileSystem } from "./LogFiles.ts"
import * as Segment from "./Segment.ts"
import * as Segments from "./Segments.ts"
import * as Tail from "./Tail.ts"
import * as Waiters from "./Waiters.ts"
import { defaultQuarantine, type QuarantineLimits } from "./Quarantine.ts"
import { readWhole, replaceWhole } from "./WholeFile.ts"
import * as WriteThrough from "./WriteThrough.ts"

export type { LogConsumer } from "./Consumer.ts"
export type { LogRecord } from "./LogRecord.ts"
export { LogCorrupt, LogFull, LogLocked, LogUnavailable } from "./LogFailure.ts"

/**
 * An append-only log on disk. An acknowledged record is read back exactly once, in order, after any crash: of the
 * process at any instant, or of the machine, given a disk that keeps what fdatasync confirmed.
 */
export interface DurableLog {
  /** random, new for every fresh directory: (id, offset) names a record for ever */
  readonly id: bigint
  /** the offset the next record will get; offsets count records from 0 */
  readonly nextOffset: () => number
  /** everything below it is on disk */
  readonly durableOffset: () => number
  /**
   * Copies the record and answers its offset, or the refusal. `done` is called exactly once unless refused, later,
   * with undefined once the record is durable or with why it is not. Only then is the offset the record's own:
   * after a failure offsets are given out again. Throws a RangeError for a record over `maxBatchBytes`.
   */
  readonly append: (record: Uint8Array, done: Acknowledge) => number | LogFull | LogUnavailable
  /** All or none, one acknowledgement, contiguous offsets; answers the first one. */
  readonly appendAll: (
    records: ReadonlyArray<Uint8Array>,
    done: Acknowledge
  ) => number | LogFull | LogUnavailable
  /** Answers the offset once the record is durable. */
  readonly appendEffect: (record: Uint8Array) => Effect.Effect<number, LogFull | LogUnavailable>
  /** One of the declared consumers; a name that was not declared is a defect. */
  readonly consumer: (name: string) => Consumer.LogConsumer
  readonly stats: () => LogStats
}

interface LogStats {
  readonly bytes: number
  readonly segments: number
  readonly firstOffset: number
  readonly durableOffset: number
  readonly nextOffset: number
  /** records made durable since open */
  readonly appended: number
  /** group commits, and so fdatasyncs, since open */
  readonly fsyncs: number
  readonly tailBytes: number
  /** why appends are refused at the moment, other than by the cap */
  readonly failure: LogUnavailable["reason"] | undefined
}

export interface LogOptions {
  readonly directory: string
  /** the log keeps what the slowest of these has not committed */
  readonly consumers: ReadonlyArray<string>
  /** a new segment begins after this; at most a quarter of the cap. Default 32 MiB */
  readonly segmentBytes?: number
  /** appends are refused with LogFull while the segments hold so much. Default 1 GiB */
  readonly capBytes?: number
  /** one group commit, and so one record or `appendAll`, holds at most this. Default 16 MiB */
  readonly maxBatchBytes?: number
  /** newest records kept in memory for readers that keep up. Default 16 MiB */
  readonly tailBytes?: number
  /** the Retry-After in seconds while the cap is reached. Default 5 */
  readonly fullRetryAfterSeconds?: number
  /**
   * group commits begin at least so far apart: under load fewer and larger ones, which cost less, and acknowledgements
   * come up to so much later. Default 0
   */
  readonly commitEveryMillis?: number
  /**
   * A record survives `kill -9` as soon as `append` has returned, not only once it is acknowledged, which still means a
   * power cut. Costs one more write per record, of a few microseconds, in the caller's thread. A log that was opened
   * with it is always opened with it: the records of a killed process are found by no other. Default false
   */
  readonly writeThrough?: boolean
  /** the most that each consumer may set aside. Default 1,000 records, 64 MiB */
  readonly quarantine?: QuarantineLimits
  /** after a failed write: pause before the log tries to write again. Default 100 */
  readonly repairEveryMillis?: number
}

const mebibyte = 1024 * 1024

/**
 * Opens the log, or makes it. Cuts the torn end that a crash left; anything else that is wrong refuses with
 * LogCorrupt. Closing the scope acknowledges what was appended before, then refuses.
 */
export const open = (
  options: LogOptions
): Effect.Effect<DurableLog, LogUnavailable | LogCorrupt | LogLocked, Scope.Scope> =>
  Effect.gen(function* () {
    // A scope of its own: when opening fails the lock is given back at once, so that it can be tried again.
    const scope = yield* Scope.fork(yield* Effect.scope)
    return yield* openIn(options).pipe(
      Scope.provide(scope),
      Effect.onError((cause) => Scope.close(scope, Exit.failCause(cause)))
    )
  }).pipe(Effect.catchTag("FileFailed", (error) => Effect.fail(unavailable(error))))

const openIn = Effect.fnUntraced(function* (options: LogOptions) {
  const files = yield* LogFiles
  const { directory } = options
  yield* files.makeDirectory(directory)
  yield* files.lock(directory)
  const found = yield* findSegments(files, directory)
  const logId = yield* identify(files, directory, found.length > 0)
  const scanned = yield* scanAll(files, directory, found, logId)
  const capBytes = options.capBytes ?? 1024 * mebibyte
  const segmentBytes = Math.min(options.segmentBytes ?? 32 * mebibyte, Math.floor(capBytes / 4))
  const segments = yield* Effect.acquireRelease(
    Segments.make({ files, directory, logId, segmentBytes }, scanned),
    (opened) => opened.close.pipe(Effect.catch((error) => Effect.logWarning("closing the log failed", error)))
  )
  const writeThrough =
    options.writeThrough === true
      ? yield* WriteThrough.open({ files, directory, logId }, segments)
      : undefined
  return yield* assemble(files, options, { logId, segments, writeThrough, capBytes })
})

const findSegments = Effect.fnUntraced(function* (files: LogFileSystem, directory: string) {
  const names = yield* files.list(directory)
  const offsets = names.map(Segment.baseOffsetOf).filter((offset) => offset !== undefined)
  return offsets.sort((a, b) => a - b)
})

/** The log's id from the file `log-id` (16 hexadecimal digits), made with the directory. */
const identify = Effect.fnUntraced(function* (files: LogFileSystem, directory: string, hasSegments: boolean) {
  const path = join(directory, "log-id")
  const bytes = yield* readWhole(files, path)
  const text = bytes === undefined ? "" : Buffer.from(bytes).toString("latin1")
  if (/^[0-9a-f]{16}$/.test(text)) return BigInt(`0x${text}`)
  // The file appears whole, before the first segment. Another id would disown every record.
  if (bytes !== undefined || hasSegments) {
    const problem = bytes === undefined ? "missing, but there are segments" : "not a log id"
    return yield* new LogCorrupt({ file: path, position: 0, problem })
  }
  const id = randomBytes(8).toString("hex")
  yield* replaceWhole(files, path, Buffer.from(id, "latin1"))
  return BigInt(`0x${id}`)
})

const scanAll = Effect.fnUntraced(function* (
  files: LogFileSystem,
  directory: string,
  baseOffsets: ReadonlyArray<number>,
  logId: bigint
) {
  const scanned: Array<Segment.Segment> = []
  for (const [index, baseOffset] of baseOffsets.entries()) {
    const path = join(directory, Segment.fileName(baseOffset))
    const content = (yield* readWhole(files, path)) ?? new Uint8Array()
    const segment = Segment.scan(path, baseOffset, content, logId, baseOffsets[index + 1])
    if (segment instanceof LogCorrupt) return yield* segment
    const isNewest = index === baseOffsets.length - 1
    const isTorn = segment.bytes < content.length
    if (isTorn) yield* sayCut(segment, content, logId, isNewest)
    // A killed process's writes may be in the page cache only: they are made durable before any use.
    if (isNewest || isTorn) {
      yield* Effect.acquireUseRelease(
        files.open(path, "write"),
        (file) => Effect.andThen(isTorn ? file.truncate(segment.bytes) : Effect.void, file.sync),
        (file) => file.close
      )
    }
    scanned.push(segment)
  }
  yield* files.syncDirectory(directory)
  return scanned
})

/** Acknowledged records are not cut, unless a disk has lost what it confirmed: the count is what tells. */
const sayCut = (segment: Segment.Segment, content: Uint8Array, logId: bigint, isNewest: boolean) => {
  const count = claimedCount(content, segment.bytes, logId)
  const records = count === undefined ? "an unknown number of records" : `${count} records`
  const bytes = `${content.length - segment.bytes} bytes from byte ${segment.bytes} on`
  return isNewest
    ? Effect.logWarning(`${segment.path}: its end is torn and was cut: ${records}, ${bytes}`)
    : Effect.logInfo(`${segment.path}: a batch that had failed was cut: ${records}, ${bytes}`)
}

const assemble = Effect.fnUntraced(function* (
  files: LogFileSystem,
  options: LogOptions,
  opened: Pick<GroupCommitOptions, "logId" | "segments" | "writeThrough" | "capBytes">
) {
  const { logId, segments } = opened
  const tail = Tail.make(options.tailBytes ?? 16 * mebibyte, segments.endOffset())
  const waiters = Waiters.make({ durableOffset: () => commit.durable, bytesFrom: tail.bytesFrom })
  const commit = new GroupCommit({
    ...opened,
    maxBatchBytes: options.maxBatchBytes ?? 16 * mebibyte,
    fullRetryAfterSeconds: options.fullRetryAfterSeconds ?? 5,
    repairEveryMillis: options.repairEveryMillis ?? 100,
    commitEveryMillis: options.commitEveryMillis ?? 0,
    onDurable: (frame) => {
      tail.push({ ...frame, bytes: frame.bytes.slice() })
      waiters.onDurable(frame)
    },
    makeRoom: Effect.suspend(() => trim)
  })
  const consumers = new Map<string, Consumer.LogConsumer>()
  const trim = Effect.suspend(() =>
    // Without a consumer no record may go.
    consumers.size === 0
      ? Effect.void
      : segments.trim(Math.min(...Array.from(consumers.values(), (consumer) => consumer.committed())))
  ).pipe(
    // Nothing is lost, only kept for longer: the next commit tries again.
    Effect.catch((error) => Effect.logWarning("removing a read segment failed", error))
  )
  let isClosed = false
  for (const name of options.consumers) {
    const consumer = yield* Consumer.make(name, {
      files,
      directory: options.directory,
      logId,
      segments,
      tail,
      waiters,
      durableOffset: () => commit.durable,
      isClosed: () => isClosed,
      quarantine: options.quarantine ?? defaultQuarantine,
      onCommit: trim
    })
    consumers.set(name, consumer)
  }
  yield* Effect.acquireRelease(Effect.forkDetach(commit.run()), (fiber) =>
    Effect.gen(function* () {
      commit.close()
      yield* Fiber.await(fiber)
      isClosed = true
      waiters.close()
    })
  )
  yield* trim
  return logOf(logId, commit, segments, tail, consumers)
})

const logOf = (
  id: bigint,
  commit: GroupCommit,
  segments: Segments.Segments,
  tail: Tail.Tail,
  consumers: ReadonlyMap<string, Consumer.LogConsumer>
): DurableLog => {
  const openedAt = commit.durable
  return {
    id,
    nextOffset: () => commit.next,
    durableOffset: () => commit.durable,
    append: (record, done) => commit.append(record, done),
    appendAll: (records, done) => commit.appendAll(records, done),
    appendEffect: (record) =>
      Effect.callback((resume) => {
        const offset = commit.append(record, (error) =>
          resume(error === undefined ? Effect.succeed(offset as number) : Effect.fail(error))
        )
        if (typeof offset !== "number") resume(Effect.fail(offset))
      }),
    consumer: (name) => {
      const consumer = consumers.get(name)
      if (consumer === undefined) throw new Error(`the log was opened without a consumer "${name}"`)
      return consumer
    },
    stats: () => ({
      bytes: segments.bytes(),
      segments: segments.count(),
      firstOffset: segments.firstOffset(),
      durableOffset: commit.durable,
      nextOffset: commit.next,
      appended: commit.durable - openedAt,
      fsyncs: commit.commits,
      tailBytes: tail.bytes(),
      failure: commit.refusal?.reason
    })
  }
}
