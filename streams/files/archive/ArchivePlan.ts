import { createHash } from "node:crypto"
import { crc32 } from "node:zlib"
import { joinedCrc32 } from "./Crc32.ts"
import { StoredGzip } from "./StoredGzip.ts"
import { tarEndBytes, tarHead, tarPadding } from "./TarHead.ts"

/** A directory, or a file with its content. */
export interface ArchiveEntry {
  /** with "/" between names; of a directory also at its end */
  readonly path: string
  readonly modifiedSeconds: number
  /** of a file alone */
  readonly content?: ArchivedBlob
}

export interface ArchivedBlob {
  /** 32 bytes */
  readonly sha256: Uint8Array
  readonly sizeBytes: number
  readonly crc32: number
}

/** A part of a blob, and the places that its bytes belong into, one behind the other. */
export interface BlobPart {
  /** of the entry */
  readonly path: string
  /** lower-case hexadecimal */
  readonly sha256: string
  /** of the blob */
  readonly sizeBytes: number
  /** the first byte of the part */
  readonly from: number
  readonly views: ReadonlyArray<Buffer>
}

const hashBytes = 32
/** Before the path of a record: lengths of headers and path, size, time. */
const fixedBytes = 2 + 2 + 8 + 8
/** One of so many entries is known by its place, the others are looked for behind it. */
const indexEvery = 64
const firstChunk = 4 * 1024
const largestChunk = 256 * 1024
const slash = "/".charCodeAt(0)
const zeros = Buffer.alloc(tarEndBytes)

/** The place of an entry: where its headers begin in the tar archive, and where its record is. */
interface Indexed {
  readonly tarFrom: number
  readonly chunk: number
  readonly at: number
}

/** Gathers the entries of an archive in their order; each is kept in some 50 bytes beside its path. */
export class ArchivePlanner {
  entries = 0
  /** memory that the entries take */
  heldBytes = 0
  private tarBytes = 0
  private sum = 0
  private readonly hash = createHash("sha256")
  private readonly chunks: Array<Buffer> = []
  private readonly index: Array<Indexed> = []
  private used = 0

  add({ content, modifiedSeconds, path }: ArchiveEntry): void {
    const sizeBytes = content?.sizeBytes ?? 0
    const head = tarHead({ path, sizeBytes, modifiedSeconds })
    const padding = tarPadding(sizeBytes)
    this.keep(path, head.length, modifiedSeconds, content)
    this.entries++
    this.tarBytes += head.length + sizeBytes + padding
    this.hash.update(head)
    this.join(crc32(head), head.length)
    if (content === undefined) return
    this.hash.update(content.sha256)
    if (sizeBytes > 0) this.join(content.crc32, sizeBytes)
    if (padding > 0) this.join(crc32(zeros.subarray(0, padding)), padding)
  }

  finish(): ArchivePlan {
    this.join(crc32(zeros), tarEndBytes)
    return new ArchivePlan({
      gzip: new StoredGzip(this.tarBytes + tarEndBytes, this.sum),
      entries: this.entries,
      digest: this.hash.digest("hex"),
      records: this.chunks,
      index: this.index,
      entriesBytes: this.tarBytes
    })
  }

  private join(sum: number, bytes: number): void {
    this.sum = joinedCrc32(this.sum, sum, bytes)
  }

  private keep(
    path: string,
    headBytes: number,
    modifiedSeconds: number,
    content: ArchivedBlob | undefined
  ): void {
    const pathBytes = Buffer.byteLength(path)
    const chunk = this.room(fixedBytes + pathBytes + (content === undefined ? 0 : hashBytes))
    let at = this.used
    if (this.entries % indexEvery === 0)
      this.index.push({ tarFrom: this.tarBytes, chunk: this.chunks.length - 1, at })
    at = chunk.writeUInt16LE(headBytes, at)
    at = chunk.writeUInt16LE(pathBytes, at)
    at = chunk.writeDoubleLE(content?.sizeBytes ?? 0, at)
    at = chunk.writeDoubleLE(modifiedSeconds, at)
    at += chunk.write(path, at)
    if (content !== undefined) chunk.set(content.sha256, at)
    this.used = at + (content === undefined ? 0 : hashBytes)
  }

