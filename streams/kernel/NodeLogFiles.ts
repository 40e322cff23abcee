import * as fs from "node:fs"
import { Effect } from "effect"
import { lockDirectory } from "./DirectoryLock.ts"
import { FileFailed } from "./LogFailure.ts"
import type { LogFile, LogFileSystem } from "./LogFiles.ts"

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
