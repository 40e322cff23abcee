/** Address of an image that the upstream is to fetch itself. This server never does. */
const remote = /^https?:\/\/[^\s/]/i
const remoteLengthMax = 8_192

const data = /^data:image\/(png|jpe?g|gif|webp);base64,/i

/** The first bytes of the formats. Source: PNG (RFC 2083, 3.1), JPEG (ITU T.81, B.1.1.3), GIF89a (17), WebP (RFC 9649, 2.4) */
const signatures: Readonly<Record<string, (bytes: Buffer) => boolean>> = {
  png: (bytes) => bytes.subarray(0, 8).equals(Buffer.from("\x89PNG\r\n\x1a\n", "latin1")),
  jpg: (bytes) => bytes[0] === 0xff && bytes[1] === 0xd8 && bytes[2] === 0xff,
  gif: (bytes) => /^GIF8[79]a$/.test(bytes.toString("latin1", 0, 6)),
  webp: (bytes) => bytes.toString("latin1", 0, 4) === "RIFF" && bytes.toString("latin1", 8, 12) === "WEBP"
}

const base64 = /^[A-Za-z0-9+/]+={0,2}$/

/** What is wrong with the address of an image; undefined for one that can be an image. */
export const imageProblem = (url: string): string | undefined => {
  if (remote.test(url))
    return url.length > remoteLengthMax ? `at most ${remoteLengthMax} characters` : undefined
  const [head, format] = data.exec(url) ?? []
  if (head === undefined || format === undefined)
    return "expected an http(s) address or data:image/(png|jpeg|gif|webp);base64,…"
  const encoded = url.slice(head.length)
  if (encoded.length % 4 === 1 || !base64.test(encoded)) return "the data is not base64"
  const start = Buffer.from(encoded.slice(0, 32), "base64")
  const name = format.toLowerCase() === "jpeg" ? "jpg" : format.toLowerCase()
  return signatures[name]?.(start) === true ? undefined : `the data is no ${format.toLowerCase()} image`
}
