/** A budget of bytes over all connections: of hot bodies that have not arrived whole, or of calls under way. */
export class HeldBytes {
  private readonly maximum: number
  private held = 0

  constructor(maximum: number) {
    this.maximum = maximum
  }

  /** false: there is no room, and nothing was taken */
  take(bytes: number): boolean {
    if (this.held + bytes > this.maximum) return false
    this.held += bytes
    return true
  }

  release(bytes: number): void {
    this.held -= bytes
  }
}
