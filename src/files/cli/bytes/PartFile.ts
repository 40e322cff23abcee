import { createHash, type Hash } from "node:crypto"
import { type FileHandle, link, open, readFile, rename, rm, utimes, writeFile } from "node:fs/promises"
import { basename, dirname, join } from "node:path"
import { Predicate, Schema } from "effect"
import { CommandFailed } from "#src/cli/CommandFailed.ts"
import { rootOf } from "#src/cli/Connection.ts"
import type { RemoteBytes } from "./RemoteBytes.ts"

/** Where downloaded bytes go. */
export interface Sink {
  /** bytes that are there */
  readonly offset: number
  write(piece: Uint8Array): Promise<void>
  /** Throws away what is there, for other bytes; throws where that cannot be done. */
  restart(remote: RemoteBytes): Promise<void>
  /** All bytes are there. Throws where their hash is another one. */
  finish(remote: RemoteBytes): Promise<void>
  close(): Promise<void>
}

const Mark = Schema.fromJsonString(Schema.Struct({ etag: Schema.String }))

export const codeOf = (error: unknown): string =>
  Predicate.hasProperty(error, "code") && Predicate.isString(error.code) ? error.code : ""

export const alreadyThere = (path: string): CommandFailed =>
  new CommandFailed({ problem: `${path} is there already; --force replaces it` })

const otherHash = (what: string): CommandFailed =>
  new CommandFailed({ problem: `${what}: the bytes that came have another SHA-256 than the server's` })

/** Throws `CommandFailed` in place of what the file system says. */
const local = async <A>(path: string, work: Promise<A>): Promise<A> => {
  try {
    return await work
  } catch (error) {
    throw new CommandFailed({ problem: `${path} cannot be written: ${rootOf(error)}` })
  }
}

/** The ETag of the bytes in a part that an earlier run left; undefined: none. */
const markedEtag = async (mark: string): Promise<string | undefined> => {
  const text = await readFile(mark, "utf8").catch((error: unknown) => {
    if (codeOf(error) === "ENOENT") return undefined
    throw error
  })
  if (text === undefined) return undefined
  const read = Schema.decodeUnknownResult(Mark)(text)
  return read._tag === "Success" ? read.success.etag : undefined
}

const pieceBytes = 1024 * 1024

/**
 * A file that comes: `FILE.part`, beside `FILE.part.json` that says of what. An earlier run's is gone on with where it is of the
 * same bytes. It becomes FILE when all are there, checked and on disk.
 */
export class PartFile implements Sink {
  readonly path: string
  readonly #force: boolean
  readonly #handle: FileHandle
  #hash: Hash = createHash("sha256")
  offset = 0

  private constructor(path: string, handle: FileHandle, force: boolean) {
    this.path = path
    this.#handle = handle
    this.#force = force
  }

  /** @param force whether a FILE that is there is replaced */
  static async open(path: string, remote: RemoteBytes, force: boolean): Promise<PartFile> {
    const marked = await local(path, markedEtag(markOf(path)))
    const isKnown = marked === remote.etag && remote.etag !== ""
    const handle = await local(path, openPart(partOf(path)))
    const file = new PartFile(path, handle, force)
    try {
      const { size } = await handle.stat()
      // No earlier run made it: those write the mark before the first byte.
      if (marked === undefined && size > 0 && !force) throw alreadyThere(partOf(path))
      if (isKnown && size <= remote.sizeBytes) await file.#takeUp(size)
      else await file.restart(remote)
    } catch (error) {
      await handle.close()
      throw error
    }
    return file
  }

