/**
 * File names as they come in and go out. Browsers and tools of three decades send anything, so a bare name is stored; a
 * sent one follows RFC 6266 (Content-Disposition) with the name in ASCII and, by RFC 8187, in UTF-8.
 */

const maxNameBytes = 255

/** A name without folders, control characters, reserved characters and lone surrogates, at most 255 bytes of UTF-8. */
export const safeFilename = (sent: string): string => {
  const base = sent.split(/[/\\]/).at(-1) ?? ""
  const clean = base
    .toWellFormed()
    // oxlint-disable-next-line no-control-regex
    .replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069<>:"|?*]/g, "_")
    .trim()
  const short = shorten(clean)
  return short === "" || short === "." || short === ".." ? "file" : short
}

/** Cuts from the middle, so that the extension stays. */
const shorten = (name: string): string => {
  if (Buffer.byteLength(name) <= maxNameBytes) return name
  const dot = name.lastIndexOf(".")
  const extension = dot > 0 && Buffer.byteLength(name.slice(dot)) <= 20 ? name.slice(dot) : ""
  let stem = ""
  let bytes = Buffer.byteLength(extension)
  for (const character of name) {
    bytes += Buffer.byteLength(character)
    if (bytes > maxNameBytes) break
    stem += character
  }
  return stem + extension
}

/** The header's value for a name that `safeFilename` made. */
export const contentDisposition = (type: "inline" | "attachment", filename: string): string => {
  const ascii = filename.replace(/[^\u0020-\u007e]/g, "_").replace(/["\\%]/g, "_")
  const plain = `${type}; filename="${ascii}"`
  return ascii === filename ? plain : `${plain}; filename*=UTF-8''${extValue(filename)}`
}

/** RFC 8187, 3.2.1: every byte of UTF-8 but attr-char is percent-encoded. */
const extValue = (text: string): string =>
  encodeURIComponent(text).replace(/['()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)
