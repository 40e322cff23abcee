import * as fs from "node:fs"
import { promisify } from "node:util"

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
