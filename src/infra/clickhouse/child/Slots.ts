/** The queue in front of the slots is full. */
export class SlotsFull extends Error {}

/** A number of slots, handed out in the order of asking. */
export class Slots {
  private free: number
  private readonly maximumWaiting: number
  private readonly waiting: Array<() => void> = []

  constructor(size: number, maximumWaiting: number) {
    this.free = size
    this.maximumWaiting = maximumWaiting
  }

  async use<A>(task: () => Promise<A>): Promise<A> {
    if (this.free > 0) this.free--
    else {
      if (this.waiting.length >= this.maximumWaiting) throw new SlotsFull("too many requests wait")
      await new Promise<void>((resolve) => this.waiting.push(resolve))
    }
    try {
      return await task()
    } finally {
      const next = this.waiting.shift()
      if (next === undefined) this.free++
      else next()
    }
  }
}
