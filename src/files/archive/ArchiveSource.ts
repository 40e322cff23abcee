import type { ArchivePlan, BlobPart } from "#streams/files/archive/ArchivePlan.ts"
import type { ByteSource } from "#src/front/RawRoute.ts"
import type { ByteRange } from "#src/http/FileBytes.ts"
import type { BlobParts } from "#src/infra/blobs/BlobParts.ts"

interface Ends {
  /** A blob could not be read: the archive is cut. */
  readonly onTrouble: (part: BlobPart) => void
  readonly onClose: () => void
}

/** The bytes of an archive, or of a part of it, as they are sent. */
export class ArchiveSource implements ByteSource {
  readonly from: number
  readonly to: number
  private readonly plan: ArchivePlan
  private readonly parts: BlobParts
  private readonly ends: Ends

  constructor(plan: ArchivePlan, { from, to }: ByteRange, parts: BlobParts, ends: Ends) {
    this.plan = plan
    this.from = from
    this.to = to
    this.parts = parts
    this.ends = ends
  }

  read(into: Buffer, at: number, done: (error: Error | null, count: number) => void): void {
    const bytes = into.subarray(0, this.to - at)
    this.parts.read(this.plan.fill(bytes, at), (trouble) => {
      if (trouble === undefined) return done(null, bytes.length)
      const { cause, part } = trouble
      this.ends.onTrouble(part)
      done(new Error(`An archive was cut: the blob ${part.sha256} cannot be read`, { cause }), 0)
    })
    const next = at + bytes.length < this.to ? this.plan.next(into.length) : undefined
    if (next !== undefined) this.parts.openAhead(next)
  }

  close(): void {
    this.parts.close()
    this.ends.onClose()
  }
}
