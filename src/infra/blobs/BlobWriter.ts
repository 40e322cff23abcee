import { KeptBuffers } from "#src/infra/shares/KeptBuffers.ts"
import type { SummedBlob } from "./BlobIndex.ts"
import { RunningSums } from "./RunningSums.ts"

/** The part of a `FileHandle` that writing needs, so that a test can bring a disk with faults. */
export interface WritableFile {
  writeFile(chunk: Uint8Array): Promise<void>
  truncate(bytes: number): Promise<void>
  datasync(): Promise<void>
  close(): Promise<void>
}

/** The first write of a blob, and each that is behind one that came slowly, so that slow ones hold little... */
export const slowBuffers = new KeptBuffers(4 * 1024, { most: 1024 })
/** ...the first bytes may have been gathered elsewhere, and tell nothing of the client... */
const untoldBytes = 32 * 1024
/** ...each behind one that came within this is twice as large... */
const quickMillis = 100
/** ...and each behind one that took longer than this is as the first. */
const slowMillis = 1000
const quickBuffers = new KeptBuffers(1024 * 1024, { most: 8, burstMost: 64 })

/** The size of the write behind one of `size` bytes that was gathered in `millis`. */
const nextSize = (size: number, millis: number): number => {
  if (millis < quickMillis) return Math.min(size * 2, quickBuffers.bytes)
  return millis < slowMillis ? size : slowBuffers.bytes
}

const buffersOf = (size: number): KeptBuffers | undefined =>
  [slowBuffers, quickBuffers].find(({ bytes }) => bytes === size)

const bufferOf = (size: number): Buffer => buffersOf(size)?.take() ?? Buffer.allocUnsafeSlow(size)

const giveBack = (buffer: Buffer): void => buffersOf(buffer.length)?.giveBack(buffer)

/** Writes a blob to its file in few, large pieces: one is being written while the next is gathered. */
export class BlobWriter {
  sizeBytes = 0
  private readonly file: WritableFile
  private readonly sums: RunningSums
  private readonly onDurable: (bytes: number) => void
  private writtenBytes = 0
  private durableBytes = 0
  /** resolves to why the last sync failed, if it did; undefined where none is under way */
  private sync: Promise<unknown> | undefined
  private buffer = slowBuffers.take()
  private filledBytes = 0
  private begunAt = performance.now()
  private isWriting = false
  /** resolves to why the write failed, if it did */
  private writing: Promise<unknown> = Promise.resolve()

  /**
   * @param sums has the bytes before, where these are appended to others
   * @param onDurable is told how many of this writer's bytes are on the disk, where `keepUp` is called
   */
  constructor(
    file: WritableFile,
    sums = new RunningSums(),
    onDurable: (bytes: number) => void = () => undefined
  ) {
    this.file = file
    this.sums = sums
    this.onDurable = onDurable
  }

  /** Copies the bytes; resolves when there is room for more, and rejects once a write has failed. */
  async write(bytes: Uint8Array): Promise<void> {
    this.sizeBytes += bytes.length
    this.sums.update(bytes)
    for (let at = 0; at < bytes.length;) {
      const part = bytes.subarray(at, at + this.buffer.length - this.filledBytes)
      this.buffer.set(part, this.filledBytes)
      this.filledBytes += part.length
      at += part.length
      if (this.filledBytes === this.buffer.length) await this.flush()
    }
  }

  /** All is on the disk when it resolves. */
  async finish(): Promise<SummedBlob> {
    await this.allDurable()
    return this.sums.sums
  }

  /** The same where the sums go on with bytes of later writers. */
  async allDurable(): Promise<void> {
    if (this.filledBytes > 0) await this.flush()
    await this.written()
    const failure = await this.sync
    if (failure !== undefined) throw failure
    await this.file.datasync()
  }

  /** Once nothing is being written any more; a failure was told by the other methods. */
  async settled(): Promise<void> {
    await this.writing
    await this.sync
    giveBack(this.buffer)
  }

  /**
   * Called every so often: writes what was gathered, and syncs what was written before, so that no more than what came since
   * the call before the last is lost with the process.
   */
  keepUp(): void {
    const { writtenBytes } = this
    if (writtenBytes > this.durableBytes && this.sync === undefined)
      this.sync = this.file.datasync().then(
        () => {
          this.durableBytes = writtenBytes
          this.sync = undefined
          this.onDurable(writtenBytes)
          return undefined
        },
        (cause: unknown) => cause
      )
    if (this.filledBytes > 0 && !this.isWriting) this.begin()
  }

  private async flush(): Promise<void> {
    const gatheredMillis = performance.now() - this.begunAt
    await this.written()
    this.begin(gatheredMillis)
  }

  /** Begins to write what was gathered. Nothing else is being written. */
  private begin(gatheredMillis = performance.now() - this.begunAt): void {
    const { buffer, filledBytes } = this
    this.begunAt = performance.now()
    this.buffer =
      this.sizeBytes <= untoldBytes ? slowBuffers.take() : bufferOf(nextSize(buffer.length, gatheredMillis))
    this.filledBytes = 0
    this.isWriting = true
    this.writing = this.file.writeFile(buffer.subarray(0, filledBytes)).then(
      () => {
        giveBack(buffer)
        this.writtenBytes += filledBytes
        this.isWriting = false
        return undefined
      },
      (cause: unknown) => cause
    )
  }

  private async written(): Promise<void> {
    const failure = await this.writing
    if (failure !== undefined) throw failure
  }
}
