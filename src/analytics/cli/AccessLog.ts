/**
 * Combined Log Format, as Apache and nginx write it:
 * `address identity user [time] "request" status bytes "referrer" "user agent"`.
 */

export interface AccessLogEntry {
  readonly address: string
  readonly timeMillis: number
  readonly method: string
  /** path and query as requested */
  readonly target: string
  readonly status: number
  /** "" where the log has `-` */
  readonly referrer: string
  readonly userAgent: string
}

/** A quoted field: a backslash takes the next character with it. */
const quoted = String.raw`"((?:[^"\\]|\\.)*)"`
const format = new RegExp(
  String.raw`^(\S+) \S+ \S.*? \[(\d{2})/(\w{3})/(\d{4}):(\d{2}):(\d{2}):(\d{2}) ([+-]\d{2})(\d{2})\] ` +
    String.raw`${quoted} (\d{3}) (?:\d+|-) ${quoted} ${quoted}`
)

const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

const textOf = (field: string): string => (field === "-" ? "" : field.replace(/\\(["\\])/g, "$1"))

/** One line; undefined where it is not of the format. */
export const parseLine = (line: string): AccessLogEntry | undefined => {
  const found = format.exec(line)
  if (found === null) return undefined
  const [, address = "", day, monthName = "", year, hour, minute, second, zoneHours, zoneMinutes] = found
  const [, , , , , , , , , , request = "", status, referrer = "", userAgent = ""] = found
  const month = String(months.indexOf(monthName) + 1).padStart(2, "0")
  const timeMillis = Date.parse(
    `${year}-${month}-${day}T${hour}:${minute}:${second}${zoneHours}:${zoneMinutes}`
  )
  const [method = "", target = ""] = request.split(" ")
  if (Number.isNaN(timeMillis) || !target.startsWith("/")) return undefined
  return {
    address,
    timeMillis,
    method,
    target,
    status: Number(status),
    referrer: textOf(referrer),
    userAgent: textOf(userAgent)
  }
}

const assetExtensions = new Set(
  (
    "7z atom avi avif bmp bz2 css csv deb dmg doc docx eot exe flac gif gz ico iso jar jpeg jpg js json less map md5 " +
    "mjs mov mp3 mp4 mpeg mpg ogg otf pdf png ppt pptx rar rpm rss rtf scss sig svg swf tar tgz tiff ts ttf txt wasm " +
    "wav webm webmanifest webp wmv woff woff2 xls xlsx xml xz zip"
  ).split(" ")
)

const isAsset = (path: string): boolean =>
  assetExtensions.has(/\.([A-Za-z0-9]+)$/.exec(path)?.[1]?.toLowerCase() ?? "")

const pathOf = (target: string): string => target.split(/[?#]/, 1)[0] ?? target

/** Asked by a stylesheet or script, not a person. */
const isAskedByAsset = (referrer: string): boolean =>
  URL.canParse(referrer) && /\.(css|js|mjs|swf)$/i.test(new URL(referrer).pathname)

/** Why a request is no page view; undefined where it is one. 304 is a page that the visitor's browser already had. */
export const notAPage = (entry: AccessLogEntry): "method" | "status" | "asset" | undefined => {
  if (entry.method !== "GET") return "method"
  if (!(entry.status >= 200 && entry.status < 300) && entry.status !== 304) return "status"
  return isAsset(pathOf(entry.target)) || isAskedByAsset(entry.referrer) ? "asset" : undefined
}
