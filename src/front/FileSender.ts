import { close, read } from "node:fs"
import type { BlockPool, BlockUser } from "./BlockPool.ts"
import type { FileRange, FileSent } from "./RawRoute.ts"

/** An engine's side of an answer out of a file. The head goes out with its first bytes. */
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

/** A transfer reads one block while it sends another. */
const blocksEach = 2

/**
 * The body of an answer out of a file, on either engine. Blocks of which a client takes nothing may be given to other
 * transfers: what was in them is read again.
 */
export class FileSender implements BlockUser {
  private readonly file: FileRange
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

  constructor(file: FileRange, sink: FileSink, pool: BlockPool, sent: FileSent) {
    this.file = file
    this.sink = sink
    this.pool = pool
    this.sent = sent
    this.sentTo = file.from
    this.readTo = file.from
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
    const { blocks, file, sink } = this
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
    if (this.sentTo >= file.to) return this.complete()
    if (!sink.isBehind) this.fill()
    else if (blocks.length > 0) this.pool.lend(this)
  }

  private complete(): void {
    this.sink.end()
    this.finish(true)
  }

  /** Begins to read the next block, if there is room for it. */
  private fill(): void {
    const isFull = this.blocks.length >= blocksEach || this.readTo >= this.file.to
    if (this.isOver || this.isReading || this.isWaiting || isFull) return
    const block = this.pool.take(this)
    if (block === undefined) this.isWaiting = true
    else this.read(block)
  }

  private read(bytes: Buffer): void {
    const at = this.readTo
    this.isReading = true
    read(this.file.fd, bytes, 0, Math.min(bytes.length, this.file.to - at), at, (error, count) => {
      this.isReading = false
      const isStale = this.isOver || at !== this.readTo
      if (isStale || error !== null || count === 0) this.pool.release(bytes)
      if (this.isOver) this.close()
      else if (isStale) this.advance()
      else if (error !== null) this.failed(error)
      else if (count === 0)
        this.failed(new Error(`The file ends ${this.file.to - at} bytes before its length`))
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
    this.sent(this.sentTo - this.file.from, isWhole)
  }

  private dropBlocks(): void {
    for (const { bytes } of this.blocks.splice(0)) this.pool.release(bytes)
  }

  private close(): void {
    if (this.isClosed) return
    this.isClosed = true
    closeFile(this.file)
  }
}

/** Nothing was written to it, so that closing it cannot lose anything. */
export const closeFile = ({ fd }: Pick<FileRange, "fd">): void => close(fd, () => undefined)
