import { hash } from "node:crypto"
import { join } from "node:path"
import { dayMillis } from "#streams/analytics/EventTime.ts"
import { siteOfDataset } from "#streams/analytics/Site.ts"
import { promisify } from "node:util"
import * as fs from "node:fs"

/** The 64-bit hash of a caller's event id; never 0, which stands for "no id". */
export const hashOfId = (id: string): bigint => BigInt(`0x${hash("sha256", id, "hex").slice(0, 16)}`) || 1n

/**
 * The ids of all sites under one directory, each site's in a directory of its own. Of the sites that were used last,
 * `openSitesMax` are kept open. Failed writes are kept in memory and retried by `sync`.
 */
export class IdIndex {
  readonly #directory: string
  readonly #idsMax: number
  readonly #openSitesMax: number
  /** paths of files that were damaged, and removed */
  readonly #damaged: Array<string> = []
  /** in the order in which they were last used */
  readonly #open = new Map<string, SiteIds>()
  /** by `<site> <hash>`: came, and could not be written */
  readonly #unwritten = new Map<
    string,
    { readonly site: string; readonly hash: bigint; readonly millis: number }
  >()

  constructor(directory: string, limits: { readonly idsMax: number; readonly openSitesMax: number }) {
    this.#directory = directory
    this.#idsMax = limits.idsMax
    this.#openSitesMax = limits.openSitesMax
    fs.mkdirSync(directory, { recursive: true, mode: 0o700 })
  }

  /** Damaged and removed files since the last call: their ids have to be put again. */
  takeDamaged(): ReadonlyArray<string> {
    return this.#damaged.splice(0)
  }

  /** Whether the site has had the id within the last 24 hours. */
  has(site: string, hash: bigint, nowMillis: number): boolean {
    return this.#unwritten.has(`${site} ${hash}`) || this.#siteOf(site).has(hash, nowMillis)
  }

  put(site: string, hash: bigint, millis: number): void {
    try {
      this.#siteOf(site).put(hash, millis)
    } catch {
      // A full disk, most likely. `sync` tries again and says what is wrong.
      this.#unwritten.set(`${site} ${hash}`, { site, hash, millis })
    }
  }

