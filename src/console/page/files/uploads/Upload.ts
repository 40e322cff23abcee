/** The place that a file is uploaded to. */
export interface UploadPlace {
  /** the directory's id; undefined: the bucket `bucket`, which is made where it is not there */
  readonly directoryId: string | undefined
  readonly bucket: string | undefined
  /** below that, with `/` between the names; the last is the file's */
  readonly path: string
}

/** The marks of a file by which a browser knows it again. */
export interface FileLook {
  readonly size: number
  /** milliseconds since 1970 */
  readonly lastModified: number
  /** its type, as the browser knows it; may be empty */
  readonly type: string
}

/**
 * `waiting`: for its turn. `sending`. `held`: the server does not answer, or the session has ended; it goes on by itself.
 * `paused`: by the person. `missing`: the page was loaded anew and has not got the file. `failed`: it was refused. `done`.
 */
export type UploadState = "waiting" | "sending" | "held" | "paused" | "missing" | "failed" | "done"

/** A file on its way, as the page shows it. */
export interface Upload extends UploadPlace, FileLook {
  readonly id: string
  /** of files that were chosen or dropped together */
  readonly batch: string
  readonly state: UploadState
  /** bytes that the server has, or that are on the wire */
  readonly sent: number
  /** the resource on the server; undefined until it was made */
  readonly url: string | undefined
  /** it was sent before without an address: its file may be there, though no answer said so */
  readonly isUnsure: boolean
  /** why it is held, or failed */
  readonly problem: string | undefined
}

export const nameOf = ({ path }: Pick<UploadPlace, "path">): string => path.slice(path.lastIndexOf("/") + 1)

/** Equal for the same file at the same place alone. */
export const keyOf = ({ bucket, directoryId, lastModified, path, size }: UploadPlace & FileLook): string =>
  JSON.stringify([bucket, directoryId, path, size, lastModified])

/** A file that was chosen again, from any directory above it: its path is the end of the one that it was chosen by. */
export const isAgain = (
  upload: UploadPlace & FileLook,
  path: string,
  { lastModified, size }: FileLook
): boolean =>
  upload.size === size &&
  upload.lastModified === lastModified &&
  `/${upload.bucket ?? ""}/${upload.path}`.endsWith(`/${path.normalize("NFC")}`)

/** States in which an upload wants nothing from the person and is not over. */
export const isMoving = ({ state }: Pick<Upload, "state">): boolean =>
  state === "waiting" || state === "sending" || state === "held"
