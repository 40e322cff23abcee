/** Address of an image that the upstream is to fetch itself. This server never does. */
const remote = /^https?:\/\/[^\s/]/i
const remoteLengthMax = 8_192

const data = /^data:image\/(png|jpe?g|gif|webp|avif|heic|heif);base64,/i

const brand = (bytes: Buffer, names: RegExp): boolean =>
  bytes.toString("latin1", 4, 8) === "ftyp" && names.test(bytes.toString("latin1", 8, 12))

/**
 * The first bytes of the formats. Source: PNG (RFC 2083, 3.1), JPEG (ITU T.81, B.1.1.3), GIF89a (17), WebP (RFC 9649, 2.4),
 * AVIF (AV1 Image File Format, 6.2), HEIF (ISO/IEC 23008-12, 10.2)
 */
const signatures: ReadonlyArray<(bytes: Buffer) => boolean> = [
  (bytes) => bytes.subarray(0, 8).equals(Buffer.from("\x89PNG\r\n\x1a\n", "latin1")),
  (bytes) => bytes[0] === 0xff && bytes[1] === 0xd8 && bytes[2] === 0xff,
  (bytes) => /^GIF8[79]a$/.test(bytes.toString("latin1", 0, 6)),
  (bytes) => bytes.toString("latin1", 0, 4) === "RIFF" && bytes.toString("latin1", 8, 12) === "WEBP",
  (bytes) => brand(bytes, /^(avif|avis|hei[cxms]|hev[cxms]|mif1|msf1)$/)
]

const base64 = /^[A-Za-z0-9+/]+={0,2}$/

/**
 * The fault in the address of an image; undefined for one that can be an image. Which of the formats the data has
 * does not have to be the one that is named: models look at the data, and browsers and phones often name another.
 */
export const imageProblem = (url: string): string | undefined => {
  if (remote.test(url))
    return url.length > remoteLengthMax ? `at most ${remoteLengthMax} characters` : undefined
  const [head] = data.exec(url) ?? []
  if (head === undefined)
    return "expected an http(s) address or data:image/(png|jpeg|gif|webp|avif|heic|heif);base64,…"
  const encoded = url.slice(head.length)
  if (encoded.length % 4 === 1 || !base64.test(encoded)) return "the data is not base64"
  const start = Buffer.from(encoded.slice(0, 32), "base64")
  return signatures.some((isImage) => isImage(start))
    ? undefined
    : "the data is no png, jpeg, gif, webp, avif or heic image"
}
