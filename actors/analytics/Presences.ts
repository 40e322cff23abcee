/**
 * The visitors of many lists (a site's, each), when each was last seen, and on which pages: rows of numbers in one array. A row
 * is found by list and visitor through a table of hashes, and lies in its list between the one seen before and the one seen
 * after it. A map of objects took twice the memory, and 60 times the CPU where half a million presences fill it: each look for the
 * oldest steps over all places given up at the map's front (decision 0007).
 *
 * Rows and pages together are never more than `max`. Their numbers begin at 1; 0 is none. A visitor is given as the two halves
 * of its 64 bits.
 */
export class Presences {
  readonly max: number
  #used = 0
  #rows = new Uint32Array(firstRoom * rowFields)
  #rowsEnd = 1
  #freeRow = 0
  /** the first row of each bucket; the rest are behind it */
  #buckets = new Uint32Array(firstRoom)
  #pages = new Uint32Array(firstRoom * pageFields)
  readonly #paths: Array<string> = [""]
  #freePage = 0

  constructor(max: number) {
    this.max = max
  }

  /** visitors, and pages of them */
  get used(): number {
    return this.#used
  }

  get isFull(): boolean {
    return this.#used >= this.max
  }

  find({ number }: PresenceList, low: number, high: number): number {
    const rows = this.#rows
    let row = this.#buckets[this.#bucketOf(number, low)] as number
    while (row !== 0) {
      const at = row * rowFields
      if (rows[at + lowAt] === low && rows[at + highAt] === high && rows[at + listAt] === number) return row
      row = rows[at + nextAt] as number
    }
    return 0
  }

  /** A new one, as the last of its list. Only where it is not full, and the visitor has none. */
  add(list: PresenceList, low: number, high: number, second: number): number {
    const row = this.#takeRow()
    const bucket = this.#bucketOf(list.number, low)
    const rows = this.#rows
    const at = row * rowFields
    rows[at + lowAt] = low
    rows[at + highAt] = high
    rows[at + listAt] = list.number
    rows[at + secondAt] = second
    rows[at + pageAt] = 0
    rows[at + nextAt] = this.#buckets[bucket] as number
    this.#buckets[bucket] = row
    this.#append(list, row)
    return row
  }

  secondOf(row: number): number {
    return this.#rows[row * rowFields + secondAt] as number
  }

  /** Notes that it was seen. With the first second of every `moveEverySeconds` it becomes the last of its list. */
  touch(list: PresenceList, row: number, second: number): void {
    const at = row * rowFields + secondAt
    const before = this.#rows[at] as number
    if (second <= before) return
    this.#rows[at] = second
    if (Math.floor(second / moveEverySeconds) === Math.floor(before / moveEverySeconds)) return
    this.#unlink(list, row)
    this.#append(list, row)
  }

