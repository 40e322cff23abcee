import { dirname } from "node:path"
import { Effect } from "effect"
import type { FileFailed } from "./LogFailure.ts"
import type { LogFile, LogFileSystem } from "./LogFiles.ts"

/** The file's bytes, or undefined where there is no such file. */
export const readWhole = (
  files: LogFileSystem,
  path: string
): Effect.Effect<Uint8Array | undefined, FileFailed> =>
  Effect.acquireUseRelease(
    files.open(path, "read"),
    (file) =>
      Effect.gen(function* () {
        const bytes = new Uint8Array(yield* file.size)
        return bytes.subarray(0, yield* file.read(bytes, 0))
      }),
    (file) => file.close
  ).pipe(
    Effect.catchIf(
      (error) => error.code === "ENOENT",
      () => Effect.succeed(undefined)
    )
  )

/** Replaces the file's content in one step that a crash cannot tear, and makes it last. */
export const replaceWhole = Effect.fnUntraced(function* (
  files: LogFileSystem,
  path: string,
  bytes: Uint8Array
) {
  const temporary = `${path}.new`
  yield* Effect.acquireUseRelease(
    files.open(temporary, "create"),
    (file) => writeAt(file, bytes, 0),
    (file) => file.close
  )
  yield* files.rename(temporary, path)
  yield* files.syncDirectory(dirname(path))
})

/** Overwrites bytes inside a file, and makes them last. */
export const overwrite = (
  files: LogFileSystem,
  path: string,
  bytes: Uint8Array,
  position: number
): Effect.Effect<void, FileFailed> =>
  Effect.acquireUseRelease(
    files.open(path, "write"),
    (file) => writeAt(file, bytes, position),
    (file) => file.close
  )

const writeAt = Effect.fnUntraced(function* (file: LogFile, bytes: Uint8Array, position: number) {
  let written = 0
  while (written < bytes.length) written += yield* file.write(bytes.subarray(written), position + written)
  yield* file.sync
})
