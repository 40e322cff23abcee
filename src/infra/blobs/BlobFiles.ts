import { createHash, randomUUID } from "node:crypto"
import { close, fstat, open as openFile } from "node:fs"
import * as fs from "node:fs/promises"
import { setTimeout as sleep } from "node:timers/promises"
import { dirname, join } from "node:path"
import { Effect, Result, Schema, type Scope } from "effect"
import type { BlobDirectory } from "./BlobDirectory.ts"
import type { Blob, SummedBlob } from "./BlobIndex.ts"
import { BlobWriter, type WritableFile } from "./BlobWriter.ts"
import { RunningSums } from "./RunningSums.ts"
import { codeOf, disk, DiskFull, ifThere, linkOrCopy, syncDirectory, within } from "./Disk.ts"

/** More bytes came than the caller allows. */
export class BlobTooLarge extends Schema.TaggedError<BlobTooLarge>()("BlobTooLarge", {
  maxBytes: Schema.Number
}) {}

/** The next bytes of a blob, undefined at its end, or why there is none. They are not touched after the next call. */
export type BlobSource<E> = () => Promise<Result.Result<Uint8Array | undefined, E>>

/** Makes a new file, or goes on at the end of one that may be there. */
export type OpenBlobFile = (path: string, flags: "wx" | "a" | "r+") => Promise<WritableFile>

/** One of the files of an upload. Where a request may still be writing to one, the next request has another. */
interface UploadFile {
  readonly id: string
  readonly file: number
}

/** Short blobs are taken for so long without another look at the room on the disk. */
const roomMillis = 200

/** Bytes of a file that are hashed at a time. */
const readBytes = 256 * 1024

/**
 * Blobs on disk: `<directory>/ab/cd/<sha256>`, and uploads under way in `<directory>/tmp`. A blob's file is whole from its
 * first moment: its bytes are synced before it is renamed into place, and the directories that name it after that.
 */
export class BlobFiles {
  private readonly directory: string
  private readonly temporary: string
  private readonly openFile: OpenBlobFile
  /** directories that this process has made, or seen, and synced */
  private readonly folders = new Set<string>()
  /** the instant until which there is room for short blobs */
  private roomUntil = -Infinity

  constructor({ path, temporary }: BlobDirectory, openFile: OpenBlobFile) {
    this.directory = path
    this.temporary = temporary
    this.openFile = openFile
  }

  pathOf(sha256: string): string {
    return join(this.directory, sha256.slice(0, 2), sha256.slice(2, 4), sha256)
  }

  temporaryOf({ file, id }: UploadFile): string {
    return join(this.temporary, `${id}.${file}`)
  }

  /** Fails where so many bytes more would leave less room on the disk than has to stay free. */
  haveRoom(bytes: number, freeBytesMin: number): Effect.Effect<void, DiskFull> {
    return Effect.flatMap(
      disk(() => fs.statfs(this.directory)),
      ({ bavail, bsize }) =>
        bavail * bsize - bytes >= freeBytesMin
          ? Effect.void
          : Effect.fail(new DiskFull({ cause: `less than ${freeBytesMin} bytes would be free` }))
    )
  }

  /** The same for few bytes, by what was free a moment ago. */
  haveRoomLately(bytes: number, freeBytesMin: number): Effect.Effect<void, DiskFull> {
    return Effect.suspend(() => {
      const now = performance.now()
      if (now < this.roomUntil) return Effect.void
      return Effect.tap(this.haveRoom(bytes, freeBytesMin), () =>
        Effect.sync(() => (this.roomUntil = performance.now() + roomMillis))
      )
    })
  }

  /** Writes a source to a new temporary file, and syncs it. */
  receive<E>(
    upload: UploadFile,
    source: BlobSource<E>,
    maxBytes: number
  ): Effect.Effect<SummedBlob, E | BlobTooLarge | DiskFull> {
    return this.writing(upload, "wx", async (file) => {
      const writer = new BlobWriter(file)
      try {
        const copied = await copy(writer, source, maxBytes)
        return Result.isFailure(copied) ? Result.fail(copied.failure) : Result.succeed(await writer.finish())
      } finally {
        // Its file is closed next.
        await writer.settled()
      }
    })
  }

