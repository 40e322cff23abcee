import { hash } from "node:crypto"

/** The facts of an image that can be told without seeing it. */
export interface ImageFacts {
  readonly type: "png" | "jpeg" | "gif" | "webp"
  /** pixels; undefined where the file hides them */
  readonly size: { readonly width: number; readonly height: number } | undefined
}

const factsOf = (bytes: Buffer): ImageFacts | undefined => {
  const head = bytes.toString("latin1", 0, 12)
  if (head.startsWith("\x89PNG\r\n\x1a\n")) {
    const isWhole = bytes.length >= 24
    const size = isWhole ? { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) } : undefined
    return { type: "png", size }
  }
  if (/^GIF8[79]a/.test(head)) {
    const isWhole = bytes.length >= 10
    return {
      type: "gif",
      size: isWhole ? { width: bytes.readUInt16LE(6), height: bytes.readUInt16LE(8) } : undefined
    }
  }
  if (head.startsWith("RIFF") && head.endsWith("WEBP")) return { type: "webp", size: undefined }
  if (head.startsWith("\xff\xd8\xff")) return { type: "jpeg", size: jpegSize(bytes) }
  return undefined
}

/** Of the frame header (SOF0 to SOF15, ITU T.81 section B.2.2), found by walking the segments. */
const jpegSize = (bytes: Buffer): ImageFacts["size"] => {
  let at = 2
  while (at + 9 < bytes.length && bytes[at] === 0xff) {
    const marker = bytes[at + 1] ?? 0
    const isFrame = marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc
    if (isFrame) return { width: bytes.readUInt16BE(at + 7), height: bytes.readUInt16BE(at + 5) }
    at += 2 + bytes.readUInt16BE(at + 2)
  }
  return undefined
}

/** A sentence about the image at a URL; undefined where a `data:` URL holds no image. */
export const describeImage = (url: string): string | undefined => {
  const [, base64] = /^data:[^,]*;base64,(.*)$/s.exec(url) ?? []
  if (base64 === undefined) return url.startsWith("data:") ? undefined : `an image at ${url}`
  const bytes = Buffer.from(base64, "base64")
  const facts = factsOf(bytes)
  if (facts === undefined) return undefined
  const size = facts.size === undefined ? "" : ` of ${facts.size.width}x${facts.size.height} pixels`
  const digest = hash("sha256", bytes, "hex").slice(0, 16)
  return `a ${facts.type} image${size}, ${bytes.length} bytes, SHA-256 ${digest}`
}
