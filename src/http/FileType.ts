import { anyBytes, safeContentType } from "./ContentType.ts"

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
 * The type of a file: as it was sent, where that says something, else by the extension at the end of its name.
 *
 * @param sent "" where there is none
 */
export const fileType = (sent: string, name: string): string => {
  const type = safeContentType(sent.trim())
  if (!saysNothing.test(type)) return type
  const dot = name.lastIndexOf(".")
  // A dot at the beginning hides a file, and is no extension.
  return (dot > 0 ? types.get(name.slice(dot + 1).toLowerCase()) : undefined) ?? anyBytes
}
