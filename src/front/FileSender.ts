import { close, read } from "node:fs"
import type { BlockPool, BlockUser } from "./BlockPool.ts"
import type { ByteSource, FileRange, FileSent } from "./RawRoute.ts"

/** An engine's side of an answer out of a source. The head goes out with its first bytes. */
export interface FileSink {
  /** the socket takes nothing; `FileSender.writable` will be called */
  readonly isBehind: boolean
  /** Hands bytes over: the number of those that the socket has taken. The bytes may change afterwards. */
  give(bytes: Uint8Array): number
  /** All bytes are handed over: nothing of the answer may be touched from then on. */
  end(): void
  /** The answer cannot become whole. */
  fail(cause: Error): void
}

interface Block {
  readonly bytes: Buffer
  /** the part that is to be sent */
  from: number
  readonly to: number
}

/** A transfer reads one block while it sends another; a third one waits, so that neither waits for the other. */
const blocksEach = 3

/** A part of an open file, which is closed with it. */
export class FileSource implements ByteSource {
  readonly from: number
  readonly to: number
  private readonly fd: number

  constructor({ fd, from, to }: FileRange) {
    this.fd = fd
    this.from = from
    this.to = to
  }

  read(into: Buffer, at: number, done: (error: Error | null, count: number) => void): void {
    const left = this.to - at
    read(this.fd, into, 0, Math.min(into.length, left), at, (error, count) => {
      if (error === null && count === 0) done(new Error(`The file ends ${left} bytes before its length`), 0)
      else done(error, count)
    })
  }

  /** Nothing was written to it, so that closing it cannot lose anything. */
  close(): void {
    close(this.fd, () => undefined)
  }
}

/**
 * The body of an answer out of a source, on either engine. Blocks of which a client takes nothing may be given to other
 * transfers: what was in them is read again.
 */
export class FileSender implements BlockUser {
  private readonly source: ByteSource
  private readonly sink: FileSink
  private readonly pool: BlockPool
  private readonly sent: FileSent
  private readonly blocks: Array<Block> = []
  private sentTo: number
  private readTo: number
  private isReading = false
  private isWaiting = false
  private isOver = false
  private isClosed = false

  constructor(source: ByteSource, sink: FileSink, pool: BlockPool, sent: FileSent) {
    this.source = source
    this.sink = sink
    this.pool = pool
    this.sent = sent
    this.sentTo = source.from
    this.readTo = source.from
  }

  start(): void {
    this.fill()
  }

  /** The socket can take more. */
  writable(): void {
    if (this.isOver) return
    this.pool.unlend(this)
    this.advance()
  }

  /** The client is gone. */
  abort(): void {
    if (!this.isOver) this.finish(false)
  }

  granted(block: Buffer): void {
    this.isWaiting = false
    this.read(block)
  }

  giveBack(): void {
    this.readTo = this.sentTo
    this.dropBlocks()
  }

  private advance(): void {
    const { blocks, sink, source } = this
    for (let block = blocks[0]; block !== undefined && !sink.isBehind; block = blocks[0]) {
      const taken = sink.give(block.bytes.subarray(block.from, block.to))
      // The connection may have ended meanwhile.
      if (this.isOver) return
      this.sentTo += taken
      block.from += taken
      if (block.from < block.to) continue
      blocks.shift()
      this.pool.release(block.bytes)
    }
    if (this.sentTo >= source.to) return this.complete()
    if (!sink.isBehind) this.fill()
    else if (blocks.length > 0) this.pool.lend(this)
  }

  private complete(): void {
    this.sink.end()
    this.finish(true)
  }

  /** Begins to read the next block, if there is room for it. */
  private fill(): void {
    const isFull = this.blocks.length >= blocksEach || this.readTo >= this.source.to
    if (this.isOver || this.isReading || this.isWaiting || isFull) return
    const block = this.pool.take(this)
    if (block === undefined) this.isWaiting = true
    else this.read(block)
  }

  private read(bytes: Buffer): void {
    const at = this.readTo
    this.isReading = true
    this.source.read(bytes, at, (error, count) => {
      this.isReading = false
      const isStale = this.isOver || at !== this.readTo
      if (isStale || error !== null) this.pool.release(bytes)
      if (this.isOver) this.close()
      else if (isStale) this.advance()
      else if (error !== null) this.failed(error)
      else this.filled({ bytes, from: 0, to: count })
    })
  }

  private filled(block: Block): void {
    this.blocks.push(block)
    this.readTo += block.to
    // The next block is read while this one is sent.
    if (!this.sink.isBehind) this.fill()
    this.advance()
  }

  private failed(cause: Error): void {
    this.sink.fail(cause)
    this.abort()
  }

  private finish(isWhole: boolean): void {
    this.isOver = true
    this.pool.leave(this)
    this.dropBlocks()
    if (!this.isReading) this.close()
    this.sent(this.sentTo - this.source.from, isWhole)
  }

  private dropBlocks(): void {
    for (const { bytes } of this.blocks.splice(0)) this.pool.release(bytes)
  }

  private close(): void {
    if (this.isClosed) return
    this.isClosed = true
    this.source.close()
  }
}
