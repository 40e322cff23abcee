import { makeAsk } from "../../api/Ask.ts"
import { faultOf, Refused } from "../../api/Refused.ts"
import type { Listing, StoredFile } from "../Types.ts"
import { type FileLook, nameOf, type UploadPlace } from "./Upload.ts"

/** Requests of resumable uploads, by the session's cookie. Source: tus 1.0.0; contract/files#resumable-uploads. */

const endpoint = "/api/uploads"

const door = makeAsk(undefined, "same-origin")

/** Files up to this many bytes go with the request that makes the upload: one request in place of two. */
const smallBytes = 1024 * 1024

/** Bytes of one request: proxies limit bodies, and what a proxy has gathered is not yet on the server. */
const pieceBytes = 32 * 1024 * 1024

/** A request of which the server has heard nothing for so long is given up. Its timer begins anew with each progress. */
const silenceMillis = 30_000

/** Pause after a request that was not answered, or refused for a while without a time. */
const retryMillis = 1_000

interface Sent {
  readonly method: "POST" | "PATCH" | "HEAD" | "DELETE"
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Blob
  readonly signal: AbortSignal
  /** bytes of the body on the wire */
  readonly onProgress?: (bytes: number) => void
}

const retryAfter = (request: XMLHttpRequest): number | undefined => {
  const seconds = Number(request.getResponseHeader("retry-after") ?? "")
  if (seconds > 0) return seconds * 1000
  const { status } = request
  return status === 408 || status === 423 || status === 429 || (status >= 500 && status !== 507)
    ? retryMillis
    : undefined
}

const bodyOf = (request: XMLHttpRequest): unknown => {
  try {
    return JSON.parse(request.responseText)
  } catch {
    // An answer without a body, or a proxy's own.
    return undefined
  }
}

/** One request, with progress, which `fetch` does not tell. Fails with `Refused`, or with the abort. */
const send = ({ body, headers = {}, method, onProgress, signal, url }: Sent): Promise<XMLHttpRequest> =>
  new Promise((resolve, reject) => {
    const request = new XMLHttpRequest()
    let timer: ReturnType<typeof setTimeout> | undefined
    const abort = (): void => request.abort()
    const settle = (act: () => void): void => {
      clearTimeout(timer)
      signal.removeEventListener("abort", abort)
      act()
    }
    const wait = (): void => {
      clearTimeout(timer)
      timer = setTimeout(() => request.abort(), silenceMillis)
    }
    const silent = (): void =>
      settle(() =>
        reject(signal.aborted ? signal.reason : new Refused(0, "The server does not answer", retryMillis))
      )
    request.open(method, url)
    for (const [name, value] of Object.entries({ "tus-resumable": "1.0.0", ...headers }))
      request.setRequestHeader(name, value)
    request.upload.addEventListener("progress", ({ loaded }) => {
      wait()
      onProgress?.(loaded)
    })
    request.addEventListener("error", silent)
    request.addEventListener("abort", silent)
    request.addEventListener("load", () =>
      settle(() => {
        const { status } = request
        if (status >= 200 && status < 300) return resolve(request)
        const fault = faultOf(status, bodyOf(request))
        reject(new Refused(status, fault.message, retryAfter(request), fault))
      })
    )
    if (signal.aborted) return reject(signal.reason)
    signal.addEventListener("abort", abort)
    wait()
    request.send(body ?? null)
  })

const base64 = (text: string): string => {
  let bytes = ""
  for (const byte of new TextEncoder().encode(text)) bytes += String.fromCharCode(byte)
  return btoa(bytes)
}

const metadataOf = ({ bucket, directoryId, lastModified, path, type }: UploadPlace & FileLook): string =>
  Object.entries({
    filename: nameOf({ path }),
    filetype: type,
    path,
    modifiedAt: new Date(lastModified).toISOString(),
    directoryId: directoryId ?? "",
    dir: directoryId === undefined ? (bucket ?? "") : ""
  })
    .filter(([, value]) => value !== "")
    .map(([name, value]) => `${name} ${base64(value)}`)
    .join(",")

