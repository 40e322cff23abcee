import * as fs from "node:fs"
import { join } from "node:path"
import { dayMillis } from "#streams/analytics/EventTime.ts"
import { IdTable, slotsMin } from "./IdTable.ts"

/** The lifetime of a known id. Source: contract/analytics#collect. */
export const idMemoryMillis = dayMillis

/** A table takes ids for so long at most: whole tables are forgotten, so this is how much too long one is kept. */
const generationMillis = dayMillis / 4

/**
 * The ids of one site in a directory of its own: generations of tables, `<sequence>.ids`, of which the newest takes new
 * ids. One that is full or old is followed by the next; one whose newest id is older than `idMemoryMillis` is removed,
 * and so is the oldest while there would be more than `idsMax` ids.
 */
export class SiteIds {
  readonly #directory: string
  readonly #idsMax: number
  /** oldest first */
  readonly #tables: Array<IdTable> = []
  #sequence = 0

  /** @param onDamaged hears the path of a file that was no table, and is removed */
  constructor(directory: string, idsMax: number, onDamaged: (path: string) => void = () => undefined) {
    this.#directory = directory
    this.#idsMax = idsMax
    fs.mkdirSync(directory, { recursive: true, mode: 0o700 })
    for (const sequence of sequencesIn(directory)) {
      this.#sequence = sequence
      const path = this.#pathOf(sequence)
      const table = IdTable.open(path)
      if (table !== undefined) {
        this.#tables.push(table)
        continue
      }
      // Empty: its making was cut, and nothing was in it.
      if (fs.statSync(path).size > 0) onDamaged(path)
      fs.rmSync(path)
    }
  }

  get count(): number {
    return this.#tables.reduce((sum, table) => sum + table.count, 0)
  }

  /** Whether the id came within the last 24 hours. */
  has(hash: bigint, nowMillis: number): boolean {
    for (let index = this.#tables.length - 1; index >= 0; index--) {
      const millis = this.#tables[index]?.find(hash)
      if (millis !== undefined) return nowMillis - millis <= idMemoryMillis
    }
    return false
  }

  put(hash: bigint, millis: number): void {
    this.#tableFor(millis).put(hash, millis)
  }

  async sync(): Promise<void> {
    await Promise.all(this.#tables.map((table) => table.sync()))
  }

  close(): void {
    for (const table of this.#tables) table.close()
    this.#tables.length = 0
  }

  #tableFor(nowMillis: number): IdTable {
    this.#forget(nowMillis)
    const newest = this.#tables.at(-1)
    if (newest === undefined) return this.#begin(slotsMin)
    if (newest.isFull) return this.#begin(newest.slots * 2)
    // The next one is made for as many ids as came in the time of this one.
    if (nowMillis - newest.oldestMillis > generationMillis) return this.#begin(4 * newest.count)
    return newest
  }

  #begin(slotsWanted: number): IdTable {
    // Eight generations of the largest size hold what a site may have, so that forgetting one forgets an eighth.
    const slotsMax = Math.max(slotsMin, 2 ** Math.floor(Math.log2(this.#idsMax / 4)))
    const slots = Math.min(slotsMax, 2 ** Math.ceil(Math.log2(Math.max(slotsMin, slotsWanted))))
    this.#sequence++
    const table = IdTable.create(this.#pathOf(this.#sequence), slots)
    this.#tables.push(table)
    return table
  }

  #forget(nowMillis: number): void {
    for (;;) {
      const oldest = this.#tables[0]
      if (oldest === undefined) return
      const isOver = this.count >= this.#idsMax
      if (!isOver && nowMillis - oldest.newestMillis <= idMemoryMillis) return
      oldest.close()
      fs.rmSync(oldest.path)
      this.#tables.shift()
    }
  }

  #pathOf(sequence: number): string {
    return join(this.#directory, `${String(sequence).padStart(8, "0")}.ids`)
  }
}

const sequencesIn = (directory: string): ReadonlyArray<number> =>
  fs
    .readdirSync(directory)
    .filter((name) => /^\d{8,}\.ids$/.test(name))
    .map((name) => Number.parseInt(name, 10))
    .sort((a, b) => a - b)
