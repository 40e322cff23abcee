import { createHash, generateKeyPair, type KeyObject, sign } from "node:crypto"
import { promisify } from "node:util"

/** A key by which mail of a domain is signed. */
export interface DkimKey {
  readonly domain: string
  readonly selector: string
  /** PEM; a `KeyObject` spares the reading of it */
  readonly privateKey: string | KeyObject
}

export interface DkimKeyPair {
  /** PEM, PKCS #8 */
  readonly privateKey: string
  /** `p=` of its record: SubjectPublicKeyInfo in base64 */
  readonly publicKey: string
}

const makeKeyPair = promisify(generateKeyPair)

/** A signature takes a millisecond, on a thread of libuv's pool. */
const signInPool = promisify(sign)

/** A new key, RSA of 2048 bits. Source: RFC 6376, 3.6.1; RFC 8301, 3.2. */
export const newDkimKey = async (): Promise<DkimKeyPair> => {
  const { privateKey, publicKey } = await makeKeyPair("rsa", {
    modulusLength: 2048,
    privateKeyEncoding: { type: "pkcs8", format: "pem" },
    publicKeyEncoding: { type: "spki", format: "der" }
  })
  return { privateKey, publicKey: publicKey.toString("base64") }
}

/** Headers that are signed where a message has them. Source: RFC 6376, 5.4.1; List-Unsubscribe-Post: RFC 8058, 4. */
const signedNames = (
  "from sender reply-to subject date message-id to cc mime-version content-type content-transfer-encoding content-id " +
  "content-description resent-date resent-from resent-sender resent-to resent-cc resent-message-id in-reply-to " +
  "references list-id list-help list-unsubscribe list-unsubscribe-post list-subscribe list-post list-owner " +
  "list-archive otp-token"
).split(" ")

export type Header = readonly [name: string, value: string]

interface SignedHeadOptions {
  /** a message with CRLF, in ASCII */
  readonly raw: Buffer
  /** headers of one recipient, above those of `raw` */
  readonly extra: ReadonlyArray<Header>
  /** each makes a signature; none: the headers alone */
  readonly keys: ReadonlyArray<DkimKey>
  /** `bodyHashOf(raw)`, where it is known */
  readonly bodyHash?: string
}

/**
 * The bytes to be sent before `raw`: signatures and the headers of one recipient. Rejects where a private key is not one.
 * Source: RFC 6376, relaxed/relaxed with rsa-sha256.
 */
export const signedHead = async ({ bodyHash, extra, keys, raw }: SignedHeadOptions): Promise<Buffer> => {
  const lines = extra.map(([name, value]) => headerLine(name, value)).join("")
  if (keys.length === 0) return Buffer.from(lines, "latin1")
  const headers = relaxedHeaders(lines + headOf(raw))
  const hash = bodyHash ?? bodyHashOf(raw)
  const signatures = await Promise.all(keys.map((key) => signature(headers, hash, key)))
  return Buffer.from(signatures.join("") + lines, "latin1")
}

const lineMax = 78

/** A long value has a line of its own. */
const headerLine = (name: string, value: string): string =>
  `${name}:${name.length + value.length + 2 > lineMax ? "\r\n" : ""} ${value}\r\n`

const headEnd = "\r\n\r\n"

const headOf = (raw: Buffer): string => {
  const end = raw.indexOf(headEnd)
  return raw.toString("latin1", 0, end < 0 ? raw.length : end + 2)
}

/** `bh=` of a message: a message needs it once, whatever the number of its recipients. Source: RFC 6376, 3.4.4. */
export const bodyHashOf = (raw: Buffer): string => {
  const end = raw.indexOf(headEnd)
  const body = end < 0 ? "" : raw.toString("latin1", end + headEnd.length)
  const relaxed = withoutEmptyLines(relaxedText(body).replaceAll(" \r\n", "\r\n"))
  const hash = createHash("sha256").update(relaxed, "latin1")
  return (relaxed === "" ? hash : hash.update("\r\n")).digest("base64")
}

/** Without the line breaks at its end. */
const withoutEmptyLines = (text: string): string => {
  let end = text.length
  while (text.startsWith("\r\n", end - 2) && end > 0) end -= 2
  return text.slice(0, end)
}

/** Runs of white space become one space; there is none at the end. */
const relaxedText = (text: string): string => text.replace(/[ \t]+/g, " ").replace(/ $/, "")

/** By name; of several of a name the last one. Source: RFC 6376, 3.4.2 and 5.4.2. */
const relaxedHeaders = (head: string): ReadonlyMap<string, string> => {
  const fields = head.replace(/\r\n(?=[ \t])/g, "").split("\r\n")
  return new Map(
    fields
      .filter((field) => field.includes(":"))
      .map((field) => {
        const colon = field.indexOf(":")
        return [
          field.slice(0, colon).trimEnd().toLowerCase(),
          relaxedText(field.slice(colon + 1)).trimStart()
        ]
      })
  )
}

const hashLine = 72

const signature = async (
  headers: ReadonlyMap<string, string>,
  bodyHash: string,
  { domain, privateKey, selector }: DkimKey
): Promise<string> => {
  const names = signedNames.filter((name) => headers.has(name))
  const tags =
    `v=1; a=rsa-sha256; c=relaxed/relaxed;\r\n d=${domain};\r\n s=${selector};\r\n` +
    ` bh=${bodyHash};\r\n h=${names.join(":\r\n  ")};\r\n b=`
  const signed = names.map((name) => `${name}:${headers.get(name)}\r\n`).join("")
  const own = `dkim-signature:${relaxedText(tags.replaceAll("\r\n", ""))}`
  const bytes = await signInPool("sha256", Buffer.from(signed + own, "latin1"), privateKey)
  const lines = bytes.toString("base64").replace(new RegExp(`.{${hashLine}}(?=.)`, "g"), "$&\r\n ")
  return `DKIM-Signature: ${tags}${lines}\r\n`
}
