import { Context, type Effect, type Scope } from "effect"
import type { FileFailed, LogLocked } from "./LogFailure.ts"
import { nodeLogFiles } from "./NodeLogFiles.ts"

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
