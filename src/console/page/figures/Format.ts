/** The page is in English: readers of other languages get its international numbers and dates. */
const locale = navigator.language.startsWith("en") ? navigator.language : "en-GB"

const whole = new Intl.NumberFormat(locale, { maximumFractionDigits: 0 })
const compact = new Intl.NumberFormat(locale, { notation: "compact", maximumFractionDigits: 1 })
const decimal = new Intl.NumberFormat(locale, { minimumFractionDigits: 1, maximumFractionDigits: 2 })
const percent = new Intl.NumberFormat(locale, { style: "percent", maximumFractionDigits: 0 })
const finePercent = new Intl.NumberFormat(locale, {
  style: "percent",
  minimumFractionDigits: 1,
  maximumFractionDigits: 1
})

export const formatCount = (count: number): string => whole.format(count)

/** `1 visitor`, `1,234 visitors`. */
export const formatCounted = (count: number, one: string): string =>
  `${formatCount(count)} ${count === 1 ? one : `${one}s`}`

/** `12.3K` where there is no room for all digits. */
export const formatCompact = (count: number): string => compact.format(count)

/** The cost of a call, to the last digit that the ledger has. */
export const formatExactUsd = (usd: number): string => dollars(12).format(usd)

const millionth = 0.000_001

/** USD down to the millionth, or to the cent where it is much. */
export const formatUsd = (usd: number): string =>
  usd > 0 && usd < millionth ? `<${formatExactUsd(millionth)}` : dollars(usd >= 100 ? 2 : 6).format(usd)

const dollars = (maximumFractionDigits: number): Intl.NumberFormat =>
  new Intl.NumberFormat(locale, {
    style: "currency",
    currency: "USD",
    currencyDisplay: "narrowSymbol",
    minimumFractionDigits: 2,
    maximumFractionDigits
  })

export const formatDecimal = (value: number): string => decimal.format(value)

/** A share from 0 to 1; small ones with a digit more. */
export const formatShare = (share: number): string =>
  share > 0 && share < 0.1 ? finePercent.format(share) : percent.format(share)

/** `1 min 5 s`. */
export const formatDuration = (seconds: number): string => {
  const rounded = Math.round(seconds)
  if (rounded < 60) return `${rounded} s`
  const minutes = Math.floor(rounded / 60)
  return minutes < 60
    ? `${minutes} min ${rounded % 60} s`
    : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

/** `3 ms`, `1.5 s`, `1 min 5 s`. */
export const formatMillis = (millis: number): string => {
  if (millis < 1_000) return `${Math.round(millis)} ms`
  return millis < 60_000 ? `${(millis / 1_000).toFixed(1)} s` : formatDuration(millis / 1_000)
}

export type Granularity = "minute" | "hour" | "day" | "month"

type DateParts = Intl.DateTimeFormatOptions

const dates = (parts: DateParts): Intl.DateTimeFormat =>
  new Intl.DateTimeFormat(locale, { ...parts, timeZone: "UTC" })

const time = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" } as const
const dayOfMonth = { day: "numeric", month: "short" } as const

const short = {
  minute: dates(time),
  hour: dates(time),
  day: dates(dayOfMonth),
  month: dates({ month: "short" }),
  year: dates({ month: "short", year: "numeric" })
}

const long = {
  minute: dates({ weekday: "short", ...time }),
  hour: dates({ weekday: "short", ...dayOfMonth, ...time }),
  day: dates({ weekday: "long", day: "numeric", month: "long", year: "numeric" }),
  month: dates({ month: "long", year: "numeric" })
}

/** A bucket's own wall-clock time: it carries the site's offset, and is shown without ever converting it. */
const wallClock = (bucket: string): Date => new Date(`${bucket.slice(0, 19)}Z`)

const instant = new Intl.DateTimeFormat(locale, { weekday: "short", ...dayOfMonth, ...time })

/** A time on the reader's own clock: `Sat 21 Nov, 14:00`. */
export const formatInstant = (iso: string): string => instant.format(new Date(iso))

/** For an axis: `14:00`, `20 Nov`, `Nov`, with the year where it begins. */
export const formatTick = (bucket: string, granularity: Granularity): string => {
  const at = wallClock(bucket)
  if (granularity === "hour" && at.getUTCHours() === 0) return short.day.format(at)
  return (granularity === "month" && at.getUTCMonth() === 0 ? short.year : short[granularity]).format(at)
}

/** In full: `Thu, 20 Nov, 14:00`, `Thursday 20 November 2026`, `November 2026`. */
export const formatBucket = (bucket: string, granularity: Granularity): string =>
  long[granularity].format(wallClock(bucket))