  async #takeUp(size: number): Promise<void> {
    const into = Buffer.allocUnsafe(pieceBytes)
    while (this.offset < size) {
      const { bytesRead } = await this.#handle.read(
        into,
        0,
        Math.min(pieceBytes, size - this.offset),
        this.offset
      )
      if (bytesRead === 0) break
      this.#hash.update(into.subarray(0, bytesRead))
      this.offset += bytesRead
    }
  }

  async write(piece: Uint8Array): Promise<void> {
    this.#hash.update(piece)
    for (let from = 0; from < piece.length;) {
      const { bytesWritten } = await local(
        this.path,
        this.#handle.write(piece, from, piece.length - from, this.offset)
      )
      from += bytesWritten
      this.offset += bytesWritten
    }
  }

  async restart({ etag }: RemoteBytes): Promise<void> {
    await local(this.path, this.#handle.truncate(0))
    await local(this.path, writeFile(markOf(this.path), JSON.stringify({ etag }), { mode: 0o600 }))
    this.offset = 0
    this.#hash = createHash("sha256")
  }

  async finish({ modifiedAt, sha256 }: RemoteBytes): Promise<void> {
    const { path } = this
    if (sha256 !== undefined && this.#hash.digest("hex") !== sha256) {
      await rm(partOf(path), { force: true })
      await rm(markOf(path), { force: true })
      throw otherHash(path)
    }
    await local(path, this.#handle.sync())
    if (modifiedAt !== undefined) await local(path, utimes(partOf(path), new Date(), modifiedAt))
    await this.#publish()
    await rm(markOf(path), { force: true })
    await local(path, syncDirectory(dirname(path)))
  }

  async #publish(): Promise<void> {
    const { path } = this
    if (this.#force) return local(path, rename(partOf(path), path))
    try {
      // A link never takes the place of a file.
      await link(partOf(path), path)
    } catch (error) {
      if (codeOf(error) === "EEXIST") throw alreadyThere(path)
      if (!["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS"].includes(codeOf(error)))
        throw new CommandFailed({ problem: `${path} cannot be written: ${rootOf(error)}` })
      // This file system has no links.
      return local(path, rename(partOf(path), path))
    }
    await local(path, rm(partOf(path)))
  }

  close(): Promise<void> {
    return this.#handle.close()
  }
}

/** of a name, on the file systems there are */
const nameBytesMost = 255
const markEnd = ".part.json"

/** The beginning of the names of a part and of its mark. In those of a very long FILE a hash stands for its end. */
const stemOf = (path: string): string => {
  const name = basename(path)
  const most = nameBytesMost - markEnd.length
  if (Buffer.byteLength(name) <= most) return path
  const hash = `~${createHash("sha256").update(name).digest("hex").slice(0, 16)}`
  let stem = ""
  for (const character of name) {
    if (Buffer.byteLength(stem + character + hash) > most) break
    stem += character
  }
  return join(dirname(path), stem + hash)
}

const partOf = (path: string): string => `${stemOf(path)}.part`
const markOf = (path: string): string => stemOf(path) + markEnd

/** It is read too, for its hash. */
const openPart = async (path: string): Promise<FileHandle> => {
  try {
    const handle = await open(path, "r+")
    // An earlier run ended between its two names: the bytes are those of a finished file.
    if ((await handle.stat()).nlink < 2) return handle
    await handle.close()
    await rm(path)
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw error
  }
  return await open(path, "wx+")
}

const syncDirectory = async (path: string): Promise<void> => {
  const handle = await open(path, "r")
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** The standard output, which keeps nothing. */
export class StandardOutput implements Sink {
  readonly #hash = createHash("sha256")
  offset = 0

  async write(piece: Uint8Array): Promise<void> {
    this.#hash.update(piece)
    this.offset += piece.length
    await new Promise<void>((resolve, reject) => {
      process.stdout.write(piece, (error) =>
        error === null || error === undefined
          ? resolve()
          : reject(new CommandFailed({ problem: `The standard output cannot be written: ${rootOf(error)}` }))
      )
    })
  }

  async restart(): Promise<void> {
    if (this.offset > 0) throw new CommandFailed({ problem: "It became another one while it was read" })
  }

  async finish({ sha256 }: RemoteBytes): Promise<void> {
    if (sha256 !== undefined && this.#hash.digest("hex") !== sha256) throw otherHash("The standard output")
  }

  async close(): Promise<void> {
    // It stays open: it is not this sink's.
  }
}