  /**
   * Appends a source to a temporary file, behind as many bytes as are known to be durable: what lies beyond them is cut off.
   * `onDurable` is told where they end now, while they come, and also where the source has failed.
   */
  append<E>(
    upload: UploadFile,
    source: BlobSource<E>,
    { everyMillis, isWholeOnly, maxBytes, offset, onDurable, sums }: AppendOptions
  ): Effect.Effect<void, E | BlobTooLarge | DiskFull> {
    return this.writing(upload, "a", async (file) => {
      await file.truncate(offset)
      // Its name has to be durable, too.
      if (offset === 0) await syncDirectory(this.temporary)
      const writer = new BlobWriter(file, sums, (bytes) => onDurable(offset + bytes))
      const timer = setInterval(() => (isWholeOnly ? undefined : writer.keepUp()), everyMillis)
      try {
        const copied = await copy(writer, source, maxBytes)
        if (Result.isFailure(copied) && isWholeOnly) return Result.fail(copied.failure)
        await writer.allDurable()
        onDurable(offset + writer.sizeBytes)
        return copied
      } finally {
        clearInterval(timer)
        await writer.settled()
      }
    })
  }

  private writing<A, E>(
    upload: UploadFile,
    flags: "wx" | "a",
    write: (file: WritableFile) => Promise<Result.Result<A, E>>
  ): Effect.Effect<A, E | DiskFull> {
    return Effect.acquireUseRelease(
      disk(() => this.openFile(this.temporaryOf(upload), flags)),
      (file) =>
        Effect.flatMap(
          disk(() => write(file)),
          Effect.fromResult
        ),
      (file) => Effect.promise(() => file.close())
    )
  }

  /**
   * Makes sure that an upload's file has these bytes and that no earlier request writes to it: where one may, they are
   * copied. False: the bytes are not there.
   */
  own(upload: UploadFile, was: UploadFile, bytes: number): Effect.Effect<boolean, DiskFull> {
    return disk(async () => {
      const there = await ifThere(fs.stat(this.temporaryOf(was)))
      if ((there?.size ?? 0) < bytes) return false
      if (upload.file === was.file || there === undefined) return true
      const copying = fs.copyFile(
        this.temporaryOf(was),
        this.temporaryOf(upload),
        fs.constants.COPYFILE_FICLONE
      )
      if ((await ifThere(copying.then(() => true))) === undefined) return false
      const copied = await fs.open(this.temporaryOf(upload), "r+")
      await copied.datasync().finally(() => copied.close())
      await syncDirectory(this.temporary)
      return true
    })
  }

  /** The sums of an upload's file, cut to its durable bytes and read anew; undefined: another request has taken it. */
  hashOf(upload: UploadFile, bytes: number): Effect.Effect<SummedBlob | undefined, DiskFull> {
    const path = this.temporaryOf(upload)
    const cut = async (): Promise<SummedBlob> => {
      // An empty upload may have no file yet.
      const file = await this.openFile(path, bytes === 0 ? "a" : "r+")
      try {
        await file.truncate(bytes)
        await file.datasync()
      } finally {
        await file.close()
      }
      return hashFile(path)
    }
    return disk(() => ifThere(cut()))
  }

  /** Makes a blob of a temporary file, in the place of one that may be there: these are the bytes of the hash. */
  publish(upload: UploadFile, { sha256 }: Blob): Effect.Effect<void, DiskFull> {
    return Effect.uninterruptible(
      disk(() => this.inFolder(sha256, (to) => fs.rename(this.temporaryOf(upload), to)))
    )
  }

  /**
   * A second name of a temporary file until the scope ends, a copy where the file system knows none; `publishNamed` takes it
   * away. So the first one stays where a publication fails, and a copy takes its time before the locks. Undefined: another
   * request has taken the file.
   */
  secondName(upload: UploadFile): Effect.Effect<string | undefined, DiskFull, Scope.Scope> {
    const name = randomUUID()
    const named = disk(() =>
      ifThere(linkOrCopy(this.temporaryOf(upload), join(this.temporary, name)).then(() => name))
    )
    return Effect.acquireRelease(
      Effect.onError(named, () => this.discardNamed(name)),
      () => this.discardNamed(name)
    )
  }

