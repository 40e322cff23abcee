interface Entry<Row> {
  readonly file: Row
  readonly freshUntilMillis: number
  readonly untilMillis: number
  /** by one who came when it was no longer fresh */
  isReadAnew: boolean
  /** all of a short file, once it was read */
  bytes: Buffer | undefined
}

const isDue = ({ freshUntilMillis, isReadAnew }: Entry<unknown>): boolean =>
  !isReadAnew && performance.now() >= freshUntilMillis

interface Bounds {
  readonly recentFiles: number
  readonly recentFilesBytes: number
  readonly recentFileMillis: number
}

/**
 * Files that were asked for a moment ago, so that asking again takes neither Postgres nor, for short ones, the disk. A
 * file never changes; that it was deleted is told by `forget` and `clear`, and behind these each entry has its time.
 */
export class RecentFiles<Row extends { readonly id: string }> {
  readonly #bounds: Bounds
  readonly #entries = new Map<string, Entry<Row>>()
  #heldBytes = 0
  /** rows that were being read when it changed are not kept */
  version = 0

  constructor(bounds: Bounds) {
    this.#bounds = bounds
  }

  /** The caller that gets nothing because the row is no longer fresh is to read it anew; others need not wait for that. */
  find(id: string): Row | undefined {
    const entry = this.#at(id)
    if (entry === undefined || !isDue(entry)) return entry?.file
    entry.isReadAnew = true
    return undefined
  }

  bytesOf(id: string): Buffer | undefined {
    return this.#at(id)?.bytes
  }

  /** A file and its bytes, where both are here. */
  whole(id: string): { readonly file: Row; readonly bytes: Buffer } | undefined {
    const entry = this.#at(id)
    return entry?.bytes && !isDue(entry) ? { file: entry.file, bytes: entry.bytes } : undefined
  }

  /** `version`: when the row began to be read. */
  put(file: Row, version: number): void {
    if (version !== this.version) return
    const bytes = this.#entries.get(file.id)?.bytes
    this.#entries.delete(file.id)
    const untilMillis = performance.now() + this.#bounds.recentFileMillis
    const freshUntilMillis = untilMillis - this.#bounds.recentFileMillis / 10
    this.#entries.set(file.id, { file, freshUntilMillis, untilMillis, isReadAnew: false, bytes })
    this.#trim()
  }

  /** The whole of a file that is an entry; of others nothing is kept. */
  putBytes(id: string, bytes: Buffer): void {
    const entry = this.#at(id)
    if (entry === undefined || entry.bytes !== undefined) return
    entry.bytes = bytes
    this.#heldBytes += bytes.length
    this.#trim()
  }

  forget(id: string): void {
    this.version++
    this.#drop(id)
  }

  clear(): void {
    this.version++
    this.#entries.clear()
    this.#heldBytes = 0
  }

  #at(id: string): Entry<Row> | undefined {
    const entry = this.#entries.get(id)
    if (entry === undefined || performance.now() < entry.untilMillis) return entry
    this.#drop(id)
    return undefined
  }

  #drop(id: string): void {
    this.#heldBytes -= this.#entries.get(id)?.bytes?.length ?? 0
    this.#entries.delete(id)
  }

  /** The oldest go first. */
  #trim(): void {
    const { recentFiles, recentFilesBytes } = this.#bounds
    for (const id of this.#entries.keys()) {
      if (this.#entries.size <= recentFiles && this.#heldBytes <= recentFilesBytes) return
      this.#drop(id)
    }
  }
}
