import { randomUUID } from "node:crypto"
import { open as openFile } from "node:fs"
import * as fs from "node:fs/promises"
import { join } from "node:path"
import { Context, Effect, Layer, Predicate, Result, Schedule, Schema, type Stream } from "effect"
import { BlobWriter, type WritableFile } from "./BlobWriter.ts"
import { type ByteRange, fileBytes } from "./FileBytes.ts"

/** More bytes came than the caller allows. */
export class BlobTooLarge extends Schema.TaggedError<BlobTooLarge>()("BlobTooLarge", {
  maxBytes: Schema.Number
}) {}

/** No room on the disk (ENOSPC, EDQUOT); the partial file was removed. */
export class DiskFull extends Schema.TaggedError<DiskFull>()("DiskFull", { cause: Schema.Defect() }) {}

export class BlobNotFound extends Schema.TaggedError<BlobNotFound>()("BlobNotFound", { id: Schema.String }) {}

/** The next bytes of a blob, undefined at its end, or why there is none. They are not touched after the next call. */
export type BlobSource<E> = () => Promise<Result.Result<Uint8Array | undefined, E>>

interface WrittenBlob {
  readonly sizeBytes: number
  readonly sha256: Uint8Array
}

/**
 * Files on disk under `<directory>/<two characters>/<id>`. A blob is there whole or not at all: bytes go to a temporary
 * file, which is synced, renamed, and its directory synced. A crash before the rename leaves a temporary file, which is
 * swept; a crash between the rename and the row that names the blob leaves a file that nothing refers to.
 */
export class Blobs extends Context.Service<
  Blobs,
  {
    /** `id` must be one of ours: it becomes a file name. The source's own failures pass through. */
    write<E>(
      id: string,
      source: BlobSource<E>,
      options: { readonly maxBytes: number }
    ): Effect.Effect<WrittenBlob, E | BlobTooLarge | DiskFull>
    /** a descriptor for reading, which is the caller's to close */
    open(id: string): Effect.Effect<number, BlobNotFound>
    /** the bytes of a range; fails only before the first byte */
    read(id: string, range: ByteRange): Effect.Effect<Stream.Stream<Uint8Array>, BlobNotFound>
    /** a blob that is not there is fine */
    remove(id: string): Effect.Effect<void>
  }
>()("signalbox/infra/Blobs") {
  static readonly layer = (options: BlobOptions) => Layer.effect(Blobs, make(options))
}

interface BlobOptions {
  readonly directory: string
}

/** A temporary file not written to for this long belongs to an upload that died with its process. */
const staleMillis = 3_600_000

export type OpenBlobFile = (path: string) => Promise<WritableFile>

/** `wx`: a temporary name is never reused, so an existing file is a fault. */
export const openNew: OpenBlobFile = (path) => fs.open(path, "wx", 0o600)

/** The opening of temporary files: the file system's, unless a test brings a disk with faults. */
export const OpenFile = Context.Reference<OpenBlobFile>("signalbox/infra/blobs/OpenFile", {
  defaultValue: () => openNew
})

const make = Effect.fnUntraced(function* ({ directory }: BlobOptions) {
  const open = yield* OpenFile
  const temporary = join(directory, "tmp")
  yield* Effect.promise(() => fs.mkdir(temporary, { recursive: true, mode: 0o700 }))
  yield* sweep(temporary).pipe(Effect.repeat(Schedule.spaced(staleMillis)), Effect.forkScoped)
  const folderOf = (id: string) => join(directory, id.slice(-2))
  const pathOf = (id: string) => join(folderOf(id), id)

  const write: Blobs["Service"]["write"] = (id, source, { maxBytes }) =>
    Effect.gen(function* () {
      const path = join(temporary, randomUUID())
      return yield* writeTemporary(open, path, source, maxBytes).pipe(
        // Uninterruptible: the promise would go on, and publish a file that nothing refers to.
        Effect.tap(Effect.uninterruptible(disk(() => publish(path, folderOf(id), pathOf(id))))),
        Effect.onError(() => Effect.promise(() => fs.rm(path, { force: true })))
      )
    })

  return Blobs.of({
    write,
    read: (id, range) =>
      Effect.map(
        Effect.tryPromise({ try: () => fs.access(pathOf(id)), catch: () => new BlobNotFound({ id }) }),
        () => fileBytes(pathOf(id), range)
      ),
    open: (id) =>
      Effect.callback((resume) =>
        openFile(pathOf(id), "r", (error, fd) =>
          resume(error === null ? Effect.succeed(fd) : Effect.fail(new BlobNotFound({ id })))
        )
      ),
    remove: (id) => Effect.promise(() => fs.rm(pathOf(id), { force: true }))
  })
})

const writeTemporary = <E>(
  open: OpenBlobFile,
  path: string,
  source: BlobSource<E>,
  maxBytes: number
): Effect.Effect<WrittenBlob, E | BlobTooLarge | DiskFull> =>
  Effect.acquireUseRelease(
    disk(() => open(path)),
    (file) =>
      Effect.flatMap(
        disk(() => copy(file, source, maxBytes)),
        Effect.fromResult
      ),
    (file) => Effect.promise(() => file.close())
  )

/** Rejects where the disk fails. */
const copy = async <E>(
  file: WritableFile,
  source: BlobSource<E>,
  maxBytes: number
): Promise<Result.Result<WrittenBlob, E | BlobTooLarge>> => {
  const writer = new BlobWriter(file)
  try {
    for (;;) {
      const next = await source()
      if (Result.isFailure(next)) return Result.fail(next.failure)
      if (next.success === undefined) break
      if (writer.sizeBytes + next.success.length > maxBytes)
        return Result.fail(new BlobTooLarge({ maxBytes }))
      await writer.write(next.success)
    }
    return Result.succeed(await writer.finish())
  } finally {
    // Its file is closed next.
    await writer.settled()
  }
}

/** The rename makes the blob visible, the sync of its folder makes that last. */
const publish = async (from: string, folder: string, to: string): Promise<void> => {
  await fs.mkdir(folder, { recursive: true, mode: 0o700 })
  await fs.rename(from, to)
  const handle = await fs.open(folder, "r")
  await handle.sync().finally(() => handle.close())
}

const disk = <A>(run: () => Promise<A>): Effect.Effect<A, DiskFull> =>
  Effect.tryPromise({ try: run, catch: (cause) => cause }).pipe(
    Effect.catch((cause) => (isFull(cause) ? Effect.fail(new DiskFull({ cause })) : Effect.die(cause)))
  )

const isFull = (cause: unknown): boolean =>
  Predicate.hasProperty(cause, "code") && (cause.code === "ENOSPC" || cause.code === "EDQUOT")

const sweep = (temporary: string) =>
  Effect.promise(async () => {
    let swept = 0
    for (const name of await fs.readdir(temporary)) {
      const path = join(temporary, name)
      const isStale = await fs.stat(path).then(
        ({ mtimeMs }) => Date.now() - mtimeMs > staleMillis,
        () => false
      )
      if (isStale) await fs.rm(path, { force: true })
      if (isStale) swept++
    }
    return swept
  }).pipe(
    Effect.flatMap((swept) =>
      swept > 0 ? Effect.logInfo(`Removed ${swept} uploads that were never finished`) : Effect.void
    )
  )
