import type { Headers, Waiting } from "./ByteClient.ts"
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

/** The current version of a file of the server. */
export interface FileThere {
  readonly fileId: string
  readonly sha256: string
}

/** The files of the server at the paths of these, which have no entry where there is none; undefined: the key may not read. */
export type Look = (files: ReadonlyArray<LocalFile>) => Promise<ReadonlyMap<LocalFile, FileThere> | undefined>

/** A file that the server has. */
export interface SentFile {
  readonly file: LocalFile
  readonly fileId: string
  readonly sha256: string
}

export interface Told extends Waiting {
  /** more bytes have gone; fewer, where some are to go again */
  readonly onBytes: (bytes: number) => void
}
