import { Effect } from "effect"

/** Items that wait for another machine, in order. Adding never waits; taking gets all of them, up to a size. */
export class Outbox<A> {
  private items: Array<A> = []
  private sizes: Array<number> = []
  /** items before this one have been taken */
  private head = 0
  private waiter: (() => void) | undefined
  private readonly batchBytes: number
  bytes = 0

  constructor(batchBytes: number) {
    this.batchBytes = batchBytes
  }

  add(item: A, bytes: number): void {
    this.items.push(item)
    this.sizes.push(bytes)
    this.bytes += bytes
    const waiter = this.waiter
    this.waiter = undefined
    waiter?.()
  }

  /** Waits for the first item, then takes all that are there: at least one. For one taker. */
  readonly take: Effect.Effect<readonly [A, ...Array<A>]> = Effect.suspend(() => {
    const batch = this.next()
    return batch === undefined ? Effect.flatMap(this.filled, () => this.take) : Effect.succeed(batch)
  })

  private readonly filled = Effect.callback<void>((resume) => {
    if (this.head < this.items.length) return resume(Effect.void)
    this.waiter = () => resume(Effect.void)
    return Effect.sync(() => {
      this.waiter = undefined
    })
  })

  private next(): readonly [A, ...Array<A>] | undefined {
    let end = this.head
    let bytes = 0
    while (end < this.items.length && bytes < this.batchBytes) bytes += this.sizes[end++] ?? 0
    const [first, ...rest] = this.items.slice(this.head, end)
    if (first === undefined) return undefined
    this.bytes -= bytes
    this.head = end
    if (this.head === this.items.length) this.clear()
    else if (this.head > 1_024 && this.head * 2 > this.items.length) this.compact()
    return [first, ...rest]
  }

  private clear(): void {
    this.items = []
    this.sizes = []
    this.head = 0
  }

  private compact(): void {
    this.items = this.items.slice(this.head)
    this.sizes = this.sizes.slice(this.head)
    this.head = 0
  }
}