  /** The page of a row that has this path; else one that was last seen at `staleSecond` or before, negated; else 0. */
  findPage(row: number, path: string, staleSecond: number): number {
    const pages = this.#pages
    let stale = 0
    let page = this.#rows[row * rowFields + pageAt] as number
    while (page !== 0) {
      if (this.#paths[page] === path) return page
      const at = page * pageFields
      if (stale === 0 && (pages[at + pageSecondAt] as number) <= staleSecond) stale = page
      page = pages[at + pageNextAt] as number
    }
    return -stale
  }

  /** Only where it is not full. */
  addPage(row: number, path: string, second: number): void {
    const page = this.#takePage()
    const at = row * rowFields + pageAt
    this.#pages[page * pageFields + pageNextAt] = this.#rows[at] as number
    this.#rows[at] = page
    this.setPage(page, path, second)
  }

  setPage(page: number, path: string, second: number): void {
    this.#paths[page] = path
    this.#pages[page * pageFields + pageSecondAt] = second
  }

  /** Notes that it was seen. */
  touchPage(page: number, second: number): void {
    const at = page * pageFields + pageSecondAt
    if (second > (this.#pages[at] as number)) this.#pages[at] = second
  }

  pagesOf(row: number): number {
    let count = 0
    let page = this.#rows[row * rowFields + pageAt] as number
    for (; page !== 0; page = this.#pages[page * pageFields + pageNextAt] as number) count++
    return count
  }

  eachPage(row: number, visit: (path: string, second: number) => void): void {
    let page = this.#rows[row * rowFields + pageAt] as number
    while (page !== 0) {
      visit(this.#paths[page] as string, this.#pages[page * pageFields + pageSecondAt] as number)
      page = this.#pages[page * pageFields + pageNextAt] as number
    }
  }

  /** From the one moved longest ago on. */
  *of(list: PresenceList): Generator<number> {
    for (let row = list.oldest; row !== 0; row = this.#rows[row * rowFields + newerAt] as number) yield row
  }

  /** Frees its place, and those of its pages. */
  remove(list: PresenceList, row: number): void {
    const rows = this.#rows
    const at = row * rowFields
    this.#unlink(list, row)
    const bucket = this.#bucketOf(list.number, rows[at + lowAt] as number)
    let before = this.#buckets[bucket] as number
    if (before === row) this.#buckets[bucket] = rows[at + nextAt] as number
    else {
      while (rows[before * rowFields + nextAt] !== row) before = rows[before * rowFields + nextAt] as number
      rows[before * rowFields + nextAt] = rows[at + nextAt] as number
    }
    let page = rows[at + pageAt] as number
    while (page !== 0) page = this.#freeThisPage(page)
    rows[at + nextAt] = this.#freeRow
    this.#freeRow = row
    this.#used--
  }

  /** Answers the page behind it. */
  #freeThisPage(page: number): number {
    const at = page * pageFields + pageNextAt
    const next = this.#pages[at] as number
    this.#pages[at] = this.#freePage
    this.#paths[page] = ""
    this.#freePage = page
    this.#used--
    return next
  }

  #append(list: PresenceList, row: number): void {
    this.#rows[row * rowFields + olderAt] = list.newest
    this.#rows[row * rowFields + newerAt] = 0
    if (list.newest === 0) list.oldest = row
    else this.#rows[list.newest * rowFields + newerAt] = row
    list.newest = row
  }

  #unlink(list: PresenceList, row: number): void {
    const older = this.#rows[row * rowFields + olderAt] as number
    const newer = this.#rows[row * rowFields + newerAt] as number
    if (older === 0) list.oldest = newer
    else this.#rows[older * rowFields + newerAt] = newer
    if (newer === 0) list.newest = older
    else this.#rows[newer * rowFields + olderAt] = older
  }

  #bucketOf(list: number, low: number): number {
    return (low ^ Math.imul(list, 0x9e3779b1)) & (this.#buckets.length - 1)
  }

  #takeRow(): number {
    this.#used++
    const row = this.#freeRow
    if (row !== 0) {
      this.#freeRow = this.#rows[row * rowFields + nextAt] as number
      return row
    }
    if (this.#rowsEnd * rowFields >= this.#rows.length) this.#growRows()
    return this.#rowsEnd++
  }

  #takePage(): number {
    this.#used++
    const page = this.#freePage
    if (page !== 0) {
      this.#freePage = this.#pages[page * pageFields + pageNextAt] as number
      return page
    }
    if (this.#paths.length * pageFields >= this.#pages.length) {
      const larger = new Uint32Array(this.#pages.length * 2)
      larger.set(this.#pages)
      this.#pages = larger
    }
    return this.#paths.push("") - 1
  }

  /** Twice the room, and twice the buckets; all rows are in use. */
  #growRows(): void {
    const rows = new Uint32Array(this.#rows.length * 2)
    rows.set(this.#rows)
    this.#rows = rows
    this.#buckets = new Uint32Array(this.#buckets.length * 2)
    for (let row = 1; row < this.#rowsEnd; row++) {
      const at = row * rowFields
      const bucket = this.#bucketOf(rows[at + listAt] as number, rows[at + lowAt] as number)
      rows[at + nextAt] = this.#buckets[bucket] as number
      this.#buckets[bucket] = row
    }
  }
}

/** Rows in the order in which they were moved. */
export interface PresenceList {
  /** another for each list that is in use */
  readonly number: number
  oldest: number
  newest: number
}

/** A visitor who stays does not become the last of its list more often: that touches three others. */
const moveEverySeconds = 15

/** rows, buckets and pages at first */
const firstRoom = 1024

/** The fields of a row: 32 bytes, half a line of the processor's cache. */
const rowFields = 8
const lowAt = 0
const highAt = 1
const listAt = 2
const secondAt = 3
const olderAt = 4
const newerAt = 5
/** the next row of its bucket; of a free one the next free one */
const nextAt = 6
/** the first of its pages */
const pageAt = 7

/** The fields of a page; its path is beside them. */
const pageFields = 2
const pageSecondAt = 0
/** the next of its row's pages; of a free one the next free one */
const pageNextAt = 1
