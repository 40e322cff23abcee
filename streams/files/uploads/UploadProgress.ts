import type { FieldFault } from "#schemas/core/FieldFault.ts"

/** How far an upload is. */
export interface UploadProgress {
  readonly kind: "whole" | "part" | "joined"
  /** bytes that it will have; null: not told yet */
  readonly length: number | null
  /** bytes that are durable */
  readonly offset: number
  /** it has become a file; its bytes are no upload's any more */
  readonly isDone: boolean
}

/** Bytes that are to be appended. */
export interface Appended {
  /** where they begin, as the client says */
  readonly offset: number
  /** all that the upload will have, if the client says so now */
  readonly length: number | undefined
  /** how many they are; undefined: not known before their end */
  readonly bytes: number | undefined
}

/** Why bytes are not appended, by the status of the answer. */
export interface AppendFault extends FieldFault {
  readonly status: 400 | 403 | 409 | 413
}

/** The bytes are all there. */
export const isComplete = ({ length, offset }: Pick<UploadProgress, "length" | "offset">): boolean =>
  length === offset

/** Whether a request may append; undefined: it may. */
export const appendFault = (
  upload: UploadProgress,
  appended: Appended,
  maxBytes: number
): AppendFault | undefined => {
  const { bytes, length: told, offset } = appended
  if (upload.kind === "joined")
    return { status: 403, field: "", text: "An upload that is made of others takes no bytes of its own" }
  if (upload.offset !== offset)
    return { status: 409, field: "Upload-Offset", text: `the upload has ${upload.offset} bytes` }
  if (told !== undefined && upload.length !== null && told !== upload.length)
    return { status: 400, field: "Upload-Length", text: `the upload has the length ${upload.length}` }
  const length = upload.length ?? told
  if (length !== undefined && length < offset)
    return { status: 400, field: "Upload-Length", text: `the upload has ${offset} bytes already` }
  if (length !== undefined && length > maxBytes)
    return { status: 413, field: "Upload-Length", text: `at most ${maxBytes} bytes` }
  const most = length ?? maxBytes
  if (bytes !== undefined && offset + bytes > most)
    return { status: 413, field: "body", text: `the upload has room for ${most - offset} bytes more` }
  return undefined
}
