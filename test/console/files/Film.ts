import type { Page } from "playwright-core"

/**
 * A film that a browser makes of noise: a minute in WebM, two pictures a second, each of them a key frame, with an index
 * of where they are. Source: RFC 9559 (Matroska).
 */
export const recordFilm = async (page: Page): Promise<Uint8Array<ArrayBuffer>> =>
  new Uint8Array(Buffer.from(await page.evaluate<string>(program), "base64"))

/** Code of the browser. */
const program = String.raw`(async () => {
  const seconds = 60, rate = 2, width = 480, height = 360
  const frames = []
  const encoder = new VideoEncoder({
    output: (chunk) => {
      const bytes = new Uint8Array(chunk.byteLength)
      chunk.copyTo(bytes)
      frames.push(bytes)
    },
    error: (error) => { throw error }
  })
  encoder.configure({ codec: "vp8", width, height, bitrate: 8_000_000 })
  for (let index = 0; index < seconds * rate; index++) {
    const pixels = new Uint8Array(width * height * 4).map(() => Math.random() * 256)
    const frame = new VideoFrame(pixels, {
      format: "RGBX", codedWidth: width, codedHeight: height, timestamp: (index * 1_000_000) / rate
    })
    encoder.encode(frame, { keyFrame: true })
    frame.close()
  }
  await encoder.flush()

  const joined = (parts) => {
    const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0))
    parts.reduce((at, part) => (all.set(part, at), at + part.length), 0)
    return all
  }
  const id = (number) => Uint8Array.from(number.toString(16).match(/../g), (text) => parseInt(text, 16))
  const element = (name, ...parts) => {
    const content = joined(parts)
    const size = new Uint8Array(8)
    new DataView(size.buffer).setBigUint64(0, BigInt(content.length) | (1n << 56n))
    return joined([id(name), size, content])
  }
  const number = (name, value) => {
    const bytes = new Uint8Array(8)
    new DataView(bytes.buffer).setBigUint64(0, BigInt(value))
    return element(name, bytes)
  }
  const decimal = (name, value) => {
    const bytes = new Uint8Array(8)
    new DataView(bytes.buffer).setFloat64(0, value)
    return element(name, bytes)
  }
  const text = (name, value) => element(name, new TextEncoder().encode(value))

  const head = element(0x1a45dfa3, number(0x4286, 1), number(0x42f7, 1), number(0x42f2, 4), number(0x42f3, 8),
    text(0x4282, "webm"), number(0x4287, 2), number(0x4285, 2))
  const info = element(0x1549a966, number(0x2ad7b1, 1_000_000), decimal(0x4489, seconds * 1000),
    text(0x4d80, "test"), text(0x5741, "test"))
  const tracks = element(0x1654ae6b, element(0xae, number(0xd7, 1), number(0x73c5, 1), number(0x83, 1),
    text(0x86, "V_VP8"), element(0xe0, number(0xb0, width), number(0xba, height))))
  const clusters = frames.map((bytes, index) =>
    element(0x1f43b675, number(0xe7, (index * 1000) / rate), element(0xa3, Uint8Array.of(0x81, 0, 0, 0x80), bytes)))
  const cuesOf = (first) => {
    let at = first
    return element(0x1c53bb6b, ...clusters.map((cluster, index) => {
      const point = element(0xbb, number(0xb3, (index * 1000) / rate),
        element(0xb7, number(0xf7, 1), number(0xf1, at)))
      at += cluster.length
      return point
    }))
  }
  // The index stands before the pictures; its own length does not depend on what it says.
  const before = info.length + tracks.length
  const cues = cuesOf(before + cuesOf(0).length)
  const film = joined([head, element(0x18538067, info, tracks, cues, ...clusters)])
  let binary = ""
  for (let at = 0; at < film.length; at += 32_768) binary += String.fromCharCode(...film.subarray(at, at + 32_768))
  return btoa(binary)
})()`