const octets = { "content-type": "application/offset+octet-stream" }

interface Made {
  readonly url: string
  /** bytes that the server has */
  readonly offset: number
}

const offsetOf = (request: XMLHttpRequest, otherwise: number): number => {
  const text = request.getResponseHeader("upload-offset")
  return text === null ? otherwise : Number(text)
}

/** Makes the upload; a small file is sent with it. */
export const makeUpload = async (
  upload: UploadPlace & FileLook,
  file: Blob,
  signal: AbortSignal,
  onProgress: (bytes: number) => void
): Promise<Made> => {
  const isSmall = file.size <= smallBytes
  const request = await send({
    method: "POST",
    url: endpoint,
    headers: {
      "upload-length": String(file.size),
      "upload-metadata": metadataOf(upload),
      ...(isSmall && octets)
    },
    ...(isSmall && { body: file }),
    signal,
    onProgress
  })
  const url = new URL(request.getResponseHeader("location") ?? "", location.href)
  // The server's own name for itself may be another than the one that this browser knows it by.
  return { url: url.pathname, offset: isSmall ? offsetOf(request, file.size) : 0 }
}

/**
 * Whether the file came to its place, though the answer was lost. A small file goes with the request that makes its
 * upload: sent again, it would be a second version. Its time is that of the file on the disk, to the millisecond.
 */
export const isThere = async (
  { bucket, directoryId, lastModified, path, size }: UploadPlace & FileLook,
  signal: AbortSignal
): Promise<boolean> => {
  if (size > smallBytes) return false
  try {
    const directory =
      directoryId === undefined
        ? bucket
        : (await door<Listing>(`/api/directories/${directoryId}?limit=1`, { signal })).directory?.path
    const { files } = await door<{ readonly files: ReadonlyArray<StoredFile> }>(
      `/api/files?path=${encodeURIComponent(`${directory}/${path}`)}`,
      { signal }
    )
    return files.some((file) => file.fileSize === size && Date.parse(file.modifiedAt) === lastModified)
  } catch (error) {
    // A key that may write need not read.
    if (error instanceof Refused && (error.status === 403 || error.status === 404)) return false
    throw error
  }
}

/** The bytes that the server has. */
export const readOffset = async (url: string, signal: AbortSignal): Promise<number> =>
  offsetOf(await send({ method: "HEAD", url, signal }), 0)

interface Open {
  readonly url: string
  readonly offset: number
}

/** The bytes that the server has of each open upload, by address. Nothing where it does not tell now: it is asked again before a file goes on. */
export const readOffsets = async (): Promise<ReadonlyMap<string, number>> => {
  try {
    const { uploads } = await door<{ readonly uploads: ReadonlyArray<Open> }>(endpoint)
    return new Map(uploads.map(({ offset, url }) => [new URL(url, location.href).pathname, offset]))
  } catch (error) {
    if (error instanceof Refused) return new Map()
    throw error
  }
}

/** Sends one piece from the offset on; answers the next offset. */
export const sendPiece = async (
  { offset, url }: Made,
  file: Blob,
  signal: AbortSignal,
  onProgress: (bytes: number) => void
): Promise<number> => {
  const body = file.slice(offset, offset + pieceBytes)
  const request = await send({
    method: "PATCH",
    url,
    headers: { ...octets, "upload-offset": String(offset) },
    body,
    signal,
    onProgress
  })
  return offsetOf(request, offset + body.size)
}

/** Ends the upload and drops what the server has of it. A server that is not to be asked now drops it by itself in a day. */
export const endUpload = async (url: string): Promise<void> => {
  try {
    await send({ method: "DELETE", url, signal: new AbortController().signal })
  } catch (error) {
    if (!(error instanceof Refused)) throw error
  }
}
