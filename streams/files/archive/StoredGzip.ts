/**
 * A gzip file of one member whose bytes are stored as they are, in blocks of 65,535: where each byte of the content is in it
 * is known beforehand. Source: RFC 1952, and RFC 1951 section 3.2.4.
 */
const mostStored = 65_535
const blockHead = 5
const blockBytes = blockHead + mostStored

/** Deflate; no flags, no time, no extra flags, an unknown system. */
const header = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255])
const trailerBytes = 8

/** The places in a buffer that the content from the byte `from` on belongs into, one behind the other. */
export interface ContentPlaces {
  readonly from: number
  readonly views: ReadonlyArray<Buffer>
}

export class StoredGzip {
  readonly sizeBytes: number
  private readonly contentBytes: number
  private readonly blocks: number
  private readonly trailer = Buffer.alloc(trailerBytes)
  private readonly head = Buffer.alloc(blockHead)

  /** `contentBytes`: at least one; `crc32`: of the content */
  constructor(contentBytes: number, crc32: number) {
    this.contentBytes = contentBytes
    this.blocks = Math.ceil(contentBytes / mostStored)
    this.sizeBytes = header.length + contentBytes + blockHead * this.blocks + trailerBytes
    this.trailer.writeUInt32LE(crc32, 0)
    this.trailer.writeUInt32LE(contentBytes % 2 ** 32, 4)
  }

  /** Puts the bytes from `at` on that are not content into `into`, which lies within the file. */
  frame(into: Buffer, at: number): ContentPlaces {
    const views: Array<Buffer> = []
    let from: number | undefined
    for (let done = 0; done < into.length;) {
      const place = at + done
      const inBlocks = place - header.length
      const block = Math.floor(inBlocks / blockBytes)
      const inBlock = inBlocks - block * blockBytes - blockHead
      const stored = block * mostStored
      if (place < header.length) done += header.copy(into, done, place)
      else if (place >= this.sizeBytes - trailerBytes)
        done += this.trailer.copy(into, done, place - this.sizeBytes + trailerBytes)
      else if (inBlock < 0) done += this.headOf(block).copy(into, done, inBlock + blockHead)
      else {
        const view = into.subarray(done, done + Math.min(mostStored, this.contentBytes - stored) - inBlock)
        from ??= stored + inBlock
        views.push(view)
        done += view.length
      }
    }
    return { from: from ?? 0, views }
  }

  /** Valid until the next one. */
  private headOf(block: number): Buffer {
    const isLast = block === this.blocks - 1
    const length = isLast ? this.contentBytes - block * mostStored : mostStored
    const { head } = this
    head[0] = isLast ? 1 : 0
    head.writeUInt16LE(length, 1)
    head.writeUInt16LE(length ^ 0xffff, 3)
    return head
  }
}