  /** Puts everything on disk, or fails with what the file system says; then nothing may be forgotten elsewhere. */
  async sync(): Promise<void> {
    for (const [key, { site, hash, millis }] of this.#unwritten) {
      this.#siteOf(site).put(hash, millis)
      this.#unwritten.delete(key)
    }
    await Promise.all(Array.from(this.#open.values(), (ids) => ids.sync()))
  }

  /** Removes what belongs to sites that have had no id for so long that all of theirs are forgotten. */
  sweep(nowMillis: number): void {
    for (const site of fs.readdirSync(this.#directory)) {
      const directory = join(this.#directory, site)
      const touchedMillis = Math.max(
        ...fs.readdirSync(directory).map((name) => fs.statSync(join(directory, name)).mtimeMs),
        fs.statSync(directory).mtimeMs
      )
      if (nowMillis - touchedMillis > idMemoryMillis) this.#remove(site)
    }
  }

  /** Removes what belongs to all datasets of a site but the one that is kept. */
  forget(site: string, kept: string | undefined): void {
    for (const dataset of fs.readdirSync(this.#directory))
      if (dataset !== kept && siteOfDataset(dataset) === site) this.#remove(dataset)
    for (const [key, unwritten] of this.#unwritten)
      if (unwritten.site !== kept && siteOfDataset(unwritten.site) === site) this.#unwritten.delete(key)
  }

  #remove(site: string): void {
    this.#open.get(site)?.close()
    this.#open.delete(site)
    fs.rmSync(join(this.#directory, site), { recursive: true })
  }

  close(): void {
    for (const ids of this.#open.values()) ids.close()
    this.#open.clear()
  }

  #siteOf(site: string): SiteIds {
    const open = this.#open.get(site)
    if (open !== undefined) {
      this.#open.delete(site)
      this.#open.set(site, open)
      return open
    }
    const opened = new SiteIds(join(this.#directory, site), this.#idsMax, (path) => this.#damaged.push(path))
    this.#open.set(site, opened)
    if (this.#open.size > this.#openSitesMax) this.#closeOldest()
    return opened
  }

  #closeOldest(): void {
    const [site, ids] = this.#open.entries().next().value ?? []
    if (site === undefined || ids === undefined) return
    ids.close()
    this.#open.delete(site)
  }
}

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
    // Each table is a read of every look-up: a site that grows has few, which are sparse while they fill.
    if (newest.isFull) return this.#begin(newest.slots * 8)
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

/**
 * A file that maps 64-bit hashes to the time at which they came: open addressing over slots of 16 bytes (hash, then
 * epoch milliseconds, both little-endian; hash 0 is an empty slot), read in buckets of one page's part. It is made at
 * its full size, sparse, and half filled at most, so that a look-up is nearly always one read of 256 bytes.
 *
 * Look-ups and additions are synchronous: they meet the page cache. After a kill the file is whole; after a power cut it holds
 * at least what was there at the last `sync`.
 */
export class IdTable {
  readonly path: string
  readonly slots: number
  readonly #file: number
  readonly #bucket = Buffer.allocUnsafeSlow(bucketBytes)
  #count = 0
  #newestMillis = 0
  #oldestMillis = Infinity
  #isDirty = false
  #isSyncing = false
  #isClosing = false

  private constructor(path: string, file: number, slots: number) {
    this.path = path
    this.#file = file
    this.slots = slots
  }

  /** `slots` is a power of two, at least `slotsMin`. */
  static create(path: string, slots: number): IdTable {
    const file = fs.openSync(path, "w+", 0o600)
    fs.ftruncateSync(file, slots * slotBytes)
    return new IdTable(path, file, slots)
  }

  /**
   * Reads the whole file once to know how full it is. Undefined for a file that no table can be: of another size, fuller than
   * one gets, or with times that no clock shows.
   */
  static open(path: string): IdTable | undefined {
    const file = fs.openSync(path, "r+")
    const slots = fs.fstatSync(file).size / slotBytes
    if (slots < slotsMin || !Number.isInteger(Math.log2(slots))) {
      fs.closeSync(file)
      return undefined
    }
    const table = new IdTable(path, file, slots)
    if (table.#countAll()) return table
    fs.closeSync(file)
    return undefined
  }

  get count(): number {
    return this.#count
  }

  get isFull(): boolean {
    return this.#count >= this.slots / 2
  }

  /** when its latest id came; 0 when it has none */
  get newestMillis(): number {
    return this.#newestMillis
  }

  /** when its first id came; Infinity when it has none */
  get oldestMillis(): number {
    return this.#oldestMillis
  }

  /** When the hash came, or undefined. */
  find(hash: bigint): number | undefined {
    const slot = this.#seek(hash)
    if (slot === undefined) return undefined
    return this.#bucket.readBigUInt64LE(slot % bucketBytes) === 0n
      ? undefined
      : Number(this.#bucket.readBigUInt64LE((slot % bucketBytes) + 8))
  }

  /** Adds a hash or renews its time. */
  put(hash: bigint, millis: number): void {
    const position = this.#seek(hash)
    if (position === undefined) throw new Error(`${this.path} is damaged: no slot of it is free`)
    const isNew = this.#bucket.readBigUInt64LE(position % bucketBytes) === 0n
    const entry = Buffer.allocUnsafe(slotBytes)
    entry.writeBigUInt64LE(hash, 0)
    entry.writeBigUInt64LE(BigInt(millis), 8)
    fs.writeSync(this.#file, entry, 0, slotBytes, position)
    this.#isDirty = true
    if (isNew) this.#count++
    this.#noteTime(millis)
  }

  /** After it, all ids put before survive a power cut. Off the main thread: a disk may take its time. */
  async sync(): Promise<void> {
    if (!this.#isDirty) return
    this.#isDirty = false
    this.#isSyncing = true
    try {
      await promisify(fs.fdatasync)(this.#file)
    } catch (error) {
      this.#isDirty = true
      throw error
    } finally {
      this.#isSyncing = false
      if (this.#isClosing) fs.closeSync(this.#file)
    }
  }

  /** Puts what is not on disk there, and closes. */
  close(): void {
    if (this.#isDirty || this.#isSyncing) fs.fdatasyncSync(this.#file)
    // A sync on its way holds the number of the file, which must not become another file's meanwhile.
    if (this.#isSyncing) this.#isClosing = true
    else fs.closeSync(this.#file)
  }

  /**
   * Position in the file of the hash's slot or of the empty one where it belongs; its bucket is then in `#bucket`. Undefined
   * where there is neither, as in no file but a damaged one.
   */
  #seek(hash: bigint): number | undefined {
    const buckets = (this.slots * slotBytes) / bucketBytes
    let bucket = Number(hash & 0xffff_ffffn) & (buckets - 1)
    for (let seen = 0; seen < buckets; seen++) {
      const from = bucket * bucketBytes
      fs.readSync(this.#file, this.#bucket, 0, bucketBytes, from)
      for (let at = 0; at < bucketBytes; at += slotBytes) {
        const found = this.#bucket.readBigUInt64LE(at)
        if (found === hash || found === 0n) return from + at
      }
      bucket = (bucket + 1) & (buckets - 1)
    }
    return undefined
  }

  /** False where what it reads can be no table. */
  #countAll(): boolean {
    const chunk = Buffer.allocUnsafeSlow(Math.min(this.slots * slotBytes, 1024 * 1024))
    for (let from = 0; from < this.slots * slotBytes; from += chunk.length) {
      fs.readSync(this.#file, chunk, 0, chunk.length, from)
      for (let at = 0; at < chunk.length; at += slotBytes) {
        if (chunk.readBigUInt64LE(at) === 0n) continue
        this.#count++
        const millis = Number(chunk.readBigUInt64LE(at + 8))
        if (millis > epochMillisMax) return false
        this.#noteTime(millis)
      }
    }
    return this.#count <= this.slots / 2
  }

  #noteTime(millis: number): void {
    this.#newestMillis = Math.max(this.#newestMillis, millis)
    this.#oldestMillis = Math.min(this.#oldestMillis, millis)
  }
}

export const slotBytes = 16
const bucketBytes = 256
/** the latest time of a Date */
const epochMillisMax = 8_640_000_000_000_000
export const slotsMin = 1024
