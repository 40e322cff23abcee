import * as fs from "node:fs/promises"
import { Result } from "effect"
import type { BlobSource } from "./BlobFiles.ts"
import { UploadGone } from "./BlobIndex.ts"
import { ifThere } from "./Disk.ts"

/** The file of an upload. */
interface Part {
  readonly id: string
  readonly path: string
  readonly bytes: number
}

/** Bytes that are read at a time. */
const readBytes = 1024 * 1024

/** Files as one source, one behind the other, from some byte of all of them on. One may go while others are read. */
export class JoinedFiles {
  private readonly parts: Array<Part>
  private readonly buffer = Buffer.allocUnsafe(readBytes)
  private file: fs.FileHandle | undefined
  /** in the first of `parts` */
  private at: number

  constructor(parts: ReadonlyArray<Part>, from: number) {
    this.parts = [...parts]
    this.at = from
  }

  readonly next: BlobSource<UploadGone> = async () => {
    for (;;) {
      const [part] = this.parts
      if (part === undefined) return Result.succeed(undefined)
      const wanted = Math.min(readBytes, part.bytes - this.at)
      if (wanted > 0) {
        this.file ??= await ifThere(fs.open(part.path, "r"))
        const bytesRead = (await this.file?.read(this.buffer, 0, wanted, this.at))?.bytesRead ?? 0
        if (bytesRead === 0) return Result.fail(new UploadGone({ id: part.id }))
        this.at += bytesRead
        return Result.succeed(this.buffer.subarray(0, bytesRead))
      }
      this.at -= part.bytes
      this.parts.shift()
      await this.close()
    }
  }

  async close(): Promise<void> {
    await this.file?.close()
    this.file = undefined
  }
}
