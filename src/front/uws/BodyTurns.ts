/**
 * The bodies that pulls hand out in one turn of the event loop, of all connections: a piece of half a megabyte takes a millisecond
 * to hash and to write, and small requests wait that long behind each.
 */
export class BodyTurns {
  private readonly turnBytes: number
  private leftBytes: number
  private isBegun = false
  private readonly waiting: Array<() => void> = []

  /** @param turnBytes so many in a turn, and what the last piece has beyond them */
  constructor(turnBytes = 512 * 1024) {
    this.turnBytes = turnBytes
    this.leftBytes = turnBytes
  }

  /** Whether there is room for a piece in this turn. If not, `attempt` is called in a later one, in the order of the asking. */
  admits(bytes: number, attempt: () => void): boolean {
    this.begin()
    if (this.leftBytes <= 0) {
      this.waiting.push(attempt)
      return false
    }
    this.leftBytes -= bytes
    return true
  }

  private begin(): void {
    if (this.isBegun) return
    this.isBegun = true
    setImmediate(() => this.next())
  }

  private next(): void {
    this.isBegun = false
    this.leftBytes = this.turnBytes
    while (this.leftBytes > 0 && this.waiting.length > 0) this.waiting.shift()?.()
    if (this.waiting.length > 0) this.begin()
  }
}
