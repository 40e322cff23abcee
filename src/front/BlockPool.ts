/** A transfer that reads a file into blocks of the pool. */
export interface BlockUser {
  /** A block that it waited for. */
  granted(block: Buffer): void
  /** It waits for its client, and others wait for blocks: it releases its own, and reads them again later. */
  giveBack(): void
}

/**
 * The blocks that all answers out of files share: never more than `count`. A transfer whose client takes nothing lends
 * its blocks to the others, so that stalled clients hold none that anybody wants.
 */
export class BlockPool {
  private readonly blockBytes: number
  private readonly count: number
  private readonly free: Array<Buffer> = []
  private made = 0
  private readonly waiting = new Set<BlockUser>()
  private readonly lenders = new Set<BlockUser>()

  constructor({
    fileBlockBytes,
    fileBlocks
  }: {
    readonly fileBlockBytes: number
    readonly fileBlocks: number
  }) {
    this.blockBytes = fileBlockBytes
    this.count = fileBlocks
  }

  /** undefined: `granted` will be called, unless the user leaves */
  take(user: BlockUser): Buffer | undefined {
    if (this.free.length === 0 && this.made < this.count) {
      this.made++
      return Buffer.allocUnsafeSlow(this.blockBytes)
    }
    while (this.free.length === 0) {
      const [lender] = this.lenders
      if (lender === undefined) break
      this.lenders.delete(lender)
      lender.giveBack()
    }
    const block = this.free.pop()
    if (block === undefined) this.waiting.add(user)
    return block
  }

  release(block: Buffer): void {
    const [user] = this.waiting
    if (user === undefined) return void this.free.push(block)
    this.waiting.delete(user)
    user.granted(block)
  }

  /** Its blocks may be had by others until `unlend`. */
  lend(user: BlockUser): void {
    if (this.waiting.size > 0) user.giveBack()
    else this.lenders.add(user)
  }

  unlend(user: BlockUser): void {
    this.lenders.delete(user)
  }

  /** It takes no more blocks. */
  leave(user: BlockUser): void {
    this.lenders.delete(user)
    this.waiting.delete(user)
  }
}
