import { createHash } from "node:crypto"
import { createReadStream } from "node:fs"
import { lstat, readdir, stat } from "node:fs/promises"
import { basename, join, resolve } from "node:path"
import { CommandFailed } from "#src/cli/CommandFailed.ts"
import { rootOf } from "#src/cli/Connection.ts"

/** A file of this machine that goes to the server. */
export interface LocalFile {
  readonly path: string
  /** its path below the directory that it goes to */
  readonly relative: string
  readonly sizeBytes: number
  /** to the millisecond */
  readonly modifiedAt: Date
}

export interface LocalFiles {
  readonly files: ReadonlyArray<LocalFile>
  /** links, sockets and the like, and directories that have no file in them */
  readonly skipped: ReadonlyArray<string>
}

const fileOf = (
  path: string,
  relative: string,
  { mtimeMs, size }: { readonly mtimeMs: number; readonly size: number }
): LocalFile => ({ path, relative, sizeBytes: size, modifiedAt: new Date(Math.floor(mtimeMs)) })

/** Links below a directory lead anywhere, and are not followed. */
const walk = async (
  path: string,
  relative: string,
  into: { readonly files: Array<LocalFile>; readonly skipped: Array<string> }
): Promise<void> => {
  const names = (await readdir(path)).toSorted()
  if (names.length === 0) into.skipped.push(path)
  for (const name of names) {
    const below = join(path, name)
    const kind = await lstat(below)
    if (kind.isDirectory()) await walk(below, `${relative}/${name}`, into)
    else if (kind.isFile()) into.files.push(fileOf(below, `${relative}/${name}`, kind))
    else into.skipped.push(below)
  }
}

/** The files of these paths, those below directories too. Throws `CommandFailed` where one cannot be read. */
export const findFiles = async (paths: ReadonlyArray<string>): Promise<LocalFiles> => {
  const into = { files: new Array<LocalFile>(), skipped: new Array<string>() }
  for (const path of paths) {
    try {
      const kind = await stat(path)
      const name = basename(resolve(path))
      if (kind.isDirectory()) await walk(path, name, into)
      else if (kind.isFile()) into.files.push(fileOf(path, name, kind))
      else throw new CommandFailed({ problem: `${path} is neither a file nor a directory` })
    } catch (error) {
      if (error instanceof CommandFailed) throw error
      throw new CommandFailed({ problem: `${path} cannot be read: ${rootOf(error)}` })
    }
  }
  return into
}

const pieceBytes = 1024 * 1024

/** Bytes of a file from `from` to before `to`. Throws `CommandFailed` where it has fewer by now. */
export async function* bytesOf(
  { path }: LocalFile,
  from: number,
  to: number,
  onBytes: (bytes: number) => void
): AsyncGenerator<Buffer> {
  if (from === to) return
  let sent = from
  const source = createReadStream(path, { start: from, end: to - 1, highWaterMark: pieceBytes })
  for await (const piece of source as AsyncIterable<Buffer>) {
    sent += piece.length
    onBytes(piece.length)
    yield piece
  }
  if (sent < to) throw new CommandFailed({ problem: `${path} became shorter while it was read` })
}

/** SHA-256 of a file, hexadecimal. */
export const hashOf = async (file: LocalFile): Promise<string> => {
  const hash = createHash("sha256")
  for await (const piece of bytesOf(file, 0, file.sizeBytes, () => undefined)) hash.update(piece)
  return hash.digest("hex")
}