  /** The last chunk, or a new one, with room for so many bytes; the one before ends where its records do. */
  private room(bytes: number): Buffer {
    const last = this.chunks.at(-1)
    if (last !== undefined && last.length - this.used >= bytes) return last
    if (last !== undefined) this.chunks[this.chunks.length - 1] = last.subarray(0, this.used)
    const chunk = Buffer.alloc(Math.max(Math.min((last?.length ?? 0) * 2, largestChunk), firstChunk, bytes))
    this.chunks.push(chunk)
    this.heldBytes += chunk.length
    this.used = 0
    return chunk
  }
}

interface Planned {
  readonly gzip: StoredGzip
  readonly entries: number
  readonly digest: string
  readonly records: ReadonlyArray<Buffer>
  readonly index: ReadonlyArray<Indexed>
  /** of the tar archive without its end */
  readonly entriesBytes: number
}

/** An archive all of whose bytes can be said but those of the blobs: a tar archive in a stored gzip file. */
export class ArchivePlan {
  readonly sizeBytes: number
  readonly entries: number
  /** of all that the bytes depend on: hexadecimal */
  readonly digest: string
  private readonly planned: Planned
  /** the entry that the last read has ended in */
  private lately: Indexed | undefined
  /** the entry behind that, and the end of that read, in the tar archive */
  private behind: Indexed | undefined
  private filledTo = 0

  constructor(planned: Planned) {
    this.planned = planned
    this.sizeBytes = planned.gzip.sizeBytes
    this.entries = planned.entries
    this.digest = planned.digest
  }

  /** Puts the bytes from `at` on into `into`, which lies within the archive, but those of the parts of blobs that it answers. */
  fill(into: Buffer, at: number): ReadonlyArray<BlobPart> {
    const { entriesBytes, gzip, index, records } = this.planned
    const { from, views } = gzip.frame(into, at)
    const places = new Places(views)
    this.filledTo = from + places.left
    this.behind = undefined
    const parts: Array<BlobPart> = []
    const indexed = index[lastAtMost(index, from)]
    if (indexed === undefined || from >= entriesBytes) {
      places.zero(places.left)
      return parts
    }
    // Most reads go on where the one before has ended.
    const { lately } = this
    const isNearer = lately !== undefined && lately.tarFrom <= from && lately.tarFrom > indexed.tarFrom
    const reader = new RecordReader(records, isNearer ? lately : indexed)
    reader.skipTo(from)
    while (places.left > 0 && !reader.isAtEnd) {
      this.lately = reader.place
      const skip = Math.max(from - reader.place.tarFrom, 0)
      const record = reader.next()
      const { headBytes, path, sha256, sizeBytes } = record
      if (skip < headBytes) places.put(tarHead(record).subarray(skip))
      const content = Math.max(skip - headBytes, 0)
      if (content < sizeBytes && places.left > 0)
        parts.push({ path, sha256, sizeBytes, from: content, views: places.take(sizeBytes - content) })
      places.zero(tarPadding(sizeBytes) - Math.max(content - sizeBytes, 0))
    }
    this.behind = reader.isAtEnd ? undefined : reader.place
    places.zero(places.left)
    return parts
  }

  /** The file that begins behind what `fill` has answered last, within so many bytes. */
  next(bytes: number): { readonly sha256: string; readonly sizeBytes: number } | undefined {
    const { behind, filledTo, planned } = this
    if (behind === undefined || behind.tarFrom - filledTo >= bytes) return undefined
    return new RecordReader(planned.records, behind).next()
  }
}

