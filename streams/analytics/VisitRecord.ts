import { pageIdOf } from "./PageIds.ts"
import type { VisitorKey } from "./ResidentDays.ts"
import { attributeColumns, packedEmpty } from "./VisitEvent.ts"
import type { Visit } from "./Visits.ts"

/** visit, more, previous_last, length_s, engaged_ms, pageviews, events */
const figuresBytes = 4 + 1 + 4 + 4 + 8 + 2 + 2

/**
 * Writes rows of `visits` in RowBinary, in the order of `visitColumns`. Packed texts are copied as they are.
 * Source: ClickHouse, formats RowBinary.
 */
export class VisitRecords {
  #buffer: Buffer
  #position = 0
  #rows = 0

  /** `bytes`: its first capacity */
  constructor(bytes = 65_536) {
    this.#buffer = Buffer.allocUnsafe(bytes)
  }

  get rows(): number {
    return this.#rows
  }

  /** The rows written so far. */
  bytes(): Buffer {
    return this.#buffer.subarray(0, this.#position)
  }

  add(owner: VisitorKey, visit: Visit, ver: bigint): void {
    this.#key(owner, visit, ver, 0)
    this.#reserve(figuresBytes)
    const bytes = this.#buffer
    let at = bytes.writeUInt32LE(visit.visit, this.#position)
    at = bytes.writeUInt8(visit.more ? 1 : 0, at)
    at = bytes.writeUInt32LE(visit.previousLast, at)
    at = bytes.writeUInt32LE(visit.lengthSeconds, at)
    at = bytes.writeBigUInt64LE(BigInt(visit.engagedMillis), at)
    at = bytes.writeUInt16LE(visit.pages.length, at)
    this.#position = bytes.writeUInt16LE(visit.goals.length, at)
    this.#packed(visit.hostname)
    this.#packed(visit.attributes)
    this.#pages(visit.pages)
    this.#numbers(visit.pageSeconds)
    this.#varint(visit.pageNew.length)
    this.#reserve(visit.pageNew.length)
    for (const mark of visit.pageNew) this.#buffer[this.#position++] = mark
    this.#texts(visit.goals)
    this.#numbers(visit.goalSeconds)
    this.#pages(visit.goalPages)
  }

  /** Takes back a row that a late event made part of another visit. */
  remove(owner: VisitorKey, key: Pick<Visit, "start" | "part">, ver: bigint): void {
    this.#key(owner, key, ver, 1)
    this.#reserve(figuresBytes)
    this.#buffer.fill(0, this.#position, this.#position + figuresBytes)
    // Rows of visits that have several are copied by `visit != 0` (0008_LongVisits.ts): this one replaces such a copy, too.
    this.#buffer.writeUInt32LE(1, this.#position)
    this.#position += figuresBytes
    this.#packed(packedEmpty)
    this.#packed(packedEmpty.repeat(attributeColumns.length))
    for (let list = 0; list < 6; list++) this.#varint(0)
  }

  #key(owner: VisitorKey, key: Pick<Visit, "start" | "part">, ver: bigint, deleted: 0 | 1): void {
    this.#rows++
    this.#reserve(owner.site.length * 3 + 32)
    this.#varint(Buffer.byteLength(owner.site))
    let at = this.#position + this.#buffer.write(owner.site, this.#position)
    at = this.#buffer.writeUInt16LE(owner.day, at)
    at = this.#buffer.writeUInt32LE(key.start, at)
    at = this.#buffer.writeBigUInt64LE(owner.visitor, at)
    at = this.#buffer.writeUInt32LE(key.part, at)
    at = this.#buffer.writeBigUInt64LE(ver, at)
    this.#position = this.#buffer.writeUInt8(deleted, at)
  }

  #reserve(bytes: number): void {
    if (this.#position + bytes <= this.#buffer.length) return
    const larger = Buffer.allocUnsafeSlow(Math.max(this.#buffer.length * 2, this.#position + bytes))
    this.#buffer.copy(larger, 0, 0, this.#position)
    this.#buffer = larger
  }

  #varint(value: number): void {
    this.#reserve(5)
    let rest = value
    while (rest >= 128) {
      this.#buffer[this.#position++] = (rest & 127) | 128
      rest >>>= 7
    }
    this.#buffer[this.#position++] = rest
  }

  #packed(text: string): void {
    this.#reserve(text.length)
    this.#position += this.#buffer.write(text, this.#position, "latin1")
  }

  #texts(texts: ReadonlyArray<string>): void {
    this.#varint(texts.length)
    for (const text of texts) this.#packed(text)
  }

  #pages(paths: ReadonlyArray<string>): void {
    this.#varint(paths.length)
    for (const path of paths) this.#packed(pageIdOf(path))
  }

  #numbers(numbers: ReadonlyArray<number>): void {
    this.#varint(numbers.length)
    this.#reserve(numbers.length * 4)
    for (const number of numbers) this.#position = this.#buffer.writeUInt32LE(number, this.#position)
  }
}
