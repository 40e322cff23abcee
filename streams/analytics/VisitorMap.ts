const wide = new BigUint64Array(1)
const halves = new Uint32Array(wide.buffer)

/**
 * The two halves of a visitor's 64 bits, the lower one first, without making a big integer; they are good until the next
 * call.
 */
export const halvesOf = (visitor: bigint): Uint32Array => {
  wide[0] = visitor
  return halves
}

interface Entry<A> {
  /** the visitor's upper 34 bits; the lower ones are its key */
  readonly high: number
  value: A
  next: Entry<A> | undefined
}

const lowBits = 30

/**
 * A map by visitor, in no order. V8 looks up small integers in a fifth of the time of big ones, so the lower 30 bits are the key;
 * of visitors that have them in common, some of each million, one is behind the other.
 */
export class VisitorMap<A> {
  readonly #entries = new Map<number, Entry<A>>()
  #size = 0

  get size(): number {
    return this.#size
  }

  get(visitor: bigint): A | undefined {
    const high = highOf(visitor)
    let entry = this.#entries.get(lowest())
    while (entry !== undefined && entry.high !== high) entry = entry.next
    return entry?.value
  }

  set(visitor: bigint, value: A): void {
    const high = highOf(visitor)
    const low = lowest()
    const first = this.#entries.get(low)
    let entry = first
    while (entry !== undefined && entry.high !== high) entry = entry.next
    if (entry !== undefined) {
      entry.value = value
      return
    }
    this.#entries.set(low, { high, value, next: first })
    this.#size++
  }

  delete(visitor: bigint): void {
    const high = highOf(visitor)
    const low = lowest()
    let before: Entry<A> | undefined
    let entry = this.#entries.get(low)
    while (entry !== undefined && entry.high !== high) {
      before = entry
      entry = entry.next
    }
    if (entry === undefined) return
    if (before !== undefined) before.next = entry.next
    else if (entry.next !== undefined) this.#entries.set(low, entry.next)
    else this.#entries.delete(low)
    this.#size--
  }
}

const highOf = (visitor: bigint): number => {
  wide[0] = visitor
  return (halves[1] as number) * 2 ** (32 - lowBits) + ((halves[0] as number) >>> lowBits)
}

/** The key of the visitor of the last `highOf`. */
const lowest = (): number => (halves[0] as number) & (2 ** lowBits - 1)
