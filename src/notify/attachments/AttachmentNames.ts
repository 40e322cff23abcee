import { anyBytes, safeContentType } from "#src/http/ContentType.ts"

const nameLengthMax = 255
/** A longer ending is no extension. */
const extensionLengthMax = 20

/** Where a name ends and its extension begins; a dot at the beginning hides a file, and is no extension. */
const dotOf = (name: string): number => {
  const dot = name.lastIndexOf(".")
  return dot > 0 && name.length - dot <= extensionLengthMax ? dot : name.length
}

/**
 * A name of `A-Z a-z 0-9 . _ -` alone: each other code point becomes `_`. A longer one than 255 loses characters before its
 * extension. Source: contract/notify#attachments
 *
 * @param sent as it came; undefined or empty: `file`
 */
export const attachmentName = (sent: string | undefined): string => {
  if (sent === undefined || sent === "") return "file"
  const name = sent.replace(/[^A-Za-z0-9._-]/gsu, "_")
  // Names of directories.
  if (name === "." || name === "..") return "file"
  if (name.length <= nameLengthMax) return name
  const extension = name.slice(dotOf(name))
  return name.slice(0, nameLengthMax - extension.length) + extension
}

/** The types of extensions, as far as a page shows them, and the most common others. Source: IANA, Media Types. */
const typesByExtension: Readonly<Record<string, string>> = {
  aac: "audio/aac",
  apng: "image/apng",
  avi: "video/x-msvideo",
  avif: "image/avif",
  bmp: "image/bmp",
  bz2: "application/x-bzip2",
  c: "text/plain",
  cfg: "text/plain",
  conf: "text/plain",
  cpp: "text/plain",
  css: "text/css",
  csv: "text/csv",
  diff: "text/plain",
  doc: "application/msword",
  docx: "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
  env: "text/plain",
  err: "text/plain",
  flac: "audio/flac",
  geojson: "application/geo+json",
  gif: "image/gif",
  go: "text/plain",
  gz: "application/gzip",
  h: "text/plain",
  htm: "text/html",
  html: "text/html",
  ico: "image/vnd.microsoft.icon",
  ics: "text/calendar",
  ini: "text/plain",
  ipynb: "application/json",
  java: "text/plain",
  jpeg: "image/jpeg",
  jpg: "image/jpeg",
  js: "text/javascript",
  json: "application/json",
  jsonl: "text/plain",
  jsonld: "application/ld+json",
  log: "text/plain",
  m4a: "audio/mp4",
  m4v: "video/mp4",
  markdown: "text/markdown",
  md: "text/markdown",
  mjs: "text/javascript",
  mov: "video/quicktime",
  mp3: "audio/mpeg",
  mp4: "video/mp4",
  mpeg: "video/mpeg",
  mpg: "video/mpeg",
  ndjson: "text/plain",
  oga: "audio/ogg",
  ogg: "audio/ogg",
  ogv: "video/ogg",
  opus: "audio/ogg",
  out: "text/plain",
  patch: "text/plain",
  pdf: "application/pdf",
  php: "text/plain",
  png: "image/png",
  ppt: "application/vnd.ms-powerpoint",
  pptx: "application/vnd.openxmlformats-officedocument.presentationml.presentation",
  properties: "text/plain",
  py: "text/plain",
  rb: "text/plain",
  rs: "text/plain",
  rtf: "application/rtf",
  sh: "text/plain",
  sql: "text/plain",
  svg: "image/svg+xml",
  tar: "application/x-tar",
  tex: "text/plain",
  tgz: "application/gzip",
  toml: "text/plain",
  ts: "text/plain",
  tsv: "text/tab-separated-values",
  tsx: "text/plain",
  txt: "text/plain",
  wav: "audio/wav",
  weba: "audio/webm",
  webm: "video/webm",
  webp: "image/webp",
  xls: "application/vnd.ms-excel",
  xlsx: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
  xml: "text/xml",
  yaml: "text/plain",
  yml: "text/plain",
  zip: "application/zip",
  zst: "application/zstd"
}

const types = new Map(Object.entries(typesByExtension))

/** `curl --data-binary` says this of every body. */
const saysNothing = /^(application\/octet-stream|application\/x-www-form-urlencoded)\s*(;|$)/i

/**
 * The type of a file: as it was sent, where that says something, else by the name's extension.
 * Source: contract/notify#attachments
 *
 * @param name as `attachmentName` made it
 */
export const attachmentType = (sent: string | undefined, name: string): string => {
  const type = safeContentType((sent ?? "").trim())
  if (!saysNothing.test(type)) return type
  const extension = name.slice(dotOf(name) + 1).toLowerCase()
  return types.get(extension) ?? anyBytes
}
