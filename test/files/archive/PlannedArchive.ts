import { createHash } from "node:crypto"
import { crc32 } from "node:zlib"
import { type ArchivePlan, ArchivePlanner } from "#streams/files/archive/ArchivePlan.ts"

/** An entry of an archive of a test: a directory where it has no content. */
export interface Member {
  readonly path: string
  readonly modifiedSeconds?: number
  readonly content?: Buffer
}

/** A plan of these entries, and the bytes of its blobs by their hash. */
export const planOf = (members: ReadonlyArray<Member>) => {
  const planner = new ArchivePlanner()
  const blobs = new Map<string, Buffer>()
  for (const { content, modifiedSeconds = 1_700_000_000, path } of members) {
    if (content === undefined) {
      planner.add({ path, modifiedSeconds })
      continue
    }
    const sha256 = createHash("sha256").update(content).digest()
    blobs.set(sha256.toString("hex"), content)
    const blob = { sha256, sizeBytes: content.length, crc32: crc32(content) }
    planner.add({ path, modifiedSeconds, content: blob })
  }
  return { plan: planner.finish(), blobs }
}

/** The bytes of an archive from one to another. */
export const bytesOf = (
  { blobs, plan }: { readonly plan: ArchivePlan; readonly blobs: ReadonlyMap<string, Buffer> },
  from: number,
  to: number
): Buffer => {
  // Bytes that are not written must not pass for zeros.
  const bytes = Buffer.alloc(to - from, 0xee)
  for (const part of plan.fill(bytes, from)) {
    let at = part.from
    for (const view of part.views) at += blobs.get(part.sha256)?.copy(view, 0, at) ?? 0
  }
  return bytes
}