  /** Makes a blob of a file with a second name, in the place of one that may be there. */
  publishNamed(name: string, { sha256 }: Blob): Effect.Effect<void, DiskFull> {
    return Effect.uninterruptible(
      disk(() => this.inFolder(sha256, (to) => fs.rename(join(this.temporary, name), to)))
    )
  }

  /** Makes a blob of a file elsewhere, which stays. False: it is not there. A blob of its length is left as it is. */
  take(path: string, { sha256, sizeBytes }: Blob): Effect.Effect<boolean, DiskFull> {
    return Effect.uninterruptible(
      disk(async () => {
        const there = await ifThere(fs.stat(this.pathOf(sha256)))
        if (there?.size === sizeBytes) return true
        const temporary = join(this.temporary, randomUUID())
        try {
          await linkOrCopy(path, temporary)
          await this.inFolder(sha256, (to) => fs.rename(temporary, to))
          return true
        } catch (error) {
          if (codeOf(error) === "ENOENT" && (await ifThere(fs.stat(path))) === undefined) return false
          throw error
        } finally {
          await fs.rm(temporary, { force: true })
        }
      })
    )
  }

  /** Makes the directory of a hash, so that no transaction waits for its syncs. */
  makeFolder({ sha256 }: Blob): Effect.Effect<void, DiskFull> {
    return disk(() => this.folderOf(sha256))
  }

  private async folderOf(sha256: string): Promise<void> {
    const folder = dirname(this.pathOf(sha256))
    if (this.folders.has(folder)) return
    await fs.mkdir(folder, { recursive: true, mode: 0o700 })
    await syncDirectory(dirname(folder))
    await syncDirectory(this.directory)
    this.folders.add(folder)
  }

  /** Puts a file into the directory of a hash, and syncs the directories that name it. */
  private async inFolder(sha256: string, put: (path: string) => Promise<void>): Promise<void> {
    const to = this.pathOf(sha256)
    const folder = dirname(to)
    await this.folderOf(sha256)
    await put(to).catch((error: unknown) => {
      // It may have been removed behind our back: the next time it is made again.
      this.folders.delete(folder)
      throw error
    })
    await syncDirectory(folder)
  }

  /** A descriptor of a blob, which is the caller's to close; or what is wrong with its file. */
  open({ sha256, sizeBytes }: Blob): Effect.Effect<number, string> {
    return Effect.callback((resume) =>
      openFile(this.pathOf(sha256), "r", (error, fd) => {
        if (error !== null) return resume(failed(error))
        fstat(fd, (trouble, stats) => {
          if (trouble === null && stats.size === sizeBytes) return resume(Effect.succeed(fd))
          close(fd, () => resume(trouble === null ? wrongSize(stats.size, sizeBytes) : failed(trouble)))
        })
      })
    )
  }

  /** All bytes of a blob, compared with its hash; or what is wrong with its file. */
  read({ sha256, sizeBytes }: Blob): Effect.Effect<Buffer, string> {
    return Effect.tryPromise({ try: () => fs.readFile(this.pathOf(sha256)), catch: (error) => error }).pipe(
      Effect.catch(failed),
      Effect.flatMap((bytes) => {
        if (bytes.length !== sizeBytes) return wrongSize(bytes.length, sizeBytes)
        const seen = createHash("sha256").update(bytes).digest("hex")
        return seen === sha256 ? Effect.succeed(bytes) : Effect.fail(wrongHash)
      })
    )
  }

  /** The sums of a blob, read no faster than so many bytes a second; fails with what is wrong with its file. */
  check({ sha256, sizeBytes }: Blob, bytesPerSecond = Infinity): Effect.Effect<SummedBlob, string> {
    return Effect.tryPromise({
      try: (signal) => hashFile(this.pathOf(sha256), bytesPerSecond, signal),
      catch: (error) => error
    }).pipe(
      Effect.catch(failed),
      Effect.flatMap((seen) => {
        if (seen.sizeBytes !== sizeBytes) return wrongSize(seen.sizeBytes, sizeBytes)
        return seen.sha256 === sha256 ? Effect.succeed(seen) : Effect.fail(wrongHash)
      })
    )
  }

  close(fd: number): Effect.Effect<void> {
    return Effect.callback((resume) => close(fd, () => resume(Effect.void)))
  }

