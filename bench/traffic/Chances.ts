import type { Random } from "./Random.ts"

/**
 * Draws indices by their weights, in constant time however many there are: one comparison in a table of equally likely
 * columns, each shared by at most two indices (Walker's alias method, as Vose builds it).
 */
export class Chances {
  readonly #own: Float64Array
  readonly #other: Uint32Array

  constructor(weights: ReadonlyArray<number>) {
    const count = weights.length
    const total = weights.reduce((sum, weight) => sum + weight, 0)
    const scaled = Float64Array.from(weights, (weight) => (weight * count) / total)
    this.#own = new Float64Array(count).fill(1)
    this.#other = Uint32Array.from(weights, (_, index) => index)
    const small: Array<number> = []
    const large: Array<number> = []
    for (let index = 0; index < count; index++) ((scaled[index] ?? 0) < 1 ? small : large).push(index)
    for (;;) {
      const less = small.pop()
      const more = large.pop()
      // The rest of either kind fills its column, but for rounding.
      if (less === undefined || more === undefined) return
      this.#own[less] = scaled[less] ?? 1
      this.#other[less] = more
      scaled[more] = (scaled[more] ?? 1) - (1 - (scaled[less] ?? 1))
      ;((scaled[more] ?? 1) < 1 ? small : large).push(more)
    }
  }

  draw(next: Random): number {
    const place = next() * this.#own.length
    const column = Math.floor(place)
    return place - column < (this.#own[column] ?? 1) ? column : (this.#other[column] ?? column)
  }
}

/** Zipf: the thing of rank r (from 1) is met r^-exponent as often as the first. */
export const zipf = (count: number, exponent = 1): Chances =>
  new Chances(Array.from({ length: count }, (_, rank) => (rank + 1) ** -exponent))

/** Values with their weights. */
export class Choice<Value> {
  readonly #values: ReadonlyArray<Value>
  readonly #chances: Chances

  constructor(weighted: ReadonlyArray<readonly [Value, number]>) {
    this.#values = weighted.map(([value]) => value)
    this.#chances = new Chances(weighted.map(([, weight]) => weight))
  }

  draw(next: Random): Value {
    const value = this.#values[this.#chances.draw(next)]
    if (value === undefined) throw new Error("There is nothing to draw from")
    return value
  }
}
