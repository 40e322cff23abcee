import { Context, Effect, type Scope } from "effect"
import { FileFailed, type LogLocked } from "./LogFailure.ts"
import { lockDirectory } from "./DirectoryLock.ts"
import * as fs from "node:fs"

export interface LogFile {
  /** answers how many bytes were written, which may be fewer than given. `bytes` belongs to the call until then */
  readonly write: (bytes: Uint8Array, position: number) => Effect.Effect<number, FileFailed>
  /** As `write`, before it returns: into the page cache, which takes microseconds where the file holds the bytes already. */
  readonly writeNow: (bytes: Uint8Array, position: number) => number | FileFailed
  /** after it, all earlier writes survive a power cut (fdatasync) */
  readonly sync: Effect.Effect<void, FileFailed>
  /** answers how many bytes were read: fewer than asked for only at the end of the file */
  readonly read: (into: Uint8Array, position: number) => Effect.Effect<number, FileFailed>
  readonly truncate: (length: number) => Effect.Effect<void, FileFailed>
  readonly size: Effect.Effect<number, FileFailed>
  readonly close: Effect.Effect<void, FileFailed>
}

/** The file system of a log, in which the simulation injects faults. */
export interface LogFileSystem {
  readonly makeDirectory: (directory: string) => Effect.Effect<void, FileFailed>
  readonly list: (directory: string) => Effect.Effect<ReadonlyArray<string>, FileFailed>
  /** `create` makes the file or empties it; `read` and `write` fail with ENOENT where there is none */
  readonly open: (path: string, mode: "create" | "write" | "read") => Effect.Effect<LogFile, FileFailed>
  readonly rename: (from: string, to: string) => Effect.Effect<void, FileFailed>
  readonly remove: (path: string) => Effect.Effect<void, FileFailed>
  /** after it, files made, renamed and removed in the directory stay so through a power cut */
  readonly syncDirectory: (directory: string) => Effect.Effect<void, FileFailed>
  /** keeps every other process out of the directory for as long as the scope and this process live */
  readonly lock: (directory: string) => Effect.Effect<void, FileFailed | LogLocked, Scope.Scope>
}

/** The port: Node's file system unless a test provides another. */
export const LogFiles = Context.Reference<LogFileSystem>("signalbox/streams/LogFiles", {
  defaultValue: () => nodeLogFiles
})

type Outcome = NodeJS.ErrnoException | null

/** Node's callbacks straight into a fiber: `fs/promises` costs a promise and a FileHandle check per call. */
const operation = <A>(
  name: string,
  path: string,
  start: (done: (error: Outcome, value: A) => void) => void
): Effect.Effect<A, FileFailed> =>
  Effect.callback((resume) =>
    start((error, value) =>
      resume(error === null ? Effect.succeed(value) : Effect.fail(failed(name, path, error)))
    )
  )

const command = (
  name: string,
  path: string,
  start: (done: (error: Outcome) => void) => void
): Effect.Effect<void, FileFailed> => operation<void>(name, path, (done) => start((error) => done(error)))

const failed = (name: string, path: string, error: NodeJS.ErrnoException): FileFailed =>
  new FileFailed({ operation: name, path, code: error.code ?? "UNKNOWN", cause: error })

const readFully = (
  descriptor: number,
  into: Uint8Array,
  position: number,
  done: (error: Outcome, read: number) => void
): void => {
  const next = (filled: number): void => {
    fs.read(descriptor, into, filled, into.length - filled, position + filled, (error, read) => {
      if (error !== null) return done(error, filled)
      if (read === 0 || filled + read === into.length) return done(null, filled + read)
      next(filled + read)
    })
  }
  next(0)
}

const logFile = (path: string, descriptor: number): LogFile => ({
  write: (bytes, position) =>
    operation("write", path, (done) => fs.write(descriptor, bytes, 0, bytes.length, position, done)),
  writeNow: (bytes, position) => {
    try {
      return fs.writeSync(descriptor, bytes, 0, bytes.length, position)
    } catch (cause) {
      return failed("write", path, cause as NodeJS.ErrnoException)
    }
  },
  sync: command("fdatasync", path, (done) => fs.fdatasync(descriptor, done)),
  read: (into, position) => operation("read", path, (done) => readFully(descriptor, into, position, done)),
  truncate: (length) => command("truncate", path, (done) => fs.ftruncate(descriptor, length, done)),
  size: operation("stat", path, (done) =>
    fs.fstat(descriptor, (error, stats) => done(error, stats?.size ?? 0))
  ),
  close: command("close", path, (done) => fs.close(descriptor, done))
})

const flags = { create: "w+", write: "r+", read: "r" } as const

export const nodeLogFiles: LogFileSystem = {
  makeDirectory: (directory) =>
    operation("mkdir", directory, (done) =>
      fs.mkdir(directory, { recursive: true, mode: 0o700 }, (error) => done(error, undefined))
    ),
  list: (directory) => operation("readdir", directory, (done) => fs.readdir(directory, done)),
  open: (path, mode) =>
    operation<number>("open", path, (done) => fs.open(path, flags[mode], 0o600, done)).pipe(
      Effect.map((descriptor) => logFile(path, descriptor))
    ),
  rename: (from, to) => command("rename", from, (done) => fs.rename(from, to, done)),
  remove: (path) => command("unlink", path, (done) => fs.unlink(path, done)),
  syncDirectory: (directory) =>
    Effect.acquireUseRelease(
      operation<number>("open", directory, (done) => fs.open(directory, "r", done)),
      (descriptor) => command("fsync", directory, (done) => fs.fsync(descriptor, done)),
      (descriptor) => command("close", directory, (done) => fs.close(descriptor, done))
    ),
  lock: lockDirectory
}
