import { Refused } from "../../api/Refused.ts"
import { isThere, makeUpload, readOffset, sendPiece } from "./TusRequests.ts"
import type { Upload } from "./Upload.ts"

interface Course {
  /** the upload has an address from now on; undefined: it has none any more */
  onUrl(url: string | undefined): void
  /** bytes on the wire, those that the server has included */
  onSent(bytes: number): void
  /** bytes that the server has */
  onKept(bytes: number): void
}

const isGone = (error: unknown): boolean =>
  error instanceof Refused && (error.status === 404 || error.status === 410)

/** The offset was another than the server's: it took more of a request than this browser heard of. */
const isElsewhere = (error: unknown): boolean => error instanceof Refused && error.status === 409

const changed =
  "The file was changed or taken away since it was chosen. Choose it again to send it as it is now"

/** A file that changed on the disk cannot be read any more; its pieces would not belong together. */
const requireUnchanged = async (file: File): Promise<void> => {
  try {
    await file.slice(0, 1).arrayBuffer()
  } catch {
    throw new Refused(400, changed, undefined)
  }
}

/**
 * Sends a file from where the server has it. Fails with `Refused`: what passes by itself has a time to try again, and the
 * next call goes on from the server's offset.
 */
export const sendFile = async (
  upload: Upload,
  file: File,
  { onKept, onSent, onUrl }: Course,
  signal: AbortSignal
): Promise<void> => {
  await requireUnchanged(file)
  let { url } = upload
  let offset = 0
  if (url !== undefined) {
    try {
      offset = await readOffset(url, signal)
    } catch (error) {
      if (!isGone(error)) throw error
      // It was left alone for a day, or is over: from the beginning.
      url = undefined
      onUrl(undefined)
    }
  }
  if (url === undefined) {
    if (upload.isUnsure && (await isThere(upload, signal))) return
    const made = await makeUpload(upload, file, signal, onSent)
    ;({ offset, url } = made)
    onUrl(url)
  }
  onKept(offset)
  let misses = 0
  while (offset < file.size) {
    const from = offset
    try {
      offset = await sendPiece({ url, offset }, file, signal, (bytes) => onSent(from + bytes))
    } catch (error) {
      if (!isElsewhere(error) || ++misses > 3) throw error
      offset = await readOffset(url, signal)
    }
    onKept(offset)
  }
}
