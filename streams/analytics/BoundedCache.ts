/**
 * A cache of at most `entriesMax` results of a pure function of a text. It keeps two generations: entries used since
 * the younger one began survive when the older one is dropped. A hit is one lookup and allocates nothing, where a list
 * in order of use would be rewritten by every hit.
 */
export class BoundedCache<A> {
  readonly #compute: (key: string) => A
  readonly #generationMax: number
  #young = new Map<string, A>()
  #old = new Map<string, A>()

  constructor(entriesMax: number, compute: (key: string) => A) {
    this.#compute = compute
    this.#generationMax = Math.max(1, Math.floor(entriesMax / 2))
  }

  get size(): number {
    return this.#young.size + this.#old.size
  }

  get(key: string): A {
    const found = this.#young.get(key)
    if (found !== undefined) return found
    const value = this.#old.get(key) ?? this.#compute(key)
    if (this.#young.size >= this.#generationMax) {
      this.#old = this.#young
      this.#young = new Map()
    }
    this.#old.delete(key)
    this.#young.set(key, value)
    return value
  }
}
