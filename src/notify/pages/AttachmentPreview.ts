import { contentDisposition } from "#src/http/ContentDisposition.ts"

/** How a file is shown on a message's page: in an element of its kind, as text, by a link, or to be downloaded alone. */
export type Preview = "image" | "video" | "audio" | "text" | "pdf" | "none"

/** Images that every browser shows. */
const images = new Set([
  "image/apng",
  "image/avif",
  "image/bmp",
  "image/gif",
  "image/jpeg",
  "image/png",
  "image/svg+xml",
  "image/vnd.microsoft.icon",
  "image/webp",
  "image/x-icon"
])

/** Text that is shown on the page: the first bytes of it. */
export const previewBytes = 64 * 1024

/** The type without its parameters. Source: RFC 9110, 8.3.1. */
const essenceOf = (contentType: string): string => (contentType.split(";", 1)[0] ?? "").trim().toLowerCase()

export const previewOf = (contentType: string): Preview => {
  const type = essenceOf(contentType)
  if (images.has(type)) return "image"
  if (type === "application/pdf") return "pdf"
  if (type.startsWith("text/") || type === "application/json" || type.endsWith("+json")) return "text"
  const [kind] = type.split("/")
  return kind === "video" || kind === "audio" ? kind : "none"
}

/** A file that strangers sent runs nothing: no script, no style, no request. Viewers of PDF do not run in a sandbox. */
const sandbox = "sandbox; default-src 'none'; frame-ancestors 'none'"

/**
 * The headers that a file goes out with. A page shows SVG as an image; opened by itself it would be a document, so it is
 * downloaded, and text of any kind is plain text. Source: contract/notify#message-files
 */
export const fileHeaders = (
  contentType: string,
  filename: string
): { readonly contentType: string; readonly headers: Readonly<Record<string, string>> } => {
  const preview = previewOf(contentType)
  const type = essenceOf(contentType)
  const isInline = preview !== "none" && type !== "image/svg+xml"
  return {
    contentType: preview === "text" ? "text/plain; charset=utf-8" : contentType,
    headers: {
      "content-disposition": contentDisposition(isInline ? "inline" : "attachment", filename),
      "content-security-policy": preview === "pdf" ? "frame-ancestors 'none'" : sandbox,
      "cross-origin-resource-policy": "same-origin",
      "referrer-policy": "no-referrer",
      "x-content-type-options": "nosniff",
      "x-robots-tag": "noindex, nofollow"
    }
  }
}
