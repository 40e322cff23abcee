import type { Headers } from "./ByteClient.ts"
import type { LocalFile } from "./LocalFiles.ts"

/** A directory of the server that files go to. */
export interface UploadTarget {
  /** origin of the server */
  readonly url: string
  /** with the key */
  readonly headers: Headers
  readonly bucket: string
  /** below the bucket, with a slash at its end; "" for the bucket itself */
  readonly below: string
}

/** A file that the server has. */
export interface SentFile {
  readonly file: LocalFile
  readonly fileId: string
  readonly sha256: string
}

export interface Told {
  /** more bytes have gone; fewer, where some are to go again */
  readonly onBytes: (bytes: number) => void
  readonly signal: AbortSignal
}
