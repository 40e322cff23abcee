import { Clock, Effect, Result } from "effect"
import { headerBytes, putRecord, recordHeaderBytes, seal, type Frame } from "./Frame.ts"
import { FileFailed, LogFull, LogUnavailable, unavailable } from "./LogFailure.ts"
import type { Segments } from "./Segments.ts"
import type { WriteThrough } from "./WriteThrough.ts"

export type Acknowledge = (error: LogUnavailable | undefined) => void

export interface GroupCommitOptions {
  readonly logId: bigint
  readonly segments: Segments
  /** where records are kept from their `append` until they are durable, if they are to survive the process at once */
  readonly writeThrough: WriteThrough | undefined
  readonly capBytes: number
  readonly maxBatchBytes: number
  readonly fullRetryAfterSeconds: number
  readonly repairEveryMillis: number
  /** least time from one commit's begin to the next one's. 0: as soon as the disk is done */
  readonly commitEveryMillis: number
  /** a frame is durable; its bytes are only valid during the call. Called before the acknowledgements */
  readonly onDurable: (frame: Frame) => void
  /** removes records that no consumer needs any more: after a write that failed, perhaps for want of room */
  readonly makeRoom: Effect.Effect<void>
}

interface Batch {
  bytes: Uint8Array
  used: number
  count: number
  readonly waiting: Array<Acknowledge>
}

const firstBufferBytes = 256 * 1024

const newBatch = (maxBatchBytes: number): Batch => ({
  bytes: new Uint8Array(Math.min(firstBufferBytes, maxBatchBytes)),
  used: headerBytes,
  count: 0,
  waiting: []
})

/** Makes room for `needed` more bytes by doubling; false when the batch would outgrow its limit. */
const hasRoom = (batch: Batch, needed: number, maxBatchBytes: number): boolean => {
  const total = batch.used + needed
  if (total > maxBatchBytes) return false
  const grown = new Uint8Array(Math.min(maxBatchBytes, Math.max(total, batch.bytes.length * 2)))
  grown.set(batch.bytes.subarray(0, batch.used))
  batch.bytes = grown
  return true
}

/** An acknowledgement that throws is its owner's bug: the others are still called, and it is thrown outside. */
const acknowledge = (batch: Batch, error: LogUnavailable | undefined): void => {
  for (const done of batch.waiting) {
    try {
      done(error)
    } catch (defect) {
      queueMicrotask(() => {
        throw defect
      })
    }
  }
  batch.waiting.length = 0
  batch.used = headerBytes
  batch.count = 0
}

/**
 * Gathers records while the previous batch is being written, then writes them as one frame with one fdatasync and
 * acknowledges them all. `append` is the hot path: one copy into the gathering buffer, no promise, no closure.
 */
export class GroupCommit {
  /** the offset the next record gets */
  next: number
  /** everything below is on disk */
  durable: number
  commits = 0
  /** why records are refused at the moment, other than for want of room */
  refusal: LogUnavailable | undefined = undefined
  private readonly options: GroupCommitOptions
  private gathering: Batch
  private spare: Batch
  private writingBytes = 0
  private dueAtMillis = -Infinity
  private isClosing = false
  // Made once: refusals come by the thousand when they come, and an error with a stack is dear.
  private readonly atCap: LogFull
  private readonly diskBehind = new LogFull({ retryAfterSeconds: 1 })
  private wake: (() => void) | undefined = undefined

  constructor(options: GroupCommitOptions) {
    this.options = options
    this.atCap = new LogFull({ retryAfterSeconds: options.fullRetryAfterSeconds })
    this.durable = options.segments.endOffset()
    this.next = this.durable
    this.gathering = newBatch(options.maxBatchBytes)
    this.spare = newBatch(options.maxBatchBytes)
  }

  append(record: Uint8Array, done: Acknowledge): number | LogFull | LogUnavailable {
    const refused = this.refuse(recordHeaderBytes + record.length)
    if (refused !== undefined) return refused
    const { writeThrough } = this.options
    if (writeThrough !== undefined) {
      const failure = writeThrough.put(this.next, [record])
      if (failure !== undefined) return unavailable(failure)
    }
    const batch = this.gathering
    batch.used = putRecord(batch.bytes, batch.used, record)
    batch.count++
    batch.waiting.push(done)
    if (this.wake !== undefined) this.signal()
    return this.next++
  }

  appendAll(records: ReadonlyArray<Uint8Array>, done: Acknowledge): number | LogFull | LogUnavailable {
    let needed = 0
    for (const record of records) needed += recordHeaderBytes + record.length
    const refused = this.refuse(needed)
    if (refused !== undefined) return refused
    const failure = this.options.writeThrough?.put(this.next, records)
    if (failure !== undefined) return unavailable(failure)
    const batch = this.gathering
    for (const record of records) batch.used = putRecord(batch.bytes, batch.used, record)
    batch.count += records.length
    batch.waiting.push(done)
    if (this.wake !== undefined) this.signal()
    const first = this.next
    this.next += records.length
    return first
  }

