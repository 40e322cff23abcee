/** How the page shows a file without running any of it; undefined: not at all. */
export type PreviewKind = "image" | "audio" | "video" | "pdf" | "text"

/** Images that browsers show. SVG is a document with scripts, and is shown as text. */
const images = new Set(["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/bmp"])

const texts =
  /^(text\/|application\/(json|xml|yaml|toml|sql|x-sh|javascript|x-ndjson)$)|\+(json|xml|yaml)$|^image\/svg/

/** Names of texts whose type says nothing. */
const textNames =
  /\.(md|txt|log|csv|tsv|json|ya?ml|toml|ini|conf|xml|html?|svg|css|[cm]?[jt]sx?|py|rb|go|rs|c|h|cpp|java|kt|swift|php|sh|sql|lock|env|diff|patch)$/i

export const previewKindOf = (mimeType: string, name: string): PreviewKind | undefined => {
  const type = mimeType.toLowerCase().split(";")[0]?.trim() ?? ""
  if (images.has(type)) return "image"
  if (type.startsWith("audio/")) return "audio"
  if (type.startsWith("video/")) return "video"
  if (type === "application/pdf") return "pdf"
  return texts.test(type) || textNames.test(name) ? "text" : undefined
}
