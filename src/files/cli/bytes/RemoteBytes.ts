import { safeFilename } from "#src/http/ContentDisposition.ts"
import {
  type Answer,
  accepted,
  ByteClient,
  discard,
  type Headers,
  Patience,
  type Waiting
} from "./ByteClient.ts"

/** Where bytes are. */
export interface Address {
  readonly url: string
  /** the key, or the password of a link */
  readonly headers: Headers
}

/** Bytes of a server, as HEAD describes them. */
export interface RemoteBytes extends Address {
  /** as this machine may call it */
  readonly name: string
  readonly sizeBytes: number
  /** strong, with its quotes */
  readonly etag: string
  /** SHA-256, hexadecimal; undefined: an archive, of which none is known */
  readonly sha256: string | undefined
  readonly modifiedAt: Date | undefined
  /** a use of a link is open: without a range another one would be counted */
  readonly isResumed: boolean
}

export const partial = 206
export const unsatisfiable = 416
/** It is not there, or is there no more for this request. */
const missing = new Set([404, 410])

const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch (error) {
    if (error instanceof URIError) return text
    throw error
  }
}

/** The name in a Content-Disposition (RFC 6266), made harmless: it is one of this directory, and none that shells read. */
export const nameIn = (disposition: string): string => {
  const extended = /filename\*=utf-8''([^;\s]+)/i.exec(disposition)?.[1]
  const plain = /filename="((?:[^"\\]|\\.)*)"/i.exec(disposition)?.[1]?.replaceAll(/\\(.)/g, "$1")
  const sent = extended === undefined ? plain : decoded(extended)
  return safeFilename(sent ?? "download").replace(/^[.-]/, "_")
}

/** Whole size of what an answer to HEAD describes, whether it was asked for a range or not. */
const sizeIn = (answer: Answer): number => {
  const total = /\/(\d+)$/.exec(answer.header("content-range"))?.[1]
  return Number(total ?? answer.header("content-length"))
}

const described = (address: Address, answer: Answer, isResumed: boolean): RemoteBytes => {
  const etag = answer.header("etag")
  const modifiedMillis = Date.parse(answer.header("last-modified"))
  // Those of files say how many copies there are; an archive's ETag is no hash of its bytes.
  const isFile = answer.header("x-replica-satisfied") !== ""
  return {
    ...address,
    name: nameIn(answer.header("content-disposition")),
    sizeBytes: sizeIn(answer),
    etag,
    sha256: isFile ? /^"([0-9a-f]{64})"$/.exec(etag)?.[1] : undefined,
    modifiedAt: Number.isNaN(modifiedMillis) ? undefined : new Date(modifiedMillis),
    isResumed
  }
}

/** A server that does not answer at once is not waited for. */
const triesMost = 3

/** Asks by GET, whose errors alone have words. */
const explain = (client: ByteClient, { headers, url }: Address, waiting: Waiting): Promise<Answer> =>
  accepted(
    () => client.ask({ method: "GET", url, headers: { ...headers, range: "bytes=0-0" } }, waiting.signal),
    new Patience(url, waiting, triesMost)
  )

/**
 * Asks what is there, which counts for nothing. A link whose uses are over may have one that is open, for ranges from this
 * machine's address. Source: contract/files#links.
 */
export const lookAt = async (
  client: ByteClient,
  address: Address,
  waiting: Waiting
): Promise<RemoteBytes> => {
  const { headers, url } = address
  const head = (more: Headers): Promise<Answer> =>
    accepted(
      () => client.ask({ method: "HEAD", url, headers: { ...headers, ...more } }, waiting.signal),
      new Patience(url, waiting, triesMost),
      missing
    )
  const answer = await head({})
  discard(answer)
  if (!missing.has(answer.status)) return described(address, answer, false)
  const again = await head({ range: "bytes=0-" })
  discard(again)
  if (!missing.has(again.status)) return described(address, again, true)
  const surprise = await explain(client, address, waiting)
  discard(surprise)
  return described(address, surprise, true)
}
