import { randomBytes } from "node:crypto"

/**
 * Two times 32 bits that stand for a text in tables of this process: FNV-1a with two secret starts of its own, and the
 * finish of MurmurHash3. A cryptographic hash would cost an event more than all else that looks at its address. Answers
 * from one object, good until the next call.
 */
export class AddressHash {
  low = 0
  high = 0
  readonly #lowStart = randomBytes(4).readUInt32LE()
  readonly #highStart = randomBytes(4).readUInt32LE()

  /** Of the two texts, one behind the other. */
  of(first: string, second: string): this {
    this.#begin()
    this.#add(first)
    this.#add(second)
    this.low = finished(this.low)
    this.high = finished(this.high ^ this.low)
    return this
  }

  #begin(): void {
    this.low = this.#lowStart
    this.high = this.#highStart
  }

  #add(text: string): void {
    let { high, low } = this
    for (let index = 0; index < text.length; index++) {
      const unit = text.charCodeAt(index)
      low = Math.imul(low ^ unit, 0x01000193)
      high = Math.imul((high ^ unit) + 0x9e3779b9, 0x85ebca6b)
      high ^= high >>> 15
    }
    this.low = low
    this.high = high
  }
}

const finished = (bits: number): number => {
  let mixed = bits ^ (bits >>> 16)
  mixed = Math.imul(mixed, 0x85ebca6b)
  mixed ^= mixed >>> 13
  mixed = Math.imul(mixed, 0xc2b2ae35)
  return (mixed ^ (mixed >>> 16)) >>> 0
}