  /** Refuses from now on; `run` writes what was gathered before, and returns. */
  close(): void {
    this.isClosing = true
    this.refusal = closed()
    this.signal()
  }

  /** Writes batch after batch, until `close`. */
  run(): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      while (!this.isClosing || this.gathering.waiting.length > 0) {
        if (this.gathering.waiting.length === 0) {
          yield* this.untilGathered
          // To the end of this turn of the event loop: records of the same turn share the fdatasync.
          yield* Effect.yieldNow
          continue
        }
        yield* this.untilDue()
        const batch = this.take()
        const outcome = yield* Effect.result(this.write(batch))
        this.writingBytes = 0
        if (Result.isSuccess(outcome)) acknowledge(batch, undefined)
        else {
          this.fail(batch, outcome.failure)
          yield* this.recover()
        }
      }
    })
  }

  /**
   * Every commit costs two system calls in another thread, however few its records, so under load they are kept apart
   * and each carries more. After a pause a record is written at once.
   */
  private untilDue(): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      const clock = yield* Clock.Clock
      const nowMillis = Number(clock.monotonicTimeNanosUnsafe()) / 1e6
      const waitMillis = this.dueAtMillis - nowMillis
      this.dueAtMillis = Math.max(nowMillis, this.dueAtMillis) + this.options.commitEveryMillis
      if (waitMillis > 0 && !this.isClosing) yield* Effect.sleep(waitMillis)
    })
  }

  private refuse(needed: number): LogFull | LogUnavailable | undefined {
    if (this.refusal !== undefined) return this.refusal
    const { capBytes, maxBatchBytes, segments } = this.options
    const batch = this.gathering
    if (needed > maxBatchBytes - headerBytes) {
      throw new RangeError(
        `${needed} bytes do not fit a batch of ${maxBatchBytes}: the caller's limit is too high`
      )
    }
    if (segments.bytes() + this.writingBytes + batch.used + needed > capBytes) {
      return this.atCap
    }
    // More than a whole batch waits for the disk: records come in faster than it takes them.
    if (batch.used + needed > batch.bytes.length && !hasRoom(batch, needed, maxBatchBytes)) {
      return this.diskBehind
    }
    return undefined
  }

  private signal(): void {
    const resume = this.wake
    this.wake = undefined
    resume?.()
  }

  private readonly untilGathered = Effect.callback<void>((resume) => {
    if (this.gathering.waiting.length > 0 || this.isClosing) return resume(Effect.void)
    this.wake = () => resume(Effect.void)
  })

  private take(): Batch {
    const batch = this.gathering
    this.gathering = this.spare
    this.spare = batch
    this.writingBytes = batch.used
    this.options.writeThrough?.turn()
    return batch
  }

  private write(batch: Batch): Effect.Effect<void, FileFailed> {
    return Effect.gen({ self: this }, function* () {
      // An empty `appendAll` waits for what came before it, and is no frame.
      if (batch.count === 0) return
      const { logId, segments, onDurable } = this.options
      const appendedAtMillis = Math.trunc(yield* Clock.currentTimeMillis)
      const stamp = { logId, baseOffset: this.durable, count: batch.count, appendedAtMillis }
      const frame = seal(batch.bytes.subarray(0, batch.used), stamp)
      yield* segments.append(frame)
      this.commits++
      this.durable += batch.count
      onDurable(frame)
    }).pipe(
      // A bug here must not leave callers waiting for ever.
      Effect.catchDefect((cause) =>
        Effect.fail(new FileFailed({ operation: "commit", path: "", code: "DEFECT", cause }))
      )
    )
  }

  /** Offsets given out after the failed batch rest on it, so what was gathered meanwhile fails with it. */
  private fail(batch: Batch, error: FileFailed): void {
    const refusal = unavailable(error)
    this.refusal = refusal
    this.next = this.durable
    const gathered = this.take()
    this.writingBytes = 0
    acknowledge(batch, refusal)
    acknowledge(gathered, refusal)
  }

  /** Refuses at once until the damage is repaired; the first batch after that is the probe. */
  private recover(): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      while (!this.isClosing) {
        yield* Effect.sleep(this.options.repairEveryMillis)
        yield* this.options.makeRoom
        const { segments, writeThrough } = this.options
        const repaired = yield* Effect.result(
          Effect.andThen(segments.repair, writeThrough?.wipe ?? Effect.void)
        )
        if (Result.isSuccess(repaired)) break
        this.refusal = unavailable(repaired.failure)
      }
      this.refusal = this.isClosing ? closed() : undefined
    })
  }
}

const closed = (): LogUnavailable =>
  new LogUnavailable({ reason: "closed", cause: new Error("the log has been closed") })
