import { close, open, readv } from "node:fs"
import type { Blob } from "./BlobIndex.ts"

/** A part of a blob that is to be read into several places, one behind the other. */
export interface Part extends Blob {
  /** the first byte of it */
  readonly from: number
  readonly views: ReadonlyArray<Uint8Array>
}

/** A part that could not be read, and why. */
export interface PartTrouble<P extends Part> {
  readonly part: P
  readonly cause: Error
}

/** Calls back with the bytes of those of these blobs that live in their rows, by hash, or with why there are none. */
type RowsOf = (
  hashes: ReadonlyArray<string>,
  done: (rows: ReadonlyMap<string, Uint8Array> | Error) => void
) => void

/** Files that are read at once. */
const atOnce = 8

type Opened = (error: Error | null, fd: number) => void

/** A file that is opened before it is asked for. */
class Ahead {
  readonly sha256: string
  private result: Parameters<Opened> | undefined
  private opened: Opened | undefined

  constructor(sha256: string, path: string) {
    this.sha256 = sha256
    open(path, "r", (...result) => {
      this.result = result
      this.opened?.(...result)
    })
  }

  /** Hands it over, once. */
  take(opened: Opened): void {
    if (this.result === undefined) this.opened = opened
    else opened(...this.result)
  }
}

/** Reads parts of many blobs, several at a time. A blob that goes on behind the last part stays open for the next ones. */
export class BlobParts {
  private readonly pathOf: (sha256: string) => string
  private readonly rowBytes: number
  private readonly rowsOf: RowsOf
  private kept: { readonly sha256: string; readonly fd: number } | undefined
  private ahead: Ahead | undefined

  /** @param rowBytes longer blobs have files */
  constructor(pathOf: (sha256: string) => string, rowBytes: number, rowsOf: RowsOf) {
    this.pathOf = pathOf
    this.rowBytes = rowBytes
    this.rowsOf = rowsOf
  }

  /** Opens the blob that will be read next, so that the read need not wait for that. It may be called behind every read. */
  openAhead({ sha256, sizeBytes }: Blob): void {
    if (sizeBytes <= this.rowBytes || sha256 === this.kept?.sha256 || sha256 === this.ahead?.sha256) return
    this.forgetAhead()
    this.ahead = new Ahead(sha256, this.pathOf(sha256))
  }

  /** Calls back when nothing is being read any more: with the first trouble, if there was one. One call at a time. */
  read<P extends Part>(parts: ReadonlyArray<P>, done: (trouble: PartTrouble<P> | undefined) => void): void {
    const short = parts.find(({ sizeBytes }) => sizeBytes <= this.rowBytes)
    if (short === undefined) return this.readFiles(parts, done)
    const hashes = new Set(parts.flatMap((one) => (one.sizeBytes <= this.rowBytes ? [one.sha256] : [])))
    this.rowsOf([...hashes], (rows) => {
      if (rows instanceof Error) return done({ part: short, cause: rows })
      const inFiles = parts.filter((part) => !copyRow(part, rows.get(part.sha256)))
      this.readFiles(inFiles, done)
    })
  }

  private readFiles<P extends Part>(
    parts: ReadonlyArray<P>,
    done: (trouble: PartTrouble<P> | undefined) => void
  ): void {
    if (parts.length === 0) return void setImmediate(done, undefined)
    let next = 0
    let underWay = 0
    let trouble: PartTrouble<P> | undefined
    const advance = (): void => {
      for (let part = parts[next]; part !== undefined && underWay < atOnce; part = parts[next]) {
        if (trouble !== undefined) break
        next++
        underWay++
        const read = part
        this.readPart(part, (cause) => {
          underWay--
          if (cause !== null) trouble ??= { part: read, cause }
          advance()
        })
      }
      if (underWay === 0) done(trouble)
    }
    advance()
  }

  /** Nothing may be being read. */
  close(): void {
    this.forgetAhead()
    this.forgetKept()
  }

  private forgetKept(): void {
    const { kept } = this
    this.kept = undefined
    if (kept !== undefined) closed(kept.fd)
  }

  private forgetAhead(): void {
    const { ahead } = this
    this.ahead = undefined
    ahead?.take((error, fd) => (error === null ? closed(fd) : undefined))
  }

  private readPart(part: Part, done: (cause: Error | null) => void): void {
    const { from, sha256, sizeBytes, views } = part
    const { ahead, kept } = this
    const to = views.reduce((sum, { length }) => sum + length, from)
    const read = (fd: number): void =>
      readWhole(fd, views, { from, to }, (cause) => {
        if (cause === null && to < sizeBytes) this.keep(sha256, fd)
        else closed(fd)
        done(cause)
      })
    if (kept?.sha256 === sha256) {
      this.kept = undefined
      return read(kept.fd)
    }
    const anew = (): void =>
      open(this.pathOf(sha256), "r", (error, fd) => {
        if (error === null) read(fd)
        else done(error)
      })
    if (ahead?.sha256 !== sha256) return anew()
    this.ahead = undefined
    ahead.take((error, fd) => (error === null ? read(fd) : anew()))
  }

  private keep(sha256: string, fd: number): void {
    this.forgetKept()
    this.kept = { sha256, fd }
  }
}

/** Nothing was written to it, so that closing it cannot lose anything. */
const closed = (fd: number): void => close(fd, () => undefined)

/** Fails where the file ends before the places are full. */
const readWhole = (
  fd: number,
  views: ReadonlyArray<Uint8Array>,
  { from, to }: { readonly from: number; readonly to: number },
  done: (cause: Error | null) => void
): void =>
  readv(fd, views, from, (error, count) => {
    if (error !== null) return done(error)
    const at = from + count
    if (at === to) return done(null)
    if (count === 0) return done(new Error(`It ends at byte ${from}`))
    readWhole(fd, behind(views, count), { from: at, to }, done)
  })

/** The places behind so many bytes. */
const behind = (views: ReadonlyArray<Uint8Array>, bytes: number): ReadonlyArray<Uint8Array> => {
  let left = bytes
  return views.flatMap((view) => {
    const taken = Math.min(left, view.length)
    left -= taken
    return taken === view.length ? [] : [view.subarray(taken)]
  })
}

/** Copies a part of bytes that are at hand; false: they are not. */
const copyRow = ({ from, views }: Part, bytes: Uint8Array | undefined): boolean => {
  if (bytes === undefined) return false
  let at = from
  for (const view of views) {
    view.set(bytes.subarray(at, at + view.length))
    at += view.length
  }
  return true
}