  /** Takes a blob's file out of the store, and answers the name under which it can be put back; undefined: there is none. */
  setAside(sha256: string): Effect.Effect<string | undefined> {
    return Effect.promise(async () => {
      const name = randomUUID()
      const moved = fs.rename(this.pathOf(sha256), join(this.temporary, name))
      return ifThere(moved.then(() => name))
    })
  }

  /** One that has come to be there meanwhile stays. */
  putBack(name: string, sha256: string): Effect.Effect<void> {
    return Effect.promise(async () => {
      const path = join(this.temporary, name)
      await linkOrCopy(path, this.pathOf(sha256)).catch((error: unknown) => {
        if (codeOf(error) !== "EEXIST") throw error
      })
      await fs.rm(path)
    })
  }

  discard(upload: UploadFile): Effect.Effect<void> {
    return Effect.promise(() => fs.rm(this.temporaryOf(upload), { force: true }))
  }

  /** The hashes of files in one of the 256 directories, by its name. */
  found(folder: string): Effect.Effect<ReadonlyArray<string>> {
    return Effect.promise(async () => {
      const names = (await ifThere(fs.readdir(join(this.directory, folder), { recursive: true }))) ?? []
      return names.map((name) => name.slice(3)).filter((name) => /^[0-9a-f]{64}$/.test(name))
    })
  }

  /** The files among these that were put there between two instants. */
  within(
    hashes: ReadonlyArray<string>,
    sinceMillis: number,
    untilMillis: number
  ): Effect.Effect<ReadonlyArray<string>> {
    return Effect.promise(() => within(hashes, (sha256) => this.pathOf(sha256), sinceMillis, untilMillis))
  }

  /** Files of uploads that nothing has been written to since an instant. */
  foundTemporary(untilMillis: number): Effect.Effect<ReadonlyArray<string>> {
    return Effect.promise(async () =>
      within(await fs.readdir(this.temporary), (name) => join(this.temporary, name), -Infinity, untilMillis)
    )
  }

  discardNamed(name: string): Effect.Effect<void> {
    return Effect.promise(() => fs.rm(join(this.temporary, name), { force: true }))
  }
}

/** A file that is not there or that the disk does not give is damage; too few descriptors, say, are not. */
const failed = (error: unknown): Effect.Effect<never, string> => {
  switch (codeOf(error)) {
    case "ENOENT":
      return Effect.fail("it is missing")
    case "EIO":
      return Effect.fail("the disk cannot read it")
    default:
      return Effect.die(error)
  }
}

const wrongSize = (seen: number, expected: number): Effect.Effect<never, string> =>
  Effect.fail(`it has ${seen} bytes instead of ${expected}`)

export const wrongHash = "its bytes have another hash"

interface AppendOptions {
  readonly offset: number
  /** all that may be appended */
  readonly maxBytes: number
  readonly onDurable: (bytes: number) => void
  /** nothing of a source that fails is kept */
  readonly isWholeOnly: boolean
  /** bytes are made durable this often while they come */
  readonly everyMillis: number
  /** of the bytes before, where it is known */
  readonly sums: RunningSums | undefined
}

/** Rejects where the disk fails. */
const copy = async <E>(
  writer: BlobWriter,
  source: BlobSource<E>,
  maxBytes: number
): Promise<Result.Result<void, E | BlobTooLarge>> => {
  for (;;) {
    const next = await source()
    if (Result.isFailure(next)) return Result.fail(next.failure)
    if (next.success === undefined) return Result.succeed(undefined)
    if (writer.sizeBytes + next.success.length > maxBytes) return Result.fail(new BlobTooLarge({ maxBytes }))
    await writer.write(next.success)
  }
}

const hashFile = async (
  path: string,
  bytesPerSecond = Infinity,
  signal?: AbortSignal
): Promise<SummedBlob> => {
  const file = await fs.open(path, "r")
  try {
    const sums = new RunningSums()
    const buffer = Buffer.allocUnsafe(readBytes)
    for (;;) {
      const { bytesRead } = await file.read(buffer, 0, buffer.length, sums.sizeBytes)
      if (bytesRead === 0) return sums.sums
      sums.update(buffer.subarray(0, bytesRead))
      if (bytesPerSecond !== Infinity)
        await sleep((bytesRead / bytesPerSecond) * 1_000, undefined, { signal })
    }
  } finally {
    await file.close()
  }
}
