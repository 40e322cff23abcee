import { close, read } from "node:fs"
import { Effect, Predicate } from "effect"
import type { Workers } from "#src/infra/workers/Workers.ts"
import type { Attachments, MessageFile } from "../attachments/Attachments.ts"
import { previewBytes, previewOf } from "./AttachmentPreview.ts"
import { renderedBody } from "./BodyRenderer.ts"
import type { ShownFile } from "./MessagePage.ts"

/** The first bytes of an open file. */
const firstOf = (fd: number, bytes: number): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    const buffer = Buffer.alloc(bytes)
    read(fd, buffer, 0, bytes, 0, (error, got) =>
      error === null ? resolve(buffer.subarray(0, got)) : reject(error)
    )
  })

const encodings = [
  ["utf-16le", Buffer.from([0xff, 0xfe])],
  ["utf-16be", Buffer.from([0xfe, 0xff])]
] as const

/** UTF-8, or as its first mark says. A character that is cut off at the end is left out. */
const decoded = (bytes: Buffer, isWhole: boolean): string => {
  const [encoding] = encodings.find(([, mark]) => bytes.subarray(0, 2).equals(mark)) ?? ["utf-8"]
  return new TextDecoder(encoding).decode(bytes, { stream: !isWhole })
}

/**
 * The head of a file that its message's page shows as text; undefined for other files, and where it cannot be read now: the
 * page says so when it is opened.
 */
export const fileHead = (
  attachments: Attachments["Service"],
  owner: string,
  file: MessageFile
): Effect.Effect<ShownFile["head"], never, Workers> => {
  const { contentType, isExpired, size } = file
  if (isExpired || previewOf(contentType) !== "text") return Effect.succeed(undefined)
  const isWhole = size <= previewBytes
  return Effect.gen(function* () {
    const bytes = yield* Effect.acquireUseRelease(
      attachments.open(file),
      (content) =>
        Predicate.isNumber(content)
          ? Effect.promise(() => firstOf(content, Math.min(size, previewBytes)))
          : Effect.succeed(content),
      (content) =>
        Effect.sync(() => (Predicate.isNumber(content) ? close(content, () => undefined) : undefined))
    )
    const format = isWhole && !/^text\//i.test(contentType) ? "json" : "text"
    const { html } = yield* renderedBody(owner, { text: decoded(bytes, isWhole), format })
    return { html, isWhole }
  }).pipe(
    // It is logged where the store of blobs finds out.
    Effect.catch(() => Effect.succeed(undefined))
  )
}