/** The last of the indexed entries that begins at or before a byte of the tar archive. */
const lastAtMost = (index: ReadonlyArray<Indexed>, tarAt: number): number => {
  let low = 0
  let high = index.length
  while (low + 1 < high) {
    const middle = (low + high) >> 1
    if ((index[middle]?.tarFrom ?? Infinity) <= tarAt) low = middle
    else high = middle
  }
  return low
}

/** Reads the records of entries from one on. */
class RecordReader {
  private readonly chunks: ReadonlyArray<Buffer>
  private chunk: number
  private at: number
  private tarFrom: number

  constructor(chunks: ReadonlyArray<Buffer>, { at, chunk, tarFrom }: Indexed) {
    this.chunks = chunks
    this.chunk = chunk
    this.at = at
    this.tarFrom = tarFrom
  }

  /** of the next entry */
  get place(): Indexed {
    const { at, chunk, tarFrom } = this
    return { at, chunk, tarFrom }
  }

  get isAtEnd(): boolean {
    const bytes = this.chunks[this.chunk]
    // Behind the last record are zeros, and no headers are so short.
    return bytes === undefined || this.at + fixedBytes > bytes.length || bytes.readUInt16LE(this.at) === 0
  }

  /** Passes entries that end at or before a byte of the tar archive. */
  skipTo(tarAt: number): void {
    while (!this.isAtEnd) {
      const { headBytes, sizeBytes, to } = this.lengths()
      const end = this.tarFrom + headBytes + sizeBytes + tarPadding(sizeBytes)
      if (end > tarAt) return
      this.move(to, end)
    }
  }

  next() {
    const bytes = this.chunks[this.chunk] as Buffer
    const { at, tarFrom } = this
    const { headBytes, isDirectory, pathTo, sizeBytes, to } = this.lengths()
    this.move(to, tarFrom + headBytes + sizeBytes + tarPadding(sizeBytes))
    return {
      headBytes,
      path: bytes.toString("utf8", at + fixedBytes, pathTo),
      sizeBytes,
      modifiedSeconds: bytes.readDoubleLE(at + 12),
      sha256: isDirectory ? "" : bytes.toString("hex", pathTo, to)
    }
  }

  private lengths() {
    const bytes = this.chunks[this.chunk] as Buffer
    const pathTo = this.at + fixedBytes + bytes.readUInt16LE(this.at + 2)
    const isDirectory = bytes[pathTo - 1] === slash
    const headBytes = bytes.readUInt16LE(this.at)
    const sizeBytes = bytes.readDoubleLE(this.at + 4)
    return { headBytes, isDirectory, pathTo, sizeBytes, to: isDirectory ? pathTo : pathTo + hashBytes }
  }

  private move(to: number, tarFrom: number): void {
    const isLast = to === this.chunks[this.chunk]?.length
    this.chunk += isLast ? 1 : 0
    this.at = isLast ? 0 : to
    this.tarFrom = tarFrom
  }
}

/** Places in a buffer, filled one behind the other. */
class Places {
  left: number
  private readonly views: ReadonlyArray<Buffer>
  private view = 0
  private used = 0

  constructor(views: ReadonlyArray<Buffer>) {
    this.views = views
    this.left = views.reduce((sum, { length }) => sum + length, 0)
  }

  put(bytes: Buffer): void {
    let copied = 0
    for (const place of this.take(bytes.length)) copied += bytes.copy(place, 0, copied)
  }

  zero(bytes: number): void {
    for (const place of this.take(bytes)) place.fill(0)
  }

  /** The next places, of so many bytes, or as many as are left. */
  take(bytes: number): ReadonlyArray<Buffer> {
    const places: Array<Buffer> = []
    let wanted = Math.min(bytes, this.left)
    this.left -= wanted
    while (wanted > 0) {
      const view = this.views[this.view] as Buffer
      const isAll = this.used === 0 && wanted >= view.length
      const place = isAll ? view : view.subarray(this.used, this.used + wanted)
      places.push(place)
      wanted -= place.length
      this.used += place.length
      if (this.used < view.length) continue
      this.view++
      this.used = 0
    }
    return places
  }
}
