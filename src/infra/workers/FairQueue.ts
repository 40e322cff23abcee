/** Items of several owners, who take turns: one that has many waiting does not keep another's from its turn. */
export class FairQueue<A> {
  /** in the order of their turns; an owner without items is not there */
  readonly #lines = new Map<string, Array<A>>()
  #size = 0

  get size(): number {
    return this.#size
  }

  push(owner: string, item: A): void {
    const line = this.#lines.get(owner)
    if (line === undefined) this.#lines.set(owner, [item])
    else line.push(item)
    this.#size++
  }

  shift(): A | undefined {
    const first = this.#lines.entries().next()
    if (first.done === true) return undefined
    const [owner, line] = first.value
    const item = line.shift()
    this.#lines.delete(owner)
    // Behind all others.
    if (line.length > 0) this.#lines.set(owner, line)
    this.#size--
    return item
  }

  /** A no-op where the item has been taken. */
  remove(owner: string, item: A): void {
    const line = this.#lines.get(owner) ?? []
    const index = line.indexOf(item)
    if (index < 0) return
    line.splice(index, 1)
    if (line.length === 0) this.#lines.delete(owner)
    this.#size--
  }
}
